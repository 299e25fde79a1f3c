//! The rate at which a policy hands out disk time, with a bounded burst. Its state is one atomic number, by
//! the generic cell rate algorithm (GCRA; ITU-T I.371, annex A).
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
/// `paid_at` is the time at which all disk time handed out so far is paid for (the *theoretical arrival time*
/// of GCRA). The time from now to `paid_at` is the *debt*. More is handed out while the debt is less than one
/// burst. Nothing is rounded, so the rate is exact whatever the times of the calls are.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    paid_at: Tally,
}

impl Pace {
    /// A pace that has handed out nothing. `sole` is true if a single shard takes from it.
    pub(crate) fn new(sole: bool) -> Self {
        Self { paid_at: Tally::new(sole) }
    }

    /// Disk time that may be handed out now, at most `burst`. While it is not zero, a request may take more
    /// than this, as debt.
    pub(crate) fn available(&self, now: Time, burst: DiskTime) -> DiskTime {
        let paid_at = self.paid_at.load(Ordering::Relaxed);
        let now = clock_units(now);
        DiskTime::from_units(now.saturating_add(burst.units()).saturating_sub(paid_at.max(now)))
    }

    /// Whether any disk time may be handed out now.
    #[inline]
    pub(super) fn is_open(&self, now: Time, burst: DiskTime) -> bool {
        let limit = clock_units(now).saturating_add(burst.units());
        self.paid_at.load(Ordering::Relaxed) < limit
    }

    /// The first time, from `now` on, at which `wanted` is available. A `wanted` above `burst` counts as
    /// `burst`.
    pub(crate) fn available_at(&self, now: Time, burst: DiskTime, wanted: DiskTime) -> Time {
        let paid_at = self.paid_at.load(Ordering::Relaxed);
        let units = paid_at.saturating_add(wanted.min(burst).units()).saturating_sub(burst.units());
        Time::from_nanos(DiskTime::from_units(units).as_nanos_ceil()).max(now)
    }

    /// Takes `amount` if any disk time is available, and returns whether it did. What exceeds the available
    /// part becomes debt.
    pub(crate) fn try_take(&self, now: Time, burst: DiskTime, amount: DiskTime) -> bool {
        self.try_take_from(now, (burst, DiskTime::ZERO), amount)
    }

    /// Like [`Pace::try_take`], with missed pace credit: it first takes disk time of the last `passed` before
    /// now that was not handed out.
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

    /// Reduces the debt to at most `left`. Returns the forgiven disk time.
    pub(crate) fn forgive(&self, now: Time, left: DiskTime) -> DiskTime {
        let most = clock_units(now).saturating_add(left.units());
        // always stores, even an unchanged value: a read-modify-write sees the latest value of other threads
        let before = self.paid_at.update(|paid_at| Some(paid_at.min(most)));
        DiskTime::from_units(before.map_or(0, |before| before.saturating_sub(most)))
    }

    /// Multiplies the debt by `before / next`.
    pub(super) fn rescale(&self, now: Time, before: u64, next: u64) {
        let now = clock_units(now);
        let owed = |paid_at: u64| scaled_units(paid_at.saturating_sub(now), before, next);
        self.paid_at.update(|at| Some(if at > now { now.saturating_add(owed(at)) } else { at }));
    }

    /// The time at which all disk time handed out is paid for, in units of disk time.
    pub(super) fn paid_at(&self) -> u64 {
        self.paid_at.load(Ordering::Relaxed)
    }

    /// Takes `amount`, even if nothing is available.
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
    /// `sole` is true if a single shard takes from it.
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

    /// Whether any disk time is available.
    #[inline]
    pub(super) fn is_open(&self, now: Time, burst: DiskTime) -> bool {
        match self {
            Self::Pace(pace) => pace.is_open(now, burst),
            _ => self.available(now, burst) > DiskTime::ZERO,
        }
    }

    /// The time at which `wanted` is available; `None` if that takes completions.
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

    /// The time at which the rate opened, or will open; [`Time::MAX`] if it is not a pace.
    pub(super) fn open_since(&self, burst: DiskTime) -> Time {
        match self {
            Self::Pace(pace) => pace.available_at(Time::ZERO, burst, DiskTime::from_units(1)),
            _ => Time::MAX,
        }
    }

    /// Takes `amount` if any disk time is available, as [`Pace::try_take_from`].
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

    /// A number that changes whenever something is taken; `None` if the rate is not a pace.
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

    /// Units of disk time handed out in `span` nanoseconds to requests of `cost`, with a poll every
    /// `interval` nanoseconds.
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
