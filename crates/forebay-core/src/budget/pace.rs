//! How fast a policy hands out disk time: a rate with a bounded burst, in one atomic, by the generic
//! cell rate algorithm (ITU-T I.371, annex A).
//!
//! Decision: `docs/decisions/0016-missed-pace.md`.

use super::policy::Policy;
#[cfg(feature = "history")]
use super::policy::TwoLevelBucket;
use super::price::scaled_units;
use crate::sync::{Ordering, Tally};
use crate::{DiskTime, Time};

/// Hands out one unit of disk time per unit of time.
///
/// Holds the moment at which all that was handed out so far is paid for (the
/// *theoretical arrival time* of ATM's GCRA). More is handed out while that
/// moment is less than one burst ahead of now. Nothing is rounded, so the rate
/// is exact however irregularly it is asked.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    paid_at: Tally,
}

impl Pace {
    /// Nothing handed out; `sole` if a single shard takes from it.
    pub(crate) fn new(sole: bool) -> Self {
        Self { paid_at: Tally::new(sole) }
    }

    /// What may be handed out now, up to `burst`; more goes on credit with it.
    pub(crate) fn available(&self, now: Time, burst: DiskTime) -> DiskTime {
        let paid_at = self.paid_at.load(Ordering::Relaxed);
        let now = clock_units(now);
        DiskTime::from_units(now.saturating_add(burst.units()).saturating_sub(paid_at.max(now)))
    }

    /// Whether anything may be handed out now.
    #[inline]
    pub(super) fn is_open(&self, now: Time, burst: DiskTime) -> bool {
        let limit = clock_units(now).saturating_add(burst.units());
        self.paid_at.load(Ordering::Relaxed) < limit
    }

    /// When at least `wanted` will be available; now, if it is. A `wanted`
    /// above `burst` is never reached and counts as `burst`.
    pub(crate) fn available_at(&self, now: Time, burst: DiskTime, wanted: DiskTime) -> Time {
        let paid_at = self.paid_at.load(Ordering::Relaxed);
        let units = paid_at.saturating_add(wanted.min(burst).units()).saturating_sub(burst.units());
        Time::from_nanos(DiskTime::from_units(units).as_nanos_ceil()).max(now)
    }

    /// Takes `amount` if anything is available; what exceeds it is owed.
    pub(crate) fn try_take(&self, now: Time, burst: DiskTime, amount: DiskTime) -> bool {
        self.try_take_from(now, (burst, DiskTime::ZERO), amount)
    }

    /// The same, of time first that has `passed` before now without anybody
    /// taking it.
    #[inline]
    pub(super) fn try_take_from(
        &self,
        now: Time,
        (burst, passed): (DiskTime, DiskTime),
        amount: DiskTime,
    ) -> bool {
        let now = clock_units(now);
        let limit = now.saturating_add(burst.units());
        let from = now.saturating_sub(passed.units());
        let next = |paid_at: u64| paid_at.max(from).saturating_add(amount.units());
        self.paid_at.update(|paid_at| (paid_at < limit).then(|| next(paid_at))).is_some()
    }

    /// Of what was handed out and is not paid for, at most `left` remains.
    /// Returns how much was forgiven.
    pub(crate) fn forgive(&self, now: Time, left: DiskTime) -> DiskTime {
        let most = clock_units(now).saturating_add(left.units());
        // stored even where it stays: that reads what other threads have stored last
        let before = self.paid_at.update(|paid_at| Some(paid_at.min(most)));
        DiskTime::from_units(before.map_or(0, |before| before.saturating_sub(most)))
    }

    /// What was handed out and is not paid for takes `before / next` of its time from now on.
    pub(super) fn rescale(&self, now: Time, before: u64, next: u64) {
        let now = clock_units(now);
        let owed = |paid_at: u64| scaled_units(paid_at.saturating_sub(now), before, next);
        self.paid_at.update(|at| Some(if at > now { now.saturating_add(owed(at)) } else { at }));
    }

    /// Up to when, in units of disk time, all that was handed out is paid for.
    pub(super) fn paid_at(&self) -> u64 {
        self.paid_at.load(Ordering::Relaxed)
    }

    /// Takes `amount` whatever is available.
    pub(crate) fn take(&self, now: Time, amount: DiskTime) {
        self.try_take(now, DiskTime::MAX, amount);
    }
}

/// The rate of a policy.
#[derive(Debug)]
pub(super) enum Rate {
    Unlimited,
    Pace(Pace),
    #[cfg(feature = "history")]
    TwoLevel(TwoLevelBucket),
}

impl Rate {
    /// `sole` if a single shard takes from it.
    #[cfg_attr(not(feature = "history"), expect(unused_variables, reason = "for buckets"))]
    pub(super) fn new(policy: &Policy, burst: DiskTime, sole: bool) -> Self {
        match policy {
            Policy::Unlimited | Policy::Concurrency { .. } => Self::Unlimited,
            Policy::TokenBucket { .. } | Policy::PaceWindow { .. } => Self::Pace(Pace::new(sole)),
            #[cfg(feature = "history")]
            Policy::LittlesLaw { .. } => Self::Unlimited,
            #[cfg(feature = "history")]
            Policy::FlowRatio { .. } => Self::Pace(Pace::new(sole)),
            #[cfg(feature = "history")]
            Policy::TwoLevelBucket { .. } => Self::TwoLevel(TwoLevelBucket::new(burst)),
        }
    }

    pub(super) fn available(&self, now: Time, burst: DiskTime) -> DiskTime {
        match self {
            Self::Unlimited => burst,
            Self::Pace(pace) => pace.available(now, burst),
            #[cfg(feature = "history")]
            Self::TwoLevel(bucket) => bucket.available(now),
        }
    }

