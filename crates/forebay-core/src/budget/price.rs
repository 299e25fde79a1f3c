//! The price of disk time: by which factor the disk takes longer now than its model says. It depends on the
//! mix of reads and writes, and on the part of the disk that this process has.

use crate::disk_model::{self, MIX_PRICES, PRICE_BITS, PRICE_ONE};
use crate::sync::{AtomicU32, AtomicU64, Ordering};
use crate::{DiskTime, MixPrices, Time};

/// The most that a price above one makes the pace charge for a request, in effective goals; its plain cost if
/// that is more. It is a window by the figures. If the price is wrong, the disk is empty for that time.
const PRICED_GOALS: u64 = 2;

/// The whole disk in millionths, the unit of parts.
const WHOLE: u64 = 1_000_000;
/// The largest part, in whole disks by the figures. A pace beyond sixteen times the figures does not bind.
const WHOLES_MAX: u64 = 16;

/// A price and its inverse, both in units of 2^-20.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Price {
    price: u32,
    inverse: u32,
}

impl Price {
    pub(super) const fn of(price: u32) -> Self {
        let inverse = (1 << (2 * PRICE_BITS)) / if price == 0 { 1 } else { price as u64 };
        let inverse = if inverse > u32::MAX as u64 { u32::MAX } else { inverse as u32 };
        Self { price, inverse }
    }

    /// The price of a pace that is slower by one part in `one_in`.
    pub(super) const fn slower_by(self, one_in: u32) -> Self {
        Self::of(self.price.saturating_add(self.price / one_in))
    }

    /// Price and inverse in one word, so that a request reads both at once.
    fn packed(self) -> u64 {
        u64::from(self.price) << 32 | u64::from(self.inverse)
    }

    #[inline]
    fn unpacked(word: u64) -> Self {
        Self { price: (word >> 32) as u32, inverse: word as u32 }
    }

    /// The disk time that the pace charges for a request of this cost. The price raises it to at most
    /// [`PRICED_GOALS`] effective goals.
    #[inline]
    pub(super) fn time_of(self, cost: DiskTime, goal: DiskTime) -> DiskTime {
        if self.price == PRICE_ONE {
            return cost;
        }
        let most = goal.units().saturating_mul(PRICED_GOALS).max(cost.units());
        DiskTime::from_units(times(cost.units(), self.price).min(most))
    }

    /// The time for which the disk was busy with `units` of disk time, in the same units.
    pub(super) fn busy_for(self, units: u64) -> u64 {
        times(units, self.price)
    }

    /// The disk time that the disk completes in `time`, in the same units.
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

/// The part of the disk that this process has, in millionths of the figures; zero while it has the disk
/// alone.
#[derive(Debug, Default)]
pub(super) struct Part {
    millionths: AtomicU64,
}

impl Part {
    /// Sets the part, clamped to 1 to 16 million; `None` if this process has the disk alone. Returns the part
    /// before and the new one, where the disk alone is one million.
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

    /// The time that a pace of this part takes for what the whole disk does in `time`.
    #[inline]
    pub(super) fn stretch(&self, time: DiskTime) -> DiskTime {
        match self.millionths.load(Ordering::Relaxed) {
            0 => time,
            part => stretched(time, part),
        }
    }

    /// This part of a window, at least one unit; the whole window while this process has the disk alone.
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

/// `units * factor / divisor`, rounded down.
pub(super) fn scaled_units(units: u64, factor: u64, divisor: u64) -> u64 {
    let scaled = u128::from(units) * u128::from(factor) / u128::from(divisor);
    u64::try_from(scaled).unwrap_or(u64::MAX)
}

/// A load is a mix if it had reads and writes within this time, in nanoseconds (100 ms). After a longer time
/// without one direction, the other has its plain price.
const TOGETHER_NANOS: u64 = 100_000_000;
/// The most disk time that is averaged at once, in units (1 s); more counts as this. It keeps the
/// products of the average within 64 bits.
const SAMPLE_MAX: u64 = DiskTime::UNITS_PER_SECOND;

/// Disk time that was dispatched, in units, before prices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Dispatched {
    pub(crate) reads: u64,
    pub(crate) writes: u64,
}

/// The mix of reads and writes of a group, which its queues report from time to time.
///
/// The part of writes passes two averages in series, each over about one window of disk time. So requests
/// that alternate hardly move it. After two windows without one direction, the mix is the other direction
/// alone. So a load does not pay for the tail of an average.
#[derive(Debug)]
pub(super) struct Mix {
    /// The price of the present mix, a packed [`Price`].
    price: AtomicU64,
    prices: [AtomicU32; MIX_PRICES],
    /// A packed [`Average`].
    average: AtomicU64,
    /// When the latest reads, and the latest writes, were reported, in nanoseconds plus one; zero if never.
    read_at: AtomicU64,
    written_at: AtomicU64,
}

impl Mix {
    pub(super) fn new(prices: Option<&MixPrices>) -> Self {
        let mix = Self {
            price: AtomicU64::new(Price::of(PRICE_ONE).packed()),
            prices: core::array::from_fn(|_| AtomicU32::new(PRICE_ONE)),
            average: AtomicU64::new(0),
            read_at: AtomicU64::new(0),
            written_at: AtomicU64::new(0),
        };
        mix.set_prices(prices);
        mix
    }

