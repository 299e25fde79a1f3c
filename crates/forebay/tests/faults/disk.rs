//! A simulated disk of which ranges fail or hang.

use std::collections::VecDeque;
use std::ops::Range;
use std::time::Duration;

use forebay::{DiskRates, Op};
use forebay_core::Time;
use forebay_sim::disk::{Command, Completion, SimDisk, Status};

/// The figures for the scheduler, well below the disk's.
pub(crate) const RATES: DiskRates = DiskRates {
    read_iops: 2_000,
    write_iops: 2_000,
    read_bandwidth: 100_000_000,
    write_bandwidth: 100_000_000,
};
/// Disk time of a small request at these rates.
pub(crate) const COST: Duration = Duration::from_micros(500);
pub(crate) const CAPACITY: u64 = 64 << 20;
pub(crate) const FAILS: Range<u64> = 8 << 20..9 << 20;
pub(crate) const HANGS: Range<u64> = 16 << 20..17 << 20;

/// Serves a request in 300 us, eight at once.
#[derive(Default)]
pub(crate) struct Disk {
    /// Everything hangs.
    all_hang: bool,
    under_way: VecDeque<Completion>,
    free_at: [Time; 8],
}

impl Disk {
    /// One that does nothing at all.
    pub(crate) fn hanging() -> Self {
        Self { all_hang: true, ..Self::default() }
    }
}

impl SimDisk for Disk {
    fn submit(&mut self, now: Time, id: u64, command: Command) {
        let is_transfer = matches!(command.op, Op::Read | Op::Write);
        if is_transfer && (self.all_hang || HANGS.contains(&command.offset)) {
            return;
        }
        let failed = is_transfer && FAILS.contains(&command.offset);
        let Some(server) = self.free_at.iter_mut().min() else { return };
        *server = (*server).max(now).plus_nanos(300_000);
        let status = if failed { Status::Failed } else { Status::Done };
        let place = self.under_way.partition_point(|other| other.at <= *server);
        self.under_way.insert(place, Completion { id, at: *server, status });
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
        Duration::from_micros(300)
    }
}
