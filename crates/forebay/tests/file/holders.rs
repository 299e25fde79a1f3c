//! Holders of a permit that use a file or a shard.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use forebay::engine::{BackendChoice, EngineConfig, Operation};
use forebay::{
    BufResult, Class, DiskConfig, DiskRates, File, FileOptions, Op, Permit, Policy, Scheduler,
};
use tempfile::TempDir;

use crate::fixture::{BLOCK, engine, filled};

tests_of! { IoUring io_uring, LinuxAio linux_aio, Threads threads; threads_that_hold_all_permits_get_on_in_a_file }

/// Figures of which the scheduler concludes that requests take minutes, so
/// that none is overdue however slow the machine that runs the tests.
const SLOW: DiskRates = DiskRates {
    read_iops: 10_000_000,
    write_iops: 10_000_000,
    read_bandwidth: 13_000,
    write_bandwidth: 13_000,
};

/// Against hangs.
const A_MINUTE: Duration = Duration::from_secs(60);

struct Bed {
    scheduler: Scheduler,
    class: Class,
    file: File,
    _dir: TempDir,
}

impl Bed {
    /// A file on a disk that takes two requests at a time, at any rate.
    fn new(backend: BackendChoice) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let disk = DiskConfig::new("disk", SLOW).mountpoint(dir.path());
        let disk = disk.policy(Policy::Concurrency { requests: 2 });
        let scheduler = Scheduler::builder().disk(disk).engine(engine(backend)).build().unwrap();
        let class = scheduler.add_class("class", 100).unwrap();
        let options = FileOptions::new().read(true).write(true).create(true);
        let file = scheduler.open(dir.path().join("data"), &options).unwrap();
        Self { scheduler, class, file, _dir: dir }
    }

    /// Whether a read ends in this time.
    fn reads(&self, class: &Class, within: Duration) -> bool {
        let mut read = self.file.read_at(class, filled(BLOCK, 0), 0);
        matches!(read.wait_timeout(within), Some(BufResult(Ok(_), _)))
    }

    fn permit(&self) -> Permit {
        self.class.admit(Op::Read, 4096).unwrap().detach()
    }
}

/// Others of their class have many requests before theirs.
fn threads_that_hold_all_permits_get_on_in_a_file(backend: BackendChoice) {
    let bed = Bed::new(backend);
    let (barrier, over) = (Barrier::new(2), AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                let read = || bed.file.read_at(&bed.class, filled(BLOCK, 0), 0);
                let reads: Vec<_> = (0..64).map(|_| read()).collect();
                reads.into_iter().for_each(|read| _ = read.wait());
            }
        });
        let holders = [(); 2].map(|()| {
            scope.spawn(|| {
                for _ in 0..50 {
                    let held = bed.class.admit(Op::Read, 4096).unwrap();
                    barrier.wait();
                    // both places are taken now
                    assert!(bed.reads(&bed.class, A_MINUTE));
                    barrier.wait();
                    drop(held);
                }
            })
        });
        holders.into_iter().for_each(|holder| holder.join().unwrap());
        over.store(true, Ordering::Relaxed);
    });
    assert_eq!(bed.class.permit_counters().overdue, 0);
}

#[test]
fn nested_requests_of_files_and_shards_name_the_permit_of_their_task() {
    let bed = Bed::new(BackendChoice::Auto);
    let disk = bed.scheduler.disk("disk").unwrap();
    let mut shard = disk.shard(&EngineConfig::default()).unwrap();
    let held = [bed.permit(), bed.permit()];
    let nested = bed.class.nested_in(&held[0]);
    assert!(!bed.reads(&bed.class, Duration::from_millis(50)), "both places are taken");
    assert!(bed.reads(&nested, A_MINUTE));
    let read = Operation::read(bed.file.direct_file().clone(), 0, filled(BLOCK, 0));
    shard.submit(&nested, read).unwrap();
    let finished = loop {
        shard.run_once(Some(A_MINUTE)).unwrap();
        if let Some(finished) = shard.pop() {
            break finished;
        }
    };
    assert!(finished.result.is_ok());
    assert!(nested.try_admit(Op::Read, 4096).unwrap().is_some());
    assert!(bed.class.try_admit(Op::Read, 4096).unwrap().is_none());
    drop(held);
    assert!(bed.reads(&bed.class, A_MINUTE));
}