    /// Replaces the table of prices, for the next reports; `None` for plain prices, at once.
    pub(super) fn set_prices(&self, prices: Option<&MixPrices>) {
        let table = prices.map_or(MixPrices::PLAIN.prices(), MixPrices::prices);
        for (to, &from) in self.prices.iter().zip(table) {
            to.store(from, Ordering::Relaxed);
        }
        if prices.is_none() {
            self.set_price(PRICE_ONE);
        }
    }

    /// The price of the present mix.
    #[inline]
    pub(super) fn price(&self) -> Price {
        Price::unpacked(self.price.load(Ordering::Relaxed))
    }

    /// Stores only another price than before, because all shards read it.
    fn set_price(&self, price: u32) {
        let word = Price::of(price).packed();
        if self.price.load(Ordering::Relaxed) != word {
            self.price.store(word, Ordering::Relaxed);
        }
    }

    /// Counts what the caller dispatched since its last call, and averages the mix over `window`. Returns the
    /// price from now on.
    pub(super) fn note(&self, now: Time, dispatched: Dispatched, window: DiskTime) -> u32 {
        let Dispatched { reads, writes } = dispatched;
        if reads > 0 {
            self.read_at.store(now.as_nanos().saturating_add(1), Ordering::Relaxed);
        }
        if writes > 0 {
            self.written_at.store(now.as_nanos().saturating_add(1), Ordering::Relaxed);
        }
        let (reads, writes) = (reads.min(SAMPLE_MAX), writes.min(SAMPLE_MAX));
        let window = window.units().clamp(1, SAMPLE_MAX);
        let average = self.average(reads, writes, window);
        let is_mix = is_recent(&self.read_at, now) && is_recent(&self.written_at, now);
        let price = if is_mix {
            let at_step = |step: usize| self.prices[step].load(Ordering::Relaxed);
            disk_model::interpolated(average.twice as u32, at_step)
        } else {
            PRICE_ONE
        };
        self.set_price(price);
        price
    }

    fn average(&self, reads: u64, writes: u64, window: u64) -> Average {
        let next = |seen: u64| Average::unpacked(seen).with(reads, writes, window);
        let order = Ordering::Relaxed;
        let before = self.average.fetch_update(order, order, |seen| Some(next(seen).packed()));
        next(before.unwrap_or(0))
    }
}

fn is_recent(moment: &AtomicU64, now: Time) -> bool {
    let moment = moment.load(Ordering::Relaxed);
    moment > 0 && now.nanos_since(Time::from_nanos(moment - 1)) <= TOGETHER_NANOS
}

/// The averages of the part of writes, in units of 2^-20, and the disk time since each direction.
#[derive(Clone, Copy, Debug)]
struct Average {
    once: u64,
    twice: u64,
    /// Disk time since there were reads, and since there were writes, in 256ths of a window.
    without_reads: u64,
    without_writes: u64,
}

/// Encoding: The bits of a part of writes in a packed average, one more than `PRICE_BITS` because the part
/// may be one.
const PART_BITS: u32 = PRICE_BITS + 1;
/// Encoding: The bits of a disk time without one direction in a packed average.
const WITHOUT_BITS: u32 = 11;
/// Encoding: The longest disk time without one direction that a packed average holds, in 256ths of a window.
const WITHOUT_MAX: u64 = (1 << WITHOUT_BITS) - 1;
/// The bits of the number of parts that a window is divided into (256 parts). Two windows of parts have to
/// fit into a packed average. Fewer parts would round away what a queue reports at a time, which is a
/// sixteenth of a window.
const WINDOW_PARTS_BITS: u32 = 8;
/// The disk time without one direction after which a load is the other direction alone, in 256ths of a window
/// (2 windows). With less, requests that alternate would be no mix. With more, a load pays for the tail of
/// the average. This costs a load that alternates each 100 ms more than all else.
const SINGLE_DIRECTION_AFTER: u64 = 2 << WINDOW_PARTS_BITS;

impl Average {
    const fn unpacked(packed: u64) -> Self {
        Self {
            once: packed & ((1 << PART_BITS) - 1),
            twice: packed >> PART_BITS & ((1 << PART_BITS) - 1),
            without_reads: packed >> (2 * PART_BITS) & WITHOUT_MAX,
            without_writes: packed >> (2 * PART_BITS + WITHOUT_BITS),
        }
    }

