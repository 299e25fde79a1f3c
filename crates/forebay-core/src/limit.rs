//! Upper limits on the rate of a class or a group of classes.

use crate::budget::Pace;
use crate::cost::{BANDWIDTH_MAX, IOPS_MAX};
use crate::sync::{AtomicU64, Ordering};
use crate::{DiskTime, Time};

/// The burst of a limit, as time at its rate (10 ms). A shorter burst holds back requests of threads that
/// poll late; a longer one exceeds the rate by more at a time.
const BURST: DiskTime = DiskTime::from_nanos(10_000_000);
/// Fraction bits of the time per byte or request at a limit. With fewer, the rate of a high limit would be
/// rounded more.
const SCALE_BITS: u32 = 24;
/// After a change of a limit that forgave debt, no change forgives more for this multiple of the forgiven
/// time. So limits that change all the time let through a tenth more at most.
const FORGIVEN_EVERY: u64 = 10;

/// Upper limits of a class, or of a group of classes together, over all shards.
///
/// A request is charged when it is dispatched, and may be dispatched while the debt is less than 10 ms at the
/// rate of the limit. So the rate is exact over time, and is exceeded at any moment by at most 10 ms worth
/// and one request per shard.
///
/// A changed limit holds at once. Debt under the old limit delays requests for at most 10 ms more; the rest
/// is forgiven. Debt is forgiven again only after ten times the forgiven time has passed. Until then it has
/// to be paid, whatever the limit is changed to. So frequent changes gain at most a tenth. A limit that is
/// removed leaves no debt. Discards move no bytes, so they count as operations only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Bytes per second, reads and writes together, from 1 to [`BANDWIDTH_MAX`]; `None` is unlimited.
    pub bytes_per_second: Option<u64>,
    /// Requests per second, from 1 to [`IOPS_MAX`]; `None` is unlimited.
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
#[derive(Debug, Default)]
pub(crate) struct Limiter {
    bytes: Meter,
    operations: Meter,
}

impl Limiter {
    pub(crate) fn set(&self, limits: &Limits) {
        self.bytes.set(limits.bytes_per_second);
        self.operations.set(limits.operations_per_second);
    }

    /// The time at which a request may be dispatched; `None` if it may be now.
    pub(crate) fn closed_until(&self, now: Time) -> Option<Time> {
        self.bytes.closed_until(now).max(self.operations.closed_until(now))
    }

    pub(crate) fn charge(&self, now: Time, bytes: u64) {
        self.bytes.charge(now, bytes);
        self.operations.charge(now, 1);
    }
}

#[derive(Debug, Default)]
struct Meter {
    /// Time per item, in 2^-24 of a unit of disk time; zero is unlimited.
    per_item: AtomicU64,
    /// The time per item by which the present debt was charged.
    charged_by: AtomicU64,
    /// The time from which a change forgives debt again, in nanoseconds.
    forgives_from: AtomicU64,
    pace: Pace,
}

impl Meter {
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
        self.rescale_tag(now, per_item);
        let open = self.pace.available_at(now, BURST, DiskTime::from_units(1));
        (open > now).then_some(open)
    }

    /// If the limit has changed, reduces the debt to two bursts, so that requests wait for at most one. If
    /// there was no limit, forgives all debt.
    fn rescale_tag(&self, now: Time, per_item: u64) {
        let by = self.charged_by.load(Ordering::Acquire);
        let (done, seen) = (Ordering::AcqRel, Ordering::Relaxed);
        if by == per_item || self.charged_by.compare_exchange(by, per_item, done, seen).is_err() {
            return;
        }
        if by == 0 {
            self.pace.forgive(now, DiskTime::ZERO);
            self.forgives_from.store(0, Ordering::Relaxed);
        } else if now.as_nanos() >= self.forgives_from.load(Ordering::Relaxed) {
            // not each time, or limits that change all the time would let much more through
            let forgiven = self.pace.forgive(now, BURST.plus(BURST));
            let pause = forgiven.as_nanos_ceil().saturating_mul(FORGIVEN_EVERY);
            self.forgives_from.store(now.plus_nanos(pause).as_nanos(), Ordering::Relaxed);
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
            // the limit has changed meanwhile: this may be debt under the old one
            self.charged_by.store(per_item, Ordering::Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use super::*;

    fn served(limits: &Limits, bytes: u64, seconds: u64) -> u64 {
        let limiter = Limiter::default();
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

    /// Requests served in `seconds` if the limits take turns every `period` milliseconds.
    fn served_by_turns(limits: &[Limits; 2], period: u64, bytes: u64, seconds: u64) -> u64 {
        let limiter = Limiter::default();
        let mut count = 0;
        for turn in 0..seconds * 1_000 / period {
            let next = Time::from_nanos((turn + 1) * period * 1_000_000);
            let mut now = Time::from_nanos(turn * period * 1_000_000);
            limiter.set(&limits[turn as usize % 2]);
            loop {
                now = limiter.closed_until(now).unwrap_or(now);
                if now >= next {
                    break;
                }
                limiter.charge(now, bytes);
                count += 1;
            }
        }
        count
    }

    #[test]
    fn changing_a_limit_often_gains_at_most_a_tenth() {
        const SECONDS: u64 = 20;
        let bytes = |rate| Limits { bytes_per_second: Some(rate), ..Limits::default() };
        let operations = |rate| Limits { operations_per_second: Some(rate), ..Limits::default() };
        for period in [1, 10, 50, 100] {
            for size in (12..=20).map(|bits| 1 << bits) {
                for rate in [1, 3, 10, 100].map(|rate| rate * 1_000_000) {
                    let limits = [bytes(rate), bytes(rate + rate / 1_000)];
                    let served = size * served_by_turns(&limits, period, size, SECONDS);
                    let case = format!("{rate} B/s, {size} bytes, every {period} ms: {served}");
                    assert!(served <= rate * SECONDS * 11 / 10 + rate / 50 + 3 * size, "{case}");
                    assert!(served + size >= rate * SECONDS, "{case}");
                }
            }
            for rate in [10, 30, 100, 1_000] {
                let limits = [operations(rate), operations(rate + 1)];
                let served = served_by_turns(&limits, period, 4096, SECONDS);
                let case = format!("{rate} per second, every {period} ms: {served}");
                assert!(served <= (rate + 1) * SECONDS * 11 / 10 + rate / 50 + 3, "{case}");
                assert!(served + 1 >= rate * SECONDS, "{case}");
            }
        }
    }

    #[test]
    fn limits_far_apart_by_turns_let_no_more_through_than_the_higher_one() {
        let bytes = |rate| Limits { bytes_per_second: Some(rate), ..Limits::default() };
        for period in [1, 10, 50, 100] {
            for size in [4096, 131_072, 1 << 20, 16 << 20] {
                for times in [2, 10, 100] {
                    let (low, high) = (1_000_000, 1_000_000 * times);
                    let limits = [bytes(low), bytes(high)];
                    let served = size * served_by_turns(&limits, period, size, 20);
                    let most = high * 20 * 11 / 10 + high / 50 + 3 * size;
                    assert!(served <= most, "{low} and {high} B/s, {size}, {period} ms: {served}");
                }
            }
        }
    }

    #[test]
    fn no_limit_means_no_wait() {
        let limiter = Limiter::default();
        limiter.charge(Time::ZERO, u64::MAX);
        assert_eq!(limiter.closed_until(Time::ZERO), None);
        assert!(!Limits { bytes_per_second: Some(0), ..Limits::default() }.is_valid());
    }
}
