//! A scheduler with a disk for a directory of its own.

use std::path::{Path, PathBuf};

use forebay::engine::{BackendChoice, EngineConfig};
use forebay::{
    AlignedBuf, Class, Control, Disk, DiskConfig, DiskRates, File, FileOptions, Scheduler,
};
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

pub(crate) fn engine(backend: BackendChoice) -> EngineConfig {
    EngineConfig { backend, ..EngineConfig::default() }
}

pub(crate) struct Bed {
    pub(crate) scheduler: Scheduler,
    pub(crate) class: Class,
    pub(crate) dir: TempDir,
}

impl Bed {
    pub(crate) fn new(backend: BackendChoice) -> Self {
        Self::with(backend, RATES, 1)
    }

    pub(crate) fn with(backend: BackendChoice, rates: DiskRates, io_queues: usize) -> Self {
        let dir = tempfile::tempdir().unwrap();
        // these tests are about what waits for the pace
        let disk = DiskConfig::new("disk", rates).mountpoint(dir.path()).control(Control::Rates);
        let builder = Scheduler::builder().disk(disk).io_queues(io_queues);
        let scheduler = builder.engine(engine(backend)).build().unwrap();
        let class = scheduler.add_class("class", 100).unwrap();
        Self { scheduler, class, dir }
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

    /// A file to read and write.
    pub(crate) fn file(&self) -> File {
        let options = FileOptions::new().read(true).write(true).create(true);
        self.scheduler.open(self.path("data"), &options).unwrap()
    }
}

pub(crate) fn filled(len: usize, byte: u8) -> AlignedBuf {
    let mut buffer = AlignedBuf::new(len, BLOCK).unwrap();
    buffer.fill(byte);
    buffer
}