    /// Whether anything is available.
    #[inline]
    pub(super) fn is_open(&self, now: Time, burst: DiskTime) -> bool {
        match self {
            Self::Pace(pace) => pace.is_open(now, burst),
            _ => self.available(now, burst) > DiskTime::ZERO,
        }
    }

    /// When `wanted` is available, if time alone brings it about.
    pub(super) fn available_at(
        &self,
        now: Time,
        burst: DiskTime,
        wanted: DiskTime,
    ) -> Option<Time> {
        match self {
            Self::Unlimited => Some(now),
            Self::Pace(pace) => Some(pace.available_at(now, burst, wanted)),
            #[cfg(feature = "history")]
            Self::TwoLevel(bucket) => bucket.available_at(now, wanted),
        }
    }

    /// Since when, or from when on, anything is available.
    pub(super) fn open_since(&self, burst: DiskTime) -> Time {
        match self {
            Self::Pace(pace) => pace.available_at(Time::ZERO, burst, DiskTime::from_units(1)),
            _ => Time::MAX,
        }
    }

    /// Takes `amount` if anything is available, of what passed in vain first.
    #[inline]
    pub(super) fn try_take_from(
        &self,
        now: Time,
        (burst, passed): (DiskTime, DiskTime),
        amount: DiskTime,
    ) -> bool {
        match self {
            Self::Unlimited => true,
            Self::Pace(pace) => pace.try_take_from(now, (burst, passed), amount),
            #[cfg(feature = "history")]
            Self::TwoLevel(bucket) => bucket.try_take(now, amount),
        }
    }

    /// A number that changes whenever something is taken; `None` where what is
    /// taken is not counted.
    pub(super) fn spent(&self) -> Option<u64> {
        match self {
            Self::Pace(pace) => Some(pace.paid_at()),
            _ => None,
        }
    }

    #[cfg(feature = "history")]
    pub(super) fn completed(&self, amount: DiskTime) {
        if let Self::TwoLevel(bucket) = self {
            bucket.completed(amount);
        }
    }
}

fn clock_units(now: Time) -> u64 {
    now.as_nanos().saturating_mul(DiskTime::UNITS_PER_NANO)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BURST: DiskTime = DiskTime::from_nanos(750_000);

    /// Disk time handed out when asked every `interval` nanoseconds for `span`,
    /// in requests of `cost`.
    fn handed_out(interval: u64, span: u64, cost: DiskTime) -> u64 {
        let pace = Pace::new(false);
        while pace.try_take(Time::ZERO, BURST, cost) {}
        let mut taken = 0;
        for step in 1..=span / interval {
            let now = Time::from_nanos(step * interval);
            while pace.try_take(now, BURST, cost) {
                taken += cost.units();
            }
        }
        taken
    }

    #[test]
    fn any_interval_up_to_the_burst_gives_the_exact_rate() {
        let second = DiskTime::UNITS_PER_SECOND as f64;
        for interval in [100, 333, 1_000, 7_777, 50_000, 123_457, 500_000, 740_000] {
            for cost in [6_401, 475_456 / 7, 128_000] {
                let taken = handed_out(interval, 1_000_000_000, DiskTime::from_units(cost));
                let error = (taken as f64 / second - 1.0).abs();
                assert!(error < 0.001, "every {interval} ns in {cost}: off by {error}");
            }
        }
    }

    #[test]
    fn slower_polls_get_exactly_one_burst_each() {
        let cost = DiskTime::from_nanos(750_000 / 50);
        for interval in [800_000, 1_000_000, 10_000_000] {
            let taken = handed_out(interval, 1_000_000_000, cost);
            assert_eq!(taken, 1_000_000_000 / interval * BURST.units());
        }
    }

    #[test]
    fn an_oversized_request_is_paid_off_before_the_next() {
        let pace = Pace::new(false);
        let now = Time::from_nanos(1_000_000_000);
        assert!(pace.try_take(now, BURST, DiskTime::from_nanos(8_000_000)));
        assert!(!pace.try_take(now, BURST, DiskTime::from_nanos(1)));
        let open = pace.available_at(now, BURST, DiskTime::from_units(1));
        assert_eq!(open.nanos_since(now), 8_000_000 - 750_000 + 1);
        assert!(pace.try_take(open, BURST, DiskTime::from_nanos(1)));
    }

    #[test]
    fn what_is_owed_takes_longer_on_a_smaller_part() {
        let pace = Pace::new(false);
        let [now, later] = [1_000_000_000, 1_002_000_000].map(Time::from_nanos);
        assert!(pace.try_take(now, BURST, DiskTime::from_nanos(8_000_000)));
        pace.rescale(later, 4, 3);
        let open_after = |now| {
            let open = pace.available_at(now, BURST, DiskTime::from_units(1));
            open.nanos_since(now)
        };
        assert_eq!(open_after(later), 8_000_000 - 750_000 + 1);
        pace.rescale(later, 3, 4);
        assert_eq!(open_after(later), 6_000_000 - 750_000 + 1);
        pace.rescale(Time::from_nanos(2_000_000_000), 1, 9);
        assert_eq!(open_after(later), 6_000_000 - 750_000 + 1);
    }

    #[test]
    fn a_clock_that_steps_back_hands_out_nothing_twice() {
        let pace = Pace::new(false);
        let now = Time::from_nanos(1_000_000_000);
        while pace.try_take(now, BURST, DiskTime::from_nanos(1_000)) {}
        assert!(!pace.try_take(Time::from_nanos(5), BURST, DiskTime::from_nanos(1_000)));
        assert_eq!(pace.available(Time::from_nanos(5), BURST), DiskTime::ZERO);
    }
}
