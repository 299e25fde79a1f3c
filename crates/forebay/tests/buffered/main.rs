//! Files written through the page cache, on whatever file system the tests run.
#![expect(clippy::unwrap_used, reason = "these are tests")]

mod descriptors;
mod dropped;
mod flushes;
mod killed;
mod locks;
mod reads;
#[path = "../shared/record_lock.rs"]
mod record_lock;
mod waits;
mod writer;

use std::fs::{File, OpenOptions};
use std::path::Path;
use std::time::{Duration, Instant};

use forebay::{Class, Control, DiskConfig, DiskRates, Limits, Op, Scheduler};
use tempfile::TempDir;

/// A disk so fast that its pace never binds.
const FAST: DiskRates = DiskRates {
    read_iops: 10_000_000,
    write_iops: 10_000_000,
    read_bandwidth: 100_000_000_000,
    write_bandwidth: 100_000_000_000,
};

const MIB: u64 = 1 << 20;

/// A directory on a disk of a scheduler, and a class.
struct Bed {
    dir: TempDir,
    scheduler: Scheduler,
    class: Class,
}

impl Bed {
    fn new() -> Self {
        Self::by(Control::default())
    }

    fn by(control: Control) -> Self {
        // where the build is, for `/tmp` may be memory
        let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let disk = DiskConfig::new("disk", FAST).mountpoint(dir.path()).control(control);
        let scheduler = Scheduler::builder().disk(disk).build().unwrap();
        let class = scheduler.add_class("class", 100).unwrap();
        Self { dir, scheduler, class }
    }

    /// The class has this limit, and parts are of 1 MiB.
    fn limited(bytes_per_second: u64) -> Self {
        let bed = Self::by(Control::Rates);
        let limits = Limits { bytes_per_second: Some(bytes_per_second), ..Limits::default() };
        bed.class.set_limits(&limits).unwrap();
        bed
    }

    /// One whose class is let through nothing for a minute: it has had more than its limit.
    fn stopped() -> Self {
        let bed = Self::limited(MIB / 64);
        bed.class.admit(Op::Write, MIB).unwrap().complete(&Ok(()));
        bed
    }

    fn file(&self, name: &str) -> File {
        let path = self.dir.path().join(name);
        OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path).unwrap()
    }

    /// Bytes written back, or written, with permits.
    fn admitted(&self) -> u64 {
        self.class.permit_counters().bytes[Op::Write.index()]
    }
}

/// Waits for what another thread is about to do.
fn until(what: &str, mut done: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !done() {
        assert!(begin.elapsed() < Duration::from_secs(60), "{what} does not come");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Bytes that differ from place to place.
fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at / 512 * 31 + at) as u8).collect()
}

fn contents(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap()
}