    const fn packed(self) -> u64 {
        self.once
            | self.twice << PART_BITS
            | self.without_reads << (2 * PART_BITS)
            | self.without_writes << (2 * PART_BITS + WITHOUT_BITS)
    }

    /// The averages after this much more disk time, in units.
    fn with(self, reads: u64, writes: u64, window: u64) -> Self {
        let sum = reads + writes;
        let part = (writes << PRICE_BITS) / sum.max(1);
        let weight = (sum << PRICE_BITS) / (window + sum);
        let once = moved(self.once, part, weight);
        let twice = moved(self.twice, once, weight);
        let time = (sum << WINDOW_PARTS_BITS) / window;
        let without = |before: u64, now| if now > 0 { 0 } else { (before + time).min(WITHOUT_MAX) };
        let without_reads = without(self.without_reads, reads);
        let without_writes = without(self.without_writes, writes);
        let (once, twice) = match () {
            () if without_reads > SINGLE_DIRECTION_AFTER => (PRICE_ONE.into(), PRICE_ONE.into()),
            () if without_writes > SINGLE_DIRECTION_AFTER => (0, 0),
            () => (once, twice),
        };
        Self { once, twice, without_reads, without_writes }
    }
}

/// `from`, moved towards `to` by the part `weight`. None of them is above 2^20.
fn moved(from: u64, to: u64, weight: u64) -> u64 {
    if to >= from {
        from + (((to - from) * weight) >> PRICE_BITS)
    } else {
        from - (((from - to) * weight) >> PRICE_BITS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_price_of_one_changes_no_amount() {
        let price = Price::unpacked(Price::of(PRICE_ONE).packed());
        for units in [0, 1, 12_345, 1 << 60, u64::MAX] {
            assert_eq!(price.time_of(DiskTime::from_units(units), DiskTime::MAX).units(), units);
            assert_eq!(price.done_in(units), units);
        }
    }

    #[test]
    fn dearer_requests_are_admitted_less() {
        for price in [PRICE_ONE / 4, PRICE_ONE / 2, 2_472_000, PRICE_ONE * 16] {
            let current = Price::unpacked(Price::of(price).packed());
            let factor = f64::from(price) / f64::from(PRICE_ONE);
            for units in [1_000_000, 96_000_000, 1 << 50] {
                let cost = DiskTime::from_units(units);
                let time = current.time_of(cost, DiskTime::MAX).units() as f64;
                assert!((time / units as f64 / factor - 1.0).abs() < 1e-5, "{price}, {units}");
                let done = current.done_in(units) as f64;
                assert!((done / units as f64 * factor - 1.0).abs() < 2e-5, "{price}, {units}");
            }
            assert_eq!(current.time_of(DiskTime::ZERO, DiskTime::MAX), DiskTime::ZERO);
        }
    }

    #[test]
    fn a_high_price_leaves_the_disk_empty_for_a_window_only() {
        let goal = DiskTime::from_units(1_000_000);
        let [small, one, large] = [1, 1_000_000, 9_000_000].map(DiskTime::from_units);
        let current = Price::of(PRICE_ONE * 300);
        assert_eq!(current.time_of(small, goal).units(), 300);
        assert_eq!(current.time_of(one, goal).units(), PRICED_GOALS * goal.units());
        assert_eq!(current.time_of(large, goal), large);
        let current = Price::of(PRICE_ONE / 2);
        assert_eq!(current.time_of(large, goal).units(), large.units() / 2);
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

    const WINDOW: DiskTime = DiskTime::from_nanos(1_500_000);

    /// The table of (u^p + (1 - u)^p)^(1/p).
    fn norm(p: f64) -> MixPrices {
        MixPrices::new(core::array::from_fn(|step| {
            let part = step as f64 / 32.0;
            let price = (part.powf(p) + (1.0 - part).powf(p)).powf(1.0 / p);
            (price * f64::from(PRICE_ONE)).round() as u32
        }))
    }

    fn nanos(reads: u64, writes: u64) -> Dispatched {
        let units = |nanos| DiskTime::from_nanos(nanos).units();
        Dispatched { reads: units(reads), writes: units(writes) }
    }

    /// What is charged per disk time, for reads of 7 us and writes of `write` nanoseconds. Writes have the
    /// part `part` of the disk time, and each request is reported alone.
    fn charged(prices: &MixPrices, part: f64, write: u64) -> f64 {
        let mix = Mix::new(Some(prices));
        let (mut now, mut price) = (0, PRICE_ONE);
        let (mut reads, mut writes, mut paid) = (0, 0, 0.0);
        for step in 0..200_000 {
            let is_write = writes as f64 * (1.0 - part) <= reads as f64 * part;
            let (cost, next) =
                if is_write { (write, nanos(0, write)) } else { (7_000, nanos(7_000, 0)) };
            if step > 20_000 {
                paid += cost as f64 * f64::from(price);
                *(if is_write { &mut writes } else { &mut reads }) += cost;
            }
            now += cost;
            price = mix.note(Time::from_nanos(now), next, WINDOW);
            if step <= 20_000 {
                *(if is_write { &mut writes } else { &mut reads }) += cost;
            }
            if step == 20_000 {
                (reads, writes) = (0, 0);
            }
        }
        paid / f64::from(PRICE_ONE) / (reads + writes) as f64
    }

    #[test]
    fn a_steady_mix_is_charged_its_price_to_one_percent() {
        for p in [0.4, 1.0, 2.0, 60.0] {
            let prices = norm(p);
            for part in [0.125, 0.25, 0.5, 0.75, 0.9375] {
                for write in [10_000, 50_000, 220_000] {
                    let exact = f64::from(prices.at((part * f64::from(PRICE_ONE)) as u32));
                    let error = charged(&prices, part, write) * f64::from(PRICE_ONE) / exact - 1.0;
                    assert!(error.abs() < 0.01, "p {p}, {part} in {write} ns: off by {error}");
                }
            }
        }
    }

    #[test]
    fn plain_prices_are_exactly_one_whatever_the_mix() {
        let mix = Mix::new(Some(&norm(1.0)));
        for step in 1..10_000_u64 {
            let dispatched = nanos(step * 7_919 % 300_000, step * 104_729 % 5_000_000);
            let price = mix.note(Time::from_nanos(step * 100_000), dispatched, WINDOW);
            assert_eq!(price, PRICE_ONE, "{step}");
        }
    }

    #[test]
    fn one_direction_alone_has_its_plain_rate() {
        let mut prices = *norm(0.4).prices();
        (prices[0], prices[32]) = (PRICE_ONE * 2, PRICE_ONE * 3);
        let mix = Mix::new(Some(&MixPrices::new(prices)));
        let at = |millis: u64| Time::from_nanos(millis * 1_000_000);
        for millis in 0..50 {
            assert_eq!(mix.note(at(millis), nanos(100_000, 0), WINDOW), PRICE_ONE);
        }
        assert!(mix.note(at(50), nanos(0, 100_000), WINDOW) > PRICE_ONE);
        for millis in 51..149 {
            assert!(mix.note(at(millis), nanos(0, 5_000_000), WINDOW) > PRICE_ONE, "{millis}");
        }
        for millis in 150..200 {
            assert_eq!(mix.note(at(millis), nanos(0, 5_000_000), WINDOW), PRICE_ONE, "{millis}");
        }
    }

    #[test]
    fn another_load_is_another_mix_after_a_few_windows() {
        let mix = Mix::new(Some(&norm(0.4)));
        let price = |reads, writes| mix.note(Time::from_nanos(1), nanos(reads, writes), WINDOW);
        (0..100).for_each(|_| _ = price(100_000, 0));
        let half = f64::from(norm(0.4).at(PRICE_ONE / 2));
        let last = (0..50).fold(0, |_, _| price(75_000, 75_000));
        assert!(f64::from(last) > 0.95 * half, "after five windows {last} of {half}");
    }

    #[test]
    fn absurd_amounts_keep_the_mix_within_its_bounds() {
        let mix = Mix::new(Some(&norm(0.4)));
        let amounts = [0, 1, 1 << 20, 1 << 40, u64::MAX];
        for reads in amounts {
            for writes in amounts {
                for window in amounts {
                    let now = Time::MAX;
                    let dispatched = Dispatched { reads, writes };
                    let price = mix.note(now, dispatched, DiskTime::from_units(window));
                    assert!((PRICE_ONE / 4..=PRICE_ONE * 16).contains(&price));
                    let average = Average::unpacked(mix.average.load(Ordering::Relaxed));
                    assert!(average.once <= 1 << 20 && average.twice <= 1 << 20);
                    assert_eq!(Average::unpacked(average.packed()).packed(), average.packed());
                }
            }
        }
    }

    #[test]
    fn prices_that_are_taken_back_are_plain_again() {
        let mix = Mix::new(Some(&norm(0.4)));
        mix.set_prices(None);
        assert_eq!(mix.note(Time::ZERO, nanos(1000, 1000), WINDOW), PRICE_ONE);
    }
}
