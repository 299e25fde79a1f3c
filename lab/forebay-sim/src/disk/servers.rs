//! What simulated disks are built of: servers, and commands by their due time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use forebay_core::{CostCurve, DiskRates, DiskTime, Time, saturating_nanos};

use super::{Command, Completion, SimDisk, Status};

/// A disk that knows when a command will be done as soon as it takes it.
pub(crate) trait Service: Send {
    /// Takes a command, and says when it will be done.
    fn serve(&mut self, now: Time, command: Command) -> Time;

    /// As [`SimDisk::rates`].
    fn rates(&self) -> DiskRates;

    /// As [`SimDisk::base_latency`].
    fn base_latency(&self) -> Duration;

    /// As [`SimDisk::discards`].
    fn discards(&self) -> Option<CostCurve> {
        None
    }
}

/// A [`Service`] and the commands that it has taken.
pub(crate) struct Timed<S> {
    service: S,
    due: Due,
}

impl<S: Service> Timed<S> {
    pub(crate) fn new(service: S) -> Self {
        Self { service, due: Due::default() }
    }
}

impl<S: Service> SimDisk for Timed<S> {
    fn submit(&mut self, now: Time, id: u64, command: Command) {
        let at = self.service.serve(now, command);
        self.due.push(Completion { id, at, status: Status::Done });
    }

    fn poll_completion(&mut self, now: Time) -> Option<Completion> {
        self.due.pop(now)
    }

    fn next_event(&self) -> Option<Time> {
        self.due.next()
    }

    fn rates(&self) -> DiskRates {
        self.service.rates()
    }

    fn discards(&self) -> Option<CostCurve> {
        self.service.discards()
    }

    fn base_latency(&self) -> Duration {
        self.service.base_latency()
    }
}

/// Commands by the time at which they are due; at the same time in the order
/// in which they were added.
#[derive(Default)]
pub(crate) struct Due {
    heap: BinaryHeap<Reverse<(Time, u64, u64, bool)>>,
    added: u64,
}

impl Due {
    pub(crate) fn push(&mut self, completion: Completion) {
        let Completion { id, at, status } = completion;
        self.heap.push(Reverse((at, self.added, id, status == Status::Done)));
        self.added += 1;
    }

    pub(crate) fn next(&self) -> Option<Time> {
        self.heap.peek().map(|&Reverse((at, ..))| at)
    }

    pub(crate) fn pop(&mut self, now: Time) -> Option<Completion> {
        if self.next()? > now {
            return None;
        }
        let Reverse((at, _, id, done)) = self.heap.pop()?;
        let status = if done { Status::Done } else { Status::Failed };
        Some(Completion { id, at, status })
    }
}

/// One thing at a time, in the order of arrival.
#[derive(Clone, Copy, Default)]
pub(crate) struct Server {
    /// When all work so far is done.
    pub(crate) free_at: DiskTime,
}

impl Server {
    /// Does `work` that arrives at `at`, and says when it is done.
    pub(crate) fn serve(&mut self, at: DiskTime, work: DiskTime) -> DiskTime {
        self.free_at = self.free_at.max(at).plus(work);
        self.free_at
    }
}

/// Several servers side by side; each command takes the one that is free first.
pub(crate) struct Pool {
    free_at: BinaryHeap<Reverse<DiskTime>>,
}

impl Pool {
    pub(crate) fn new(servers: u32) -> Self {
        Self { free_at: (0..servers.max(1)).map(|_| Reverse(DiskTime::ZERO)).collect() }
    }

    /// Takes a server for a command that arrives at `at`, and says from when on
    /// it has it; to be followed by [`Pool::release`].
    pub(crate) fn take(&mut self, at: DiskTime) -> DiskTime {
        self.free_at.pop().map_or(at, |Reverse(free_at)| free_at.max(at))
    }

    /// Gives the server back, for use from `at` on.
    pub(crate) fn release(&mut self, at: DiskTime) {
        self.free_at.push(Reverse(at));
    }
}

/// A moment as disk time since the epoch, so that fractions of a nanosecond
/// add up.
pub(crate) fn moment(now: Time) -> DiskTime {
    DiskTime::from_nanos(now.as_nanos())
}

/// The first whole nanosecond that is not before `moment`.
pub(crate) fn time(moment: DiskTime) -> Time {
    Time::from_nanos(moment.as_nanos_ceil())
}

/// A length of time as disk time.
pub(crate) fn span(duration: Duration) -> DiskTime {
    DiskTime::from_nanos(saturating_nanos(duration))
}

/// What `amount` takes at `rate` per second.
pub(crate) fn transfer(amount: u64, rate: u64) -> DiskTime {
    let units = u128::from(amount) * u128::from(DiskTime::UNITS_PER_SECOND);
    DiskTime::from_units(u64::try_from(units / u128::from(rate.max(1))).unwrap_or(u64::MAX))
}

/// How many times per second something happens that takes `work`, on each of
/// `servers`.
pub(crate) fn per_second(servers: u64, work: DiskTime) -> u64 {
    let units = u128::from(servers) * u128::from(DiskTime::UNITS_PER_SECOND);
    u64::try_from(units / u128::from(work.units().max(1))).unwrap_or(u64::MAX)
}

/// Size of the small operations that [`SimDisk::rates`] counts.
pub(crate) const SMALL: u64 = 4096;
/// Size of the operations whose bytes [`SimDisk::rates`] counts.
pub(crate) const LARGE: u64 = 128 << 10;
