//! Upper limits of a class or a group of classes, beside its shares.

use crate::budget::Pace;
use crate::cost::{BANDWIDTH_MAX, IOPS_MAX};
use crate::sync::{AtomicU64, Ordering};
use crate::{DiskTime, Time};

/// A limit lets through, at once, what it allows in this time.
const BURST: DiskTime = DiskTime::from_nanos(10_000_000);
const SCALE_BITS: u32 = 24;

/// Upper limits of a class, or of a group of classes together, over all shards.
///
/// They are paid afterwards: a request goes while nothing is owed, so that the
/// rate is exact over time and may be exceeded by 10 ms worth plus one request
/// per shard at any moment. A changed limit holds from then on: of what was owed
/// under the old one, 10 ms remain at most. Discards move no bytes: they count as
/// operations only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Bytes per second, reads and writes together; `None` is unlimited.
    pub bytes_per_second: Option<u64>,
    /// Requests per second; `None` is unlimited.
    pub operations_per_second: Option<u64>,
}

impl Limits {
    /// Whether each limit that is set is in `1..=BANDWIDTH_MAX` and `1..=IOPS_MAX`.
    pub(crate) fn is_valid(&self) -> bool {
        self.bytes_per_second.is_none_or(|rate| (1..=BANDWIDTH_MAX).contains(&rate))
            && self.operations_per_second.is_none_or(|rate| (1..=IOPS_MAX).contains(&rate))
    }
}

/// The limits of one node, in force.
#[derive(Debug)]
pub(crate) struct Limiter {
    bytes: Meter,
    operations: Meter,
}

impl Limiter {
    pub(crate) fn new() -> Self {
        Self { bytes: Meter::new(), operations: Meter::new() }
    }

    pub(crate) fn set(&self, limits: &Limits) {
        self.bytes.set(limits.bytes_per_second);
        self.operations.set(limits.operations_per_second);
    }

    /// When a request may go, if not now.
    pub(crate) fn closed_until(&self, now: Time) -> Option<Time> {
        self.bytes.closed_until(now).max(self.operations.closed_until(now))
    }

    pub(crate) fn charge(&self, now: Time, bytes: u64) {
        self.bytes.charge(now, bytes);
        self.operations.charge(now, 1);
    }
}

#[derive(Debug)]
struct Meter {
    /// Time per item, in units of 1/64 ns scaled by 2^24; zero is unlimited.
    per_item: AtomicU64,
    /// The time per item that what is owed was charged by.
    charged_by: AtomicU64,
    pace: Pace,
}

impl Meter {
    fn new() -> Self {
        let [per_item, charged_by] = [0, 0].map(AtomicU64::new);
        Self { per_item, charged_by, pace: Pace::new(false) }
    }

    fn set(&self, rate: Option<u64>) {
        let per_item = rate.map_or(0, |rate| (DiskTime::UNITS_PER_SECOND << SCALE_BITS) / rate);
        self.per_item.store(per_item, Ordering::Release);
        if per_item == 0 {
            self.charged_by.store(0, Ordering::Release);
        }
    }

    #[inline]
    fn closed_until(&self, now: Time) -> Option<Time> {
        let per_item = self.per_item.load(Ordering::Acquire);
        if per_item == 0 { None } else { self.open_from(now, per_item) }
    }

    #[inline(never)]
    fn open_from(&self, now: Time, per_item: u64) -> Option<Time> {
        self.restate(now, per_item);
        let open = self.pace.available_at(now, BURST, DiskTime::from_units(1));
        (open > now).then_some(open)
    }

    /// Of what is owed since another limit was in force one burst remains: who
    /// changes limits often shall get no more by it. Nothing is owed since
    /// there was none.
    fn restate(&self, now: Time, per_item: u64) {
        let by = self.charged_by.load(Ordering::Acquire);
        let (done, seen) = (Ordering::AcqRel, Ordering::Relaxed);
        if by != per_item && self.charged_by.compare_exchange(by, per_item, done, seen).is_ok() {
            self.pace.forgive(now, if by == 0 { DiskTime::ZERO } else { BURST.plus(BURST) });
        }
    }

    #[inline]
    fn charge(&self, now: Time, items: u64) {
        let per_item = self.per_item.load(Ordering::Acquire);
        if per_item != 0 && items != 0 {
            self.charge_by(per_item, now, items);
        }
    }

    #[inline(never)]
    fn charge_by(&self, per_item: u64, now: Time, items: u64) {
        let units = (u128::from(per_item) * u128::from(items)) >> SCALE_BITS;
        let units = u64::try_from(units).unwrap_or(u64::MAX);
        self.pace.take(now, DiskTime::from_units(units));
        if self.per_item.load(Ordering::Acquire) != per_item {
            // the limit was changed meanwhile: this may be owed by the old one
            self.charged_by.store(per_item, Ordering::Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn served(limits: &Limits, bytes: u64, seconds: u64) -> u64 {
        let limiter = Limiter::new();
        limiter.set(limits);
        let (mut now, mut count) = (Time::ZERO, 0);
        loop {
            if let Some(open) = limiter.closed_until(now) {
                now = open;
            }
            if now >= Time::from_nanos(seconds * 1_000_000_000) {
                return count;
            }
            limiter.charge(now, bytes);
            count += 1;
        }
    }

    #[test]
    fn each_limit_binds_and_the_tighter_one_wins() {
        let bytes = Limits { bytes_per_second: Some(100 << 20), operations_per_second: None };
        // 8 requests of 128 KiB are a MiB, plus 10 ms of burst
        assert_eq!(served(&bytes, 131_072, 10), 8_008);
        let operations = Limits { bytes_per_second: None, operations_per_second: Some(1_000) };
        assert_eq!(served(&operations, 131_072, 10), 10_010);
        let both = Limits { operations_per_second: Some(500), ..bytes };
        assert_eq!(served(&both, 131_072, 10), 5_005);
    }

    #[test]
    fn no_limit_means_no_wait() {
        let limiter = Limiter::new();
        limiter.charge(Time::ZERO, u64::MAX);
        assert_eq!(limiter.closed_until(Time::ZERO), None);
        assert!(!Limits { bytes_per_second: Some(0), ..Limits::default() }.is_valid());
    }
}
