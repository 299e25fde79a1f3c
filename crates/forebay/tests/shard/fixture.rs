//! A scheduler, a directory on its disk, and a shard to try it with.

use std::path::{Path, PathBuf};
use std::time::Duration;

use forebay::engine::{BackendChoice, EngineConfig, Operation};
use forebay::shard::{Completion, OperationId, Shard};
use forebay::{AlignedBuf, Class, Control, DirectFile, Disk, DiskConfig, DiskRates, Scheduler};
use rustix::io::Errno;
use tempfile::TempDir;

/// A length, offset and alignment that every file system takes.
pub(crate) const BLOCK: usize = 4096;

/// Parts of at most 128 KiB, and fast enough for no test to wait for it.
pub(crate) const RATES: DiskRates = DiskRates {
    read_iops: 1_000_000,
    write_iops: 1_000_000,
    read_bandwidth: 200_000_000,
    write_bandwidth: 200_000_000,
};

/// One request of a block, then nothing for an hour.
pub(crate) const STUCK: DiskRates =
    DiskRates { read_iops: 1, write_iops: 1, read_bandwidth: 4096, write_bandwidth: 4096 };

pub(crate) fn config(backend: BackendChoice) -> EngineConfig {
    EngineConfig { backend, ..EngineConfig::default() }
}

pub(crate) struct Bed {
    pub(crate) shard: Shard,
    pub(crate) class: Class,
    pub(crate) scheduler: Scheduler,
    dir: TempDir,
}

impl Bed {
    pub(crate) fn new(backend: BackendChoice) -> Self {
        Self::with(RATES, &config(backend))
    }

    pub(crate) fn with(rates: DiskRates, config: &EngineConfig) -> Self {
        let dir = tempfile::tempdir().unwrap();
        // these tests are about what waits for the pace
        let disk = DiskConfig::new("disk", rates).mountpoint(dir.path()).control(Control::Rates);
        let scheduler = Scheduler::builder().disk(disk).build().unwrap();
        let class = scheduler.add_class("class", 100).unwrap();
        let shard = scheduler.disk("disk").unwrap().shard(config).unwrap();
        Self { shard, class, scheduler, dir }
    }

    pub(crate) fn disk(&self) -> Disk {
        self.scheduler.disk("disk").unwrap()
    }

    pub(crate) fn dir(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// A new file to read and write.
    pub(crate) fn file(&self) -> DirectFile {
        let options = DirectFile::options().read(true).write(true).create_new(true);
        options.open(self.path("data")).unwrap()
    }

    pub(crate) fn submit(&mut self, operation: Operation) -> OperationId {
        self.shard.submit(&self.class, operation).map_err(|(error, _)| error).unwrap()
    }

    /// Executes one operation, and waits for it.
    pub(crate) fn run(&mut self, operation: Operation) -> Completion {
        let id = self.submit(operation);
        let finished = self.next();
        assert_eq!(finished.id, id);
        finished
    }

    /// Waits for what ends next.
    pub(crate) fn next(&mut self) -> Completion {
        loop {
            if let Some(finished) = self.shard.pop() {
                return finished;
            }
            self.shard.run_once(Some(Duration::from_secs(60))).unwrap();
        }
    }

    pub(crate) fn write(&mut self, file: &DirectFile, offset: u64, data: AlignedBuf) {
        let len = data.len();
        assert_eq!(self.run(Operation::write(file.clone(), offset, data)).result.unwrap(), len);
    }
}

/// A read without end: nobody writes to the pipe.
pub(crate) fn endless() -> (DirectFile, std::io::PipeWriter) {
    let (reader, writer) = std::io::pipe().unwrap();
    (DirectFile::from_fd(reader).unwrap(), writer)
}

pub(crate) fn filled(len: usize, byte: u8) -> AlignedBuf {
    let mut buffer = AlignedBuf::new(len, BLOCK).unwrap();
    buffer.fill(byte);
    buffer
}

/// Every block of `data` is filled with its number, from `first` on.
pub(crate) fn number_blocks(data: &mut [u8], first: usize) {
    for (number, block) in data.chunks_mut(BLOCK).enumerate() {
        block.fill((first + number) as u8);
    }
}

pub(crate) fn is_cancelled<T>(result: &std::io::Result<T>) -> bool {
    result.as_ref().err().and_then(Errno::from_io_error) == Some(Errno::CANCELED)
}
