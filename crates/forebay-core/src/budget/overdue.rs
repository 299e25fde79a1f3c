//! When the budget stops waiting for a request that does not come back.

use super::pace::Pace;
use crate::sync::{AtomicU64, Ordering};
use crate::{DiskTime, Time};

/// A request is overdue after this many windows,
const WINDOWS: u64 = 8;
/// but never earlier than this.
const OVERDUE_NANOS_MIN: u64 = 100_000_000;
/// At most one window's worth of requests is given up in this time.
const WINDOW_PER_NANOS: u64 = 100_000_000;
/// While nothing completes at all, one request is given up in this time: the
/// one that takes its place probes whether the disk is back.
const PROBE_NANOS: u64 = 10_000_000;

/// Decides which unfinished requests may leave the window uncompleted, so that
/// forgotten permits and a disk that hangs do not stop everybody for ever.
#[derive(Debug)]
pub(crate) struct Overdue {
    given_up: Pace,
    probe_after: AtomicU64,
    completed_at: AtomicU64,
}

impl Overdue {
    pub(crate) fn new() -> Self {
        Self {
            given_up: Pace::new(false),
            probe_after: AtomicU64::new(0),
            completed_at: AtomicU64::new(0),
        }
    }

    /// Whether a request may be overdue after this time in the disk: a cheap
    /// first look.
    pub(crate) fn is_possible(in_disk_nanos: u64) -> bool {
        in_disk_nanos >= OVERDUE_NANOS_MIN
    }

    /// How long a request may be in the disk before it is overdue.
    pub(crate) fn patience_nanos(window: DiskTime) -> u64 {
        window.as_nanos_ceil().saturating_mul(WINDOWS).max(OVERDUE_NANOS_MIN)
    }

    pub(crate) fn completed(&self, now: Time) {
        self.completed_at.store(now.as_nanos(), Ordering::Relaxed);
    }

    /// Whether an overdue request that cost `cost` may leave the window now;
    /// if not, when to ask again.
    pub(crate) fn give_up(&self, now: Time, window: DiskTime, cost: DiskTime) -> Result<(), Time> {
        let completed_at = Time::from_nanos(self.completed_at.load(Ordering::Relaxed));
        if now.nanos_since(completed_at) < Self::patience_nanos(window) {
            let spread = spread_over_period(cost, window);
            let burst = DiskTime::from_nanos(WINDOW_PER_NANOS);
            if self.given_up.try_take(now, burst, spread) {
                return Ok(());
            }
            return Err(self.given_up.available_at(now, burst, DiskTime::from_units(1)));
        }
        let probe_after = self.probe_after.load(Ordering::Relaxed);
        let next = now.plus_nanos(PROBE_NANOS).as_nanos();
        let won = now.as_nanos() >= probe_after
            && self
                .probe_after
                .compare_exchange(probe_after, next, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok();
        if won { Ok(()) } else { Err(Time::from_nanos(probe_after.max(now.as_nanos() + 1))) }
    }
}

/// The part of the period that a request of `cost` uses up, where a whole
/// window uses up all of it.
fn spread_over_period(cost: DiskTime, window: DiskTime) -> DiskTime {
    let period = u128::from(DiskTime::from_nanos(WINDOW_PER_NANOS).units());
    let spread = (u128::from(cost.units()) * period).div_ceil(u128::from(window.units().max(1)));
    DiskTime::from_units(u64::try_from(spread).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: DiskTime = DiskTime::from_nanos(1_500_000);
    const COST: DiskTime = DiskTime::from_nanos(100_000);

    fn given_up(overdue: &Overdue, from_ms: u64, to_ms: u64, alive: bool) -> usize {
        let mut count = 0;
        for ms in from_ms..to_ms {
            let now = Time::from_nanos(ms * 1_000_000);
            if alive {
                overdue.completed(now);
            }
            while overdue.give_up(now, WINDOW, COST).is_ok() {
                count += 1;
            }
        }
        count
    }

    #[test]
    fn at_most_one_window_per_100_ms_while_the_disk_answers() {
        let overdue = Overdue::new();
        assert_eq!(given_up(&overdue, 1_000, 1_001, true), 15);
        let more = given_up(&overdue, 1_001, 2_001, true);
        assert!((149..=151).contains(&more), "{more} in a second");
    }

    #[test]
    fn one_probe_per_10_ms_while_nothing_completes() {
        let overdue = Overdue::new();
        assert_eq!(given_up(&overdue, 1_000, 1_001, false), 1);
        assert_eq!(given_up(&overdue, 1_001, 2_001, false), 100);
        let retry = overdue.give_up(Time::from_nanos(2_000_500_000), WINDOW, COST).unwrap_err();
        assert_eq!(retry, Time::from_nanos(2_010_000_000));
    }

    #[test]
    fn patience_is_eight_windows_but_at_least_100_ms() {
        assert_eq!(Overdue::patience_nanos(WINDOW), 100_000_000);
        assert_eq!(Overdue::patience_nanos(DiskTime::from_nanos(20_000_000)), 160_000_000);
    }
}
