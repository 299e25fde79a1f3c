//! What mixes of reads and writes cost alongside what their parts cost alone.
//!
//! Decision: `docs/decisions/0006-mix-prices.md`.

/// Prices of a table, at equal steps of the part of writes, of which the first is of reads alone.
/// Between two neighbours the edge of the region is straight; fewer prices follow a curved edge
/// less closely.
pub const MIX_PRICES: usize = 33;
/// The price at which a mix costs what its parts cost alone, in units of 2^-20.
pub const PRICE_ONE: u32 = 1 << PRICE_BITS;
/// Bits behind the point of a part and of a price, which makes a part exact to one millionth. The
/// highest price times this scale fits into 32 bits.
pub(crate) const PRICE_BITS: u32 = 20;
/// The factor by which a mix is served faster than its parts at most; lower prices count as this
/// one. It bounds what a region that is wrong lets through.
const SPEEDUP_MAX: u32 = 4;
/// The factor by which a mix is served slower than its parts at most; higher prices count as this
/// one. It bounds how slow a region that is wrong makes a disk.
const SLOWDOWN_MAX: u32 = 16;
/// The steps between the prices of a table, one fewer than there are prices.
const STEPS: u64 = MIX_PRICES as u64 - 1;

/// How much longer a disk takes for a mix of reads and writes than for its
/// parts alone, by the part of writes in their disk time.
///
/// It is a region of loads seen from the origin: what the disk serves of a mix
/// in a second is one second of disk time divided by the mix's price. Between
/// two neighbours in the table the edge of the region is straight.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MixPrices {
    by_write_part: [u32; MIX_PRICES],
}

impl MixPrices {
    /// The price of every mix where it is what the parts cost alone.
    pub const PLAIN: Self = Self { by_write_part: [PRICE_ONE; MIX_PRICES] };

    /// A table of prices, from reads alone to writes alone; [`PRICE_ONE`] is a
    /// price of 1. Those below a quarter of it, or above 16 times, count as
    /// such.
    pub fn new(prices: [u32; MIX_PRICES]) -> Self {
        let range = PRICE_ONE / SPEEDUP_MAX..=PRICE_ONE * SLOWDOWN_MAX;
        Self { by_write_part: prices.map(|price| price.clamp(*range.start(), *range.end())) }
    }

    /// The table, from reads alone to writes alone.
    pub const fn prices(&self) -> &[u32; MIX_PRICES] {
        &self.by_write_part
    }

    /// The price of a mix with so much of its disk time in writes: from 0 to
    /// [`PRICE_ONE`], which stands for all.
    pub fn at(&self, write_part: u32) -> u32 {
        interpolated(write_part, |step| self.by_write_part[step])
    }
}

/// The price at `write_part` from the table whose entries `price` names.
pub(crate) fn interpolated(write_part: u32, price: impl Fn(usize) -> u32) -> u32 {
    let place = u64::from(write_part.min(PRICE_ONE)) * STEPS;
    let step = (place >> PRICE_BITS).min(STEPS - 1);
    let beyond = (place - (step << PRICE_BITS)) as i64;
    let (low, high) = (i64::from(price(step as usize)), i64::from(price(step as usize + 1)));
    (low + (((high - low) * beyond) >> PRICE_BITS)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_edge_between_two_neighbours_is_straight() {
        let prices = MixPrices::new(core::array::from_fn(|step| PRICE_ONE + 1000 * step as u32));
        for step in 0..MIX_PRICES as u32 {
            assert_eq!(prices.at(PRICE_ONE / 32 * step), PRICE_ONE + 1000 * step);
        }
        for part in (0..=PRICE_ONE).step_by(777) {
            let exact = f64::from(PRICE_ONE) + 32_000.0 * f64::from(part) / f64::from(PRICE_ONE);
            let error = f64::from(prices.at(part)) - exact;
            assert!((-1.0..=0.0).contains(&error), "{part}: {error}");
        }
        assert_eq!(prices.at(u32::MAX), prices.at(PRICE_ONE));
    }

    #[test]
    fn a_table_that_falls_is_read_like_one_that_rises() {
        let rising: [u32; MIX_PRICES] = core::array::from_fn(|step| PRICE_ONE + 999 * step as u32);
        let mut falling = rising;
        falling.reverse();
        let (rising, falling) = (MixPrices::new(rising), MixPrices::new(falling));
        for part in (0..=PRICE_ONE).step_by(777) {
            let difference = rising.at(part).abs_diff(falling.at(PRICE_ONE - part));
            assert!(difference <= 1, "{part}: {difference}");
        }
    }

    #[test]
    fn prices_that_no_disk_has_are_bounded() {
        let prices =
            MixPrices::new(core::array::from_fn(|step| if step < 16 { 0 } else { u32::MAX }));
        assert_eq!((prices.at(0), prices.at(PRICE_ONE)), (PRICE_ONE / 4, PRICE_ONE * 16));
        assert_eq!(MixPrices::PLAIN.at(PRICE_ONE / 3), PRICE_ONE);
    }
}
