//! When the budget stops waiting for a request that does not come back.

use super::pace::Pace;
use crate::sync::{AtomicU64, Ordering};
use crate::{DiskTime, Time};

/// A request is overdue after this many windows; in as much time at most one
/// window's worth of requests is given up.
const WINDOWS: u64 = 8;
/// A request is never overdue earlier than this,
const OVERDUE_NANOS_MIN: u64 = 100_000_000;
/// or than this while a part of the disk hangs: whoever works there fills each
/// new window with what hangs.
const HANGING_NANOS_MIN: u64 = 10_000_000;
/// A part of the disk is taken to hang for so long after a request was given
/// up, unless one that was comes back: then the disk is slow, and it must not
/// get more and more.
const HANGING_FOR_NANOS: u64 = 1_000_000_000;
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
    /// Until when the disk, or a part of it, is taken to hang.
    hanging_until: AtomicU64,
}

impl Overdue {
    pub(crate) fn new() -> Self {
        Self {
            given_up: Pace::new(false),
            probe_after: AtomicU64::new(0),
            completed_at: AtomicU64::new(0),
            hanging_until: AtomicU64::new(0),
        }
    }

    /// Whether a request may be overdue after this time in the disk: a cheap
    /// first look.
    pub(crate) fn is_possible(in_disk_nanos: u64) -> bool {
        in_disk_nanos >= HANGING_NANOS_MIN
    }

    /// Whether the disk, or a part of it, is taken to hang.
    pub(crate) fn hangs(&self, now: Time) -> bool {
        now.as_nanos() < self.hanging_until.load(Ordering::Relaxed)
    }

    /// How long a request may be in the disk before it is overdue.
    pub(crate) fn patience_nanos(&self, now: Time, window: DiskTime) -> u64 {
        windows_nanos(window).max(if self.hangs(now) {
            HANGING_NANOS_MIN
        } else {
            OVERDUE_NANOS_MIN
        })
    }

    pub(crate) fn completed(&self, now: Time) {
        self.completed_at.store(now.as_nanos(), Ordering::Relaxed);
    }

    /// A request that was given up has come back.
    pub(crate) fn came_back(&self) {
        self.hanging_until.store(0, Ordering::Relaxed);
    }

    /// Whether an overdue request that cost `cost` may leave the window now;
    /// if not, when to ask again.
    pub(crate) fn give_up(&self, now: Time, window: DiskTime, cost: DiskTime) -> Result<(), Time> {
        let given_up = self.try_give_up(now, window, cost);
        if given_up.is_ok() {
            let until = now.plus_nanos(HANGING_FOR_NANOS).as_nanos();
            self.hanging_until.store(until, Ordering::Relaxed);
        }
        given_up
    }

    fn try_give_up(&self, now: Time, window: DiskTime, cost: DiskTime) -> Result<(), Time> {
        let completed_at = Time::from_nanos(self.completed_at.load(Ordering::Relaxed));
        if now.nanos_since(completed_at) < self.patience_nanos(now, window) {
            let burst = DiskTime::from_nanos(windows_nanos(window).max(HANGING_NANOS_MIN));
            if self.given_up.try_take(now, burst, part_of(burst, cost, window)) {
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
        if won { Ok(()) } else { Err(Time::from_nanos(probe_after).max(now.plus_nanos(1))) }
    }

    /// Disk time that a request of `cost` has kept from others by being in the
    /// window for `in_disk_nanos`. Its class pays for it: so others have their
    /// share however often a class fills the window with what hangs.
    pub(crate) fn kept_from_others(
        in_disk_nanos: u64,
        cost: DiskTime,
        window: DiskTime,
    ) -> DiskTime {
        part_of(DiskTime::from_nanos(in_disk_nanos), cost.min(window), window)
    }
}

fn windows_nanos(window: DiskTime) -> u64 {
    window.as_nanos_ceil().saturating_mul(WINDOWS)
}

/// The part of `time` that `cost` is of `window`.
fn part_of(time: DiskTime, cost: DiskTime, window: DiskTime) -> DiskTime {
    let part = u128::from(cost.units()) * u128::from(time.units());
    let part = part.div_ceil(u128::from(window.units().max(1)));
    DiskTime::from_units(u64::try_from(part).unwrap_or(u64::MAX))
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
    fn at_most_one_window_per_8_windows_while_the_disk_answers() {
        let overdue = Overdue::new();
        assert_eq!(given_up(&overdue, 1_000, 1_001, true), 15);
        let more = given_up(&overdue, 1_001, 2_001, true);
        assert!((1249..=1251).contains(&more), "{more} in a second");
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
        let (overdue, now) = (Overdue::new(), Time::from_nanos(1_000_000_000));
        assert_eq!(overdue.patience_nanos(now, WINDOW), 100_000_000);
        let slow = DiskTime::from_nanos(20_000_000);
        assert_eq!(overdue.patience_nanos(now, slow), 160_000_000);
    }

    #[test]
    fn patience_is_eight_windows_for_a_second_after_something_was_given_up() {
        let (overdue, now) = (Overdue::new(), Time::from_nanos(1_000_000_000));
        overdue.completed(now);
        overdue.give_up(now, WINDOW, COST).unwrap();
        let at = |ms: u64| now.plus_nanos(ms * 1_000_000);
        assert_eq!(overdue.patience_nanos(at(999), WINDOW), 12_000_000);
        assert_eq!(overdue.patience_nanos(at(999), COST), 10_000_000);
        assert_eq!(overdue.patience_nanos(at(1_000), WINDOW), 100_000_000);
        overdue.came_back();
        assert_eq!(overdue.patience_nanos(at(0), WINDOW), 100_000_000);
    }

    #[test]
    fn a_request_kept_from_others_what_part_of_the_window_it_was() {
        let kept = |cost| Overdue::kept_from_others(30_000_000, cost, WINDOW);
        assert_eq!(kept(COST), DiskTime::from_nanos(2_000_000));
        assert_eq!(kept(DiskTime::from_nanos(5_000_000)), DiskTime::from_nanos(30_000_000));
    }
}
