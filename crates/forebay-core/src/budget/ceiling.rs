//! When figures bind the pace, and are not prices alone.

use super::price::Price;
use crate::sync::{AtomicBool, AtomicU64, Ordering, get, set};

/// A burst may be over where work waits and the disk does at most this, in thousandths of its
/// figures. At a smaller number figures that are slightly too low never bind; at a larger one they
/// bind while the burst lasts.
const BURST_END_PERMILLE: u64 = 1100;
/// The periods in a row, with work that waits and no more than `BURST_END_PERMILLE`, after which a
/// burst is over. A period is 20 to 200 ms, so a short slow phase of a disk does not end its burst.
/// With more periods requests wait longer in the disk, which knows no shares.
const BURST_END_PERIODS: u64 = 5;
/// After a burst the pace is slower than the figures by one part in this many (3 %), so that the
/// disk finishes what the burst left in it, such as a full write buffer. A larger number makes that
/// take longer; a smaller one costs more rate.
const DRAIN_PART: u32 = 32;

/// When the figures of a disk are a ceiling, and not prices alone: requests are let through at one
/// second of disk time per second then, whatever the disk does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ceiling {
    /// Never: trials find what the disk does.
    #[default]
    Never,
    /// Once a burst is over, which credits or a write buffer allow: from the moment that the disk does
    /// no more than its figures while work waits, until no work waits. Requests that the disk cannot
    /// do then wait in the queue, by shares, and not in the disk.
    AfterBurst,
    /// Always: the owner of the disk sets it.
    Always,
}

/// Whether the figures bind the pace now.
#[derive(Debug, Default)]
pub(super) struct FiguresBound {
    binds: AtomicBool,
    follows_burst: AtomicBool,
    /// Periods in a row in which the disk did no more than its figures.
    slow_periods: AtomicU64,
}

impl FiguresBound {
    /// The one in force, set again, changes nothing.
    pub(super) fn set(&self, ceiling: Ceiling) {
        let follows = ceiling == Ceiling::AfterBurst;
        if self.follows_burst.swap(follows, Ordering::Relaxed) && follows {
            return;
        }
        self.binds.store(ceiling == Ceiling::Always, Ordering::Relaxed);
        set(&self.slow_periods, 0);
    }

    /// What disk time costs where the figures bind and cost `price`; `None` where they do not bind.
    #[inline]
    pub(super) fn price(&self, price: impl FnOnce() -> Price) -> Option<Price> {
        self.binds.load(Ordering::Relaxed).then(|| {
            match self.follows_burst.load(Ordering::Relaxed) {
                true => price().slower_by(DRAIN_PART),
                false => price(),
            }
        })
    }

    /// In a period the disk did so much, in thousandths of its figures, and work waited or not.
    pub(super) fn end_period(&self, speed_permille: u64, waited: bool) {
        if !self.follows_burst.load(Ordering::Relaxed) {
            return;
        }
        let is_slow = waited && speed_permille <= BURST_END_PERMILLE;
        let periods = if is_slow { get(&self.slow_periods).saturating_add(1) } else { 0 };
        set(&self.slow_periods, periods);
        self.binds.store(periods >= BURST_END_PERIODS, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PRICE_ONE;

    fn binds(bound: &FiguresBound) -> bool {
        bound.price(|| Price::of(PRICE_ONE)).is_some()
    }

    #[test]
    fn figures_bind_from_the_end_of_a_burst_until_no_work_waits() {
        let bound = FiguresBound::default();
        bound.set(Ceiling::AfterBurst);
        let period = |delivered, waited| {
            bound.end_period(delivered, waited);
            binds(&bound)
        };
        assert!(!(0..100).any(|_| period(5_000, true)), "in the burst");
        assert!(!(0..100).any(|_| period(500, false)), "no work waits");
        assert!(!(0..100).any(|at| period(if at % 4 == 3 { 2_000 } else { 1_000 }, true)));
        let bound_at = (1..=10).find(|_| period(1_050, true));
        assert_eq!(bound_at, Some(BURST_END_PERIODS as i32));
        assert!((0..100).all(|_| period(1_000, true)));
        bound.set(Ceiling::AfterBurst);
        assert!(binds(&bound), "set again");
        let slower = PRICE_ONE + PRICE_ONE / DRAIN_PART;
        assert_eq!(bound.price(|| Price::of(PRICE_ONE)), Some(Price::of(slower)));
        assert!(!period(900, false));
    }

    #[test]
    fn a_ceiling_binds_always_and_prices_never() {
        let bound = FiguresBound::default();
        for (ceiling, expected) in [(Ceiling::Always, true), (Ceiling::Never, false)] {
            bound.set(ceiling);
            for waited in [true, false] {
                (0..10).for_each(|_| bound.end_period(1_000, waited));
                assert_eq!(binds(&bound), expected, "{ceiling:?}");
            }
        }
    }
}
