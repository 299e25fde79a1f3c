//! A disk that takes a while, and fails large writes while it is told to.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::process::Command as Program;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use forebay::{DiskRates, Op};
use forebay_core::Time;
use forebay_serve::{ServeConfig, Served};
use forebay_sim::disk::{Command, Completion, SimDisk, Status};
use rustix::mount::UnmountFlags;
use tempfile::TempDir;

use crate::lab::{mount, system};

/// What the disk does.
pub(crate) const RATES: DiskRates = DiskRates {
    read_iops: 4_000,
    write_iops: 4_000,
    read_bandwidth: 60_000_000,
    write_bandwidth: 60_000_000,
};

/// Longer writes than metadata has.
const DATA: u64 = 16 << 10;

/// What it is told, and what it has done.
#[derive(Default)]
pub(crate) struct Told {
    pub(crate) fails: AtomicBool,
    pub(crate) written: AtomicU64,
}

#[derive(Default)]
struct Disk {
    told: Arc<Told>,
    under_way: VecDeque<Completion>,
    free_at: Time,
}

impl SimDisk for Disk {
    /// One after the other, 250 us each or as the bandwidth is.
    fn submit(&mut self, now: Time, id: u64, command: Command) {
        let is_data = command.op == Op::Write && command.len > DATA;
        let failed = is_data && self.told.fails.load(Ordering::Relaxed);
        if command.op == Op::Write {
            self.told.written.fetch_add(command.len, Ordering::Relaxed);
        }
        let nanos = (command.len * 1_000_000_000 / RATES.write_bandwidth).max(250_000);
        self.free_at = self.free_at.max(now).plus_nanos(nanos);
        let status = if failed { Status::Failed } else { Status::Done };
        self.under_way.push_back(Completion { id, at: self.free_at, status });
    }

    fn poll_completion(&mut self, now: Time) -> Option<Completion> {
        self.under_way.pop_front_if(|first| first.at <= now)
    }

    fn next_event(&self) -> Option<Time> {
        self.under_way.front().map(|first| first.at)
    }

    fn rates(&self) -> DiskRates {
        RATES
    }

    fn base_latency(&self) -> Duration {
        Duration::from_micros(250)
    }
}

/// Such a disk, with a file system without a journal. What is mounted is unmounted before it ends.
pub(crate) struct Failing {
    pub(crate) told: Arc<Told>,
    pub(crate) point: PathBuf,
    device: String,
    served: Option<Served>,
    _dirs: [TempDir; 2],
}

impl Failing {
    /// `None` where this system cannot serve it.
    pub(crate) fn new(capacity: u64) -> Option<Self> {
        let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let disk = Disk::default();
        let told = Arc::clone(&disk.told);
        let config = ServeConfig::new(capacity);
        let served = Served::mount(Box::new(disk), &config, dirs[0].path());
        let served = served.inspect_err(|error| eprintln!("skipped: {error}")).ok()?;
        let path = served.path().to_str().unwrap();
        let device = system("losetup", &["--find", "--show", "--direct-io=on", path]);
        system("mkfs.ext4", &["-q", "-O", "^has_journal", "-E", "lazy_itable_init=0", &device]);
        let point = dirs[1].path().to_owned();
        mount(&["-t", "ext4", &device], &point);
        Some(Self { told, point, device, served: Some(served), _dirs: dirs })
    }
}

impl Drop for Failing {
    /// A process that ends before its disk is unmounted would wait for itself.
    fn drop(&mut self) {
        // what was written is written back a while longer, and keeps its file open
        let begin = Instant::now();
        while !self.unmount() {
            if begin.elapsed() > Duration::from_secs(10) {
                self.served = None;
                self.unmount();
                break;
            }
            thread::sleep(Duration::from_millis(20));
        }
        let _ = Program::new("losetup").args(["--detach", &self.device]).status();
    }
}

impl Failing {
    fn unmount(&self) -> bool {
        rustix::mount::unmount(&self.point, UnmountFlags::empty()).is_ok()
    }
}
