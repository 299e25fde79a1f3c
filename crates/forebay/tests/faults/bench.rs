//! A scheduler with the served disk and a healthy one alongside it.

use std::time::{Duration, Instant};

use forebay::engine::{BackendChoice, EngineConfig, Operation};
use forebay::metrics::DiskSnapshot;
use forebay::shard::Shard;
use forebay::{
    AlignedBuf, Class, Control, DirectFile, DiskConfig, DiskRates, File, FileOptions, Scheduler,
};
use forebay_serve::{ServeConfig, Served};
use tempfile::TempDir;

use crate::backends::skipped;
use crate::disk::{CAPACITY, COST, Disk, RATES};

pub(crate) const BLOCK: usize = 4096;
pub(crate) const DROP_WAIT_MAX: Duration = Duration::from_millis(100);
/// Where nothing completes, one request more is tried after this time.
const PROBE: Duration = Duration::from_millis(10);

const FAST: DiskRates = DiskRates {
    read_iops: 1_000_000,
    write_iops: 1_000_000,
    read_bandwidth: 10_000_000_000,
    write_bandwidth: 10_000_000_000,
};

/// The disk is to be dropped before the directories, and before what waits for
/// it without end.
pub(crate) struct Bench {
    pub(crate) scheduler: Scheduler,
    pub(crate) class: Class,
    pub(crate) engine: EngineConfig,
    pub(crate) served: Served,
    since: Instant,
    other: TempDir,
    _mountpoint: TempDir,
}

impl Bench {
    /// `None` where this system cannot mount; it says why.
    pub(crate) fn new(backend: BackendChoice, disk: Disk) -> Option<Self> {
        Self::with(backend, disk, DiskConfig::new("served", RATES).control(Control::Rates))
    }

    /// With the disk `served` scheduled as this says.
    pub(crate) fn with(backend: BackendChoice, disk: Disk, scheduled: DiskConfig) -> Option<Self> {
        let (mountpoint, other) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        let config = ServeConfig::new(CAPACITY);
        let served = match Served::mount(Box::new(disk), &config, mountpoint.path()) {
            Ok(served) => served,
            Err(error) => {
                let in_ci = std::env::var_os("CI").is_some_and(|ci| ci == "true");
                assert!(!(in_ci && rustix::process::geteuid().is_root()), "{error}");
                skipped(error);
                return None;
            }
        };
        let engine = EngineConfig {
            backend,
            depth_max: 1024,
            threads_max: 128,
            shutdown_timeout: DROP_WAIT_MAX,
            ..EngineConfig::default()
        };
        let scheduler = Scheduler::builder()
            .disk(scheduled.mountpoint(mountpoint.path()))
            .disk(DiskConfig::new("other", FAST).mountpoint(other.path()))
            .engine(engine)
            .build()
            .unwrap();
        let class = scheduler.add_class("class", 100).unwrap();
        let since = Instant::now();
        Some(Self { scheduler, class, engine, served, since, other, _mountpoint: mountpoint })
    }

    pub(crate) fn file(&self) -> File {
        let options = FileOptions::new().read(true).write(true);
        self.scheduler.open(self.served.path(), &options).unwrap()
    }

    pub(crate) fn direct_file(&self) -> DirectFile {
        DirectFile::options().read(true).write(true).open(self.served.path()).unwrap()
    }

    pub(crate) fn shard(&self) -> Shard {
        self.scheduler.disk("served").unwrap().shard(&self.engine).unwrap()
    }

    fn snapshot(&self, disk: &str) -> DiskSnapshot {
        let disks = self.scheduler.snapshot().disks;
        disks.into_iter().find(|snapshot| snapshot.name == disk).unwrap()
    }

    /// Whether the window of the served disk gave something up, as it does once
    /// more for each probe.
    pub(crate) fn has_probed(&self) -> bool {
        let window = 2 * self.scheduler.disk("served").unwrap().effective_goal().unwrap();
        let requests = window.div_duration_f64(COST) as u64 + 1;
        self.snapshot("served").totals.overdue > requests + 3
    }

    /// At most two windows, which overshoot by a request each, and a probe per
    /// 10 ms are in the served disk.
    pub(crate) fn assert_two_windows_and_probes(&self) {
        let in_disk = f64::from(self.snapshot("served").totals.in_disk);
        let window = 2 * self.scheduler.disk("served").unwrap().effective_goal().unwrap();
        let probes = self.since.elapsed().div_duration_f64(PROBE).ceil();
        let most = 2.0 * (window.div_duration_f64(COST) + 1.0) + probes;
        assert!(in_disk <= most, "{in_disk} in the disk, {most} allowed");
        eprintln!("{in_disk} in the disk, of which {probes} may be probes, {most} allowed");
    }

    /// The other disk serves files, shards and permits.
    pub(crate) fn assert_other_disk_notices_nothing(&self) {
        let options = FileOptions::new().read(true).write(true).create(true);
        let path = self.other.path().join("file");
        let file = self.scheduler.open(&path, &options).unwrap();
        assert_eq!(file.disk().name(), "other");
        let class = self.class.on(file.disk()).unwrap();
        for n in 0..100 {
            let write = file.write_at(&class, filled(1), n * BLOCK as u64);
            assert_eq!(write.wait().into_result().unwrap().0, BLOCK);
            drop(class.admit(forebay::Op::Write, 4096).unwrap());
        }
        let mut shard = file.disk().shard(&self.engine).unwrap();
        for n in 0..100 {
            let read = Operation::read(file.direct_file().clone(), n * BLOCK as u64, filled(0));
            shard.submit(&class, read).map_err(|(error, _)| error).unwrap();
        }
        while !shard.is_empty() {
            shard.run_once(None).unwrap();
            while let Some(finished) = shard.pop() {
                assert_eq!(finished.result.unwrap(), BLOCK);
            }
        }
        drop(shard);
        assert_eq!(self.snapshot("other").totals.completed, 300);
    }
}

pub(crate) fn filled(byte: u8) -> AlignedBuf {
    let mut buffer = AlignedBuf::new(BLOCK, BLOCK).unwrap();
    buffer.fill(byte);
    buffer
}

/// Does it, and says how long that took; it must end at all.
pub(crate) fn ends(what: &str, it: impl FnOnce()) {
    let start = Instant::now();
    it();
    let took = start.elapsed();
    eprintln!("{what} took {took:?}");
    assert!(took < DROP_WAIT_MAX + Duration::from_secs(30), "{what} took {took:?}");
}
