//! A slow disk that fails large writes on request.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use forebay::{DiskRates, Op};
use forebay_core::Time;
use forebay_serve::ServeConfig;
use forebay_sim::disk::{Command, Completion, SimDisk, Status};

use crate::served::ServedFileSystem;

/// What the disk does.
pub(crate) const RATES: DiskRates = DiskRates {
    read_iops: 4_000,
    write_iops: 4_000,
    read_bandwidth: 60_000_000,
    write_bandwidth: 60_000_000,
};

/// Longer writes than metadata has.
const DATA: u64 = 16 << 10;

/// Its settings and its counters.
#[derive(Default)]
pub(crate) struct DiskStats {
    pub(crate) fails: AtomicBool,
    pub(crate) written: AtomicU64,
}

#[derive(Default)]
struct Disk {
    stats: Arc<DiskStats>,
    under_way: VecDeque<Completion>,
    free_at: Time,
}

impl SimDisk for Disk {
    /// One after the other, 250 us each or as the bandwidth is.
    fn submit(&mut self, now: Time, id: u64, command: Command) {
        let is_data = command.op == Op::Write && command.len > DATA;
        let failed = is_data && self.stats.fails.load(Ordering::Relaxed);
        if command.op == Op::Write {
            self.stats.written.fetch_add(command.len, Ordering::Relaxed);
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

/// Such a disk, with a file system without a journal.
pub(crate) struct Failing {
    pub(crate) stats: Arc<DiskStats>,
    pub(crate) point: PathBuf,
    _file_system: ServedFileSystem,
}

impl Failing {
    /// `None` where this system cannot serve it.
    pub(crate) fn new(capacity: u64) -> Option<Self> {
        let disk = Disk::default();
        let stats = Arc::clone(&disk.stats);
        let config = ServeConfig::new(capacity);
        let mkfs = ["-O", "^has_journal"];
        let on = ServedFileSystem::new(Box::new(disk), &config, &mkfs, "defaults")?;
        Some(Self { stats, point: on.point.clone(), _file_system: on })
    }
}
