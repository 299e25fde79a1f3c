//! What disk time costs now: how much longer the disk takes than its model says, and than if this
//! process had it alone.

use crate::DiskTime;
use crate::mix_prices::{PRICE_BITS, PRICE_ONE};
use crate::sync::{AtomicU64, Ordering};

/// The effective goals that a price above one may make a request cost at most, unless it costs more
/// without it. They are a window by the figures. Where the price is wrong the disk is empty for
/// that time.
const PRICED_GOALS: u64 = 2;

/// The whole disk, in the unit of parts.
const WHOLE: u64 = 1_000_000;
/// The largest part, as a multiple of what the figures say: a pace beyond sixteen times the figures does
/// not bind.
const WHOLES_MAX: u64 = 16;

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

/// A part in millionths of the figures; zero while the disk is this process's alone.
#[derive(Debug, Default)]
pub(super) struct Part {
    millionths: AtomicU64,
}

impl Part {
    /// Puts another part in force, or none. Returns the one before and the new one.
    pub(super) fn put_in_force(&self, millionths: Option<u32>) -> (u64, u64) {
        let next = millionths.map_or(0, |part| u64::from(part).clamp(1, WHOLES_MAX * WHOLE));
        let before = self.millionths.swap(next, Ordering::Relaxed);
        let whole = |part| if part == 0 { WHOLE } else { part };
        (whole(before), whole(next))
    }

    #[inline]
    pub(super) fn is_in_force(&self) -> bool {
        self.millionths.load(Ordering::Relaxed) != 0
    }

    /// For how long a pace of this part is busy with what the whole disk does in `time`.
    #[inline]
    pub(super) fn stretch(&self, time: DiskTime) -> DiskTime {
        match self.millionths.load(Ordering::Relaxed) {
            0 => time,
            part => stretched(time, part),
        }
    }

    /// This part of a window; all of it while the disk is this process's alone.
    pub(super) fn of_window(&self, window: u64) -> u64 {
        match self.millionths.load(Ordering::Relaxed) {
            0 => window,
            part => scaled_units(window, part, WHOLE).max(1),
        }
    }
}

#[cold]
fn stretched(time: DiskTime, part: u64) -> DiskTime {
    DiskTime::from_units(scaled_units(time.units(), WHOLE, part))
}

/// `units * factor / divisor`.
pub(super) fn scaled_units(units: u64, factor: u64, divisor: u64) -> u64 {
    let scaled = u128::from(units) * u128::from(factor) / u128::from(divisor);
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
    fn dearer_requests_are_admitted_less() {
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

    #[test]
    fn a_part_slows_the_pace_and_shrinks_the_window_alike() {
        let part = Part::default();
        let time = DiskTime::from_units(1_000);
        let seen = |part: &Part| (part.stretch(time).units(), part.of_window(1_000));
        assert_eq!(seen(&part), (1_000, 1_000));
        for (millionths, stretched, window) in
            [(250_000, 4_000, 250), (2_000_000, 500, 2_000), (0, 1_000_000_000, 1)]
        {
            part.put_in_force(Some(millionths));
            assert_eq!(seen(&part), (stretched, window));
        }
        part.put_in_force(Some(u32::MAX));
        assert_eq!(part.of_window(1_000), 16_000);
        assert_eq!(part.of_window(u64::MAX), u64::MAX);
        assert_eq!((part.put_in_force(None), part.is_in_force()), ((16_000_000, 1_000_000), false));
    }
}
