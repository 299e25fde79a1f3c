//! A shard as a program drives it, with an engine that does nothing.

use forebay::engine::{BackendChoice, EngineConfig, Operation};
use forebay::shard::Shard;
use forebay::{AlignedBuf, Class, DirectFile, DiskConfig, DiskRates, Scheduler};

/// One disk that holds nobody back.
pub fn scheduler() -> Scheduler {
    let rates = DiskRates {
        read_iops: 100_000_000,
        write_iops: 100_000_000,
        read_bandwidth: 1_000_000_000_000,
        write_bandwidth: 1_000_000_000_000,
    };
    Scheduler::builder().disk(DiskConfig::new("disk", rates)).build().unwrap()
}

/// A shard that always has this many requests of one class.
pub struct Program {
    shard: Shard,
    class: Class,
}

impl Program {
    pub fn new(depth: usize) -> Self {
        let scheduler = scheduler();
        let class = scheduler.add_class("class", 100).unwrap();
        let engine = EngineConfig { backend: BackendChoice::Null, ..EngineConfig::default() };
        let mut shard = scheduler.disk("disk").unwrap().shard(&engine).unwrap();
        let file = DirectFile::from_fd(std::fs::File::open("/dev/zero").unwrap()).unwrap();
        for _ in 0..depth {
            let read = Operation::read(file.clone(), 0, AlignedBuf::new(4096, 4096).unwrap());
            shard.submit(&class, read).unwrap();
        }
        Self { shard, class }
    }

    /// Submit, turn and pop until this many requests have ended, and `each` after
    /// every one.
    pub fn run(&mut self, requests: usize, mut each: impl FnMut()) {
        let mut done = 0;
        while done < requests {
            self.shard.run_once(None).unwrap();
            while let Some(finished) = self.shard.pop() {
                self.shard.submit(&self.class, finished.operation).unwrap();
                done += 1;
                each();
            }
        }
    }
}
