//! What disk time costs now: how much longer the disk takes than its model says.

use crate::DiskTime;
use crate::mix_prices::{PRICE_BITS, PRICE_ONE};
use crate::sync::{AtomicU64, Ordering};

/// The effective goals that a price above one may make a request cost at most, unless it costs more
/// without it. They are a window by the figures. Where the price is wrong the disk is empty for
/// that time.
const PRICED_GOALS: u64 = 2;

/// A price and its inverse in one word, so that a request reads both at once.
#[derive(Debug)]
pub(super) struct CurrentPrice {
    word: AtomicU64,
}

/// A price as it was at some moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Price {
    price: u32,
    inverse: u32,
}

impl CurrentPrice {
    /// A price of one.
    pub(super) fn new() -> Self {
        Self { word: AtomicU64::new(Price::of(PRICE_ONE).packed()) }
    }

    #[inline]
    pub(super) fn get(&self) -> Price {
        Price::unpacked(self.word.load(Ordering::Relaxed))
    }

    /// Stores nothing where nothing changes: all shards read it.
    pub(super) fn set(&self, price: u32) {
        let word = Price::of(price).packed();
        if self.word.load(Ordering::Relaxed) != word {
            self.word.store(word, Ordering::Relaxed);
        }
    }
}

impl Price {
    pub(super) const fn of(price: u32) -> Self {
        let inverse = (1 << (2 * PRICE_BITS)) / if price == 0 { 1 } else { price as u64 };
        let inverse = if inverse > u32::MAX as u64 { u32::MAX } else { inverse as u32 };
        Self { price, inverse }
    }

    /// A price by which a pace is slower by this part.
    pub(super) const fn slower_by(self, one_in: u32) -> Self {
        Self::of(self.price.saturating_add(self.price / one_in))
    }

    fn packed(self) -> u64 {
        u64::from(self.price) << 32 | u64::from(self.inverse)
    }

    #[inline]
    fn unpacked(word: u64) -> Self {
        Self { price: (word >> 32) as u32, inverse: word as u32 }
    }

    /// For how long the disk is busy with a request of this cost, of which the
    /// price makes no more than a few times the effective `goal`.
    #[inline]
    pub(super) fn time_of(self, cost: DiskTime, goal: DiskTime) -> DiskTime {
        if self.price == PRICE_ONE {
            return cost;
        }
        let most = goal.units().saturating_mul(PRICED_GOALS).max(cost.units());
        DiskTime::from_units(times(cost.units(), self.price).min(most))
    }

    /// For how long the disk was busy with so much disk time.
    pub(super) fn busy_for(self, units: u64) -> u64 {
        times(units, self.price)
    }

    /// How much disk time the disk does in so long.
    #[inline]
    pub(super) fn done_in(self, time: u64) -> u64 {
        times(time, self.inverse)
    }
}

#[inline]
fn times(units: u64, factor: u32) -> u64 {
    if factor == PRICE_ONE {
        return units;
    }
    let scaled = (u128::from(units) * u128::from(factor)) >> PRICE_BITS;
    u64::try_from(scaled).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_price_of_one_changes_no_amount() {
        let price = CurrentPrice::new().get();
        for units in [0, 1, 12_345, 1 << 60, u64::MAX] {
            assert_eq!(price.time_of(DiskTime::from_units(units), DiskTime::MAX).units(), units);
            assert_eq!(price.done_in(units), units);
        }
    }

    #[test]
    fn what_costs_more_is_let_in_less() {
        let current = CurrentPrice::new();
        for price in [PRICE_ONE / 4, PRICE_ONE / 2, 2_472_000, PRICE_ONE * 16] {
            current.set(price);
            let factor = f64::from(price) / f64::from(PRICE_ONE);
            for units in [1_000_000, 96_000_000, 1 << 50] {
                let cost = DiskTime::from_units(units);
                let time = current.get().time_of(cost, DiskTime::MAX).units() as f64;
                assert!((time / units as f64 / factor - 1.0).abs() < 1e-5, "{price}, {units}");
                let done = current.get().done_in(units) as f64;
                assert!((done / units as f64 * factor - 1.0).abs() < 2e-5, "{price}, {units}");
            }
            assert_eq!(current.get().time_of(DiskTime::ZERO, DiskTime::MAX), DiskTime::ZERO);
        }
    }

    #[test]
    fn a_high_price_leaves_the_disk_empty_for_a_window_only() {
        let current = CurrentPrice::new();
        let goal = DiskTime::from_units(1_000_000);
        let [small, one, large] = [1, 1_000_000, 9_000_000].map(DiskTime::from_units);
        current.set(PRICE_ONE * 300);
        assert_eq!(current.get().time_of(small, goal).units(), 300);
        assert_eq!(current.get().time_of(one, goal).units(), PRICED_GOALS * goal.units());
        assert_eq!(current.get().time_of(large, goal), large);
        current.set(PRICE_ONE / 2);
        assert_eq!(current.get().time_of(large, goal).units(), large.units() / 2);
    }
}
