//! The model of a disk: the costs of requests of each kind, and the prices of mixes of reads and writes.
//!
//! Decision: `docs/decisions/0006-mix-prices.md`.

use alloc::boxed::Box;
use core::fmt;

use crate::cost::{IOPS_SIZE_DEFAULT, SATURATION_LENGTH_DEFAULT};
use crate::{Access, CostCurve, CostError, DiskTime, Op};

/// Longest request that the engine sends to a disk in one piece, in bytes (16 MiB). Longer ones are
/// split, so that the disk can serve others in between.
pub const REQUEST_LEN_MAX: u64 = 16 << 20;
/// Shortest piece that a request is split into, in bytes: the smallest sector of a disk.
pub const REQUEST_LEN_MIN: u64 = 512;
/// The bandwidth of discards until it is measured, as a multiple of that of writes. Both are published of one
/// disk, that of an AWS i3.2xlarge: it takes some 5 ms to discard a GiB and 1.5 s to write one. So discards
/// of large files cost something, but far less than writes.
pub const DISCARD_SPEEDUP: u64 = 256;

/// The four figures of a disk (Seastar's io-properties), each per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskRates {
    /// Small reads per second.
    pub read_iops: u64,
    /// Small writes per second.
    pub write_iops: u64,
    /// Bytes read per second.
    pub read_bandwidth: u64,
    /// Bytes written per second.
    pub write_bandwidth: u64,
}

/// Why the figures of a disk make no model, and in which direction.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ModelError {
    /// [`Op::Read`] or [`Op::Write`].
    pub direction: Op,
    /// What is wrong with its figures.
    pub cause: CostError,
}

crate::error_text::debug_as_display!(ModelError);

impl fmt::Display for ModelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let direction = if self.direction.is_write() { "writes" } else { "reads" };
        write!(f, "{direction}: {}", self.cause)
    }
}

impl core::error::Error for ModelError {}

/// The costs of requests on one disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskModel {
    read: CostCurve,
    write: CostCurve,
    discard: Box<CostCurve>,
    flush: DiskTime,
    /// The costs of reads and writes that begin where another one ended, if they differ.
    sequential: Option<Box<[CostCurve; 2]>>,
    /// The size of a sector in bytes, a power of two, less one.
    sector_mask: u64,
    mixes: Option<Box<MixPrices>>,
}

impl DiskModel {
    /// A model of two measured curves. A flush costs one small write. A discard costs one small write for
    /// each command, and its bytes at [`DISCARD_SPEEDUP`] times the bandwidth of large writes.
    /// [`DiskModel::with_flush`] and [`DiskModel::with_discard`] replace these costs.
    pub fn new(read: CostCurve, write: CostCurve) -> Self {
        let operation = write.cost(0);
        let discard = Box::new(write.of_commands(operation, DISCARD_SPEEDUP));
        Self {
            read,
            write,
            discard,
            flush: operation,
            sequential: None,
            sector_mask: 0,
            mixes: None,
        }
    }

    /// The model of a disk known by its four figures, with the usual sizes: operations are measured at 4 KiB,
    /// and bandwidth is reached at 128 KiB.
    ///
    /// # Errors
    /// A figure is zero or above the range of [`CostCurve::two_point`].
    pub fn from_rates(rates: &DiskRates) -> Result<Self, ModelError> {
        Self::from_rates_saturating(rates, SATURATION_LENGTH_DEFAULT, SATURATION_LENGTH_DEFAULT)
    }

    /// As [`DiskModel::from_rates`], with the sizes, in bytes, from which reads and writes reach their
    /// bandwidth.
    ///
    /// # Errors
    /// As for [`DiskModel::from_rates`]; also a saturation length of at most 4096.
    pub fn from_rates_saturating(
        rates: &DiskRates,
        read_saturation: u64,
        write_saturation: u64,
    ) -> Result<Self, ModelError> {
        let curve = |direction, iops, bandwidth, saturation| {
            CostCurve::two_point(iops, bandwidth, IOPS_SIZE_DEFAULT, saturation)
                .map_err(|cause| ModelError { direction, cause })
        };
        let read = curve(Op::Read, rates.read_iops, rates.read_bandwidth, read_saturation)?;
        let write = curve(Op::Write, rates.write_iops, rates.write_bandwidth, write_saturation)?;
        Ok(Self::new(read, write))
    }

    /// The model of the four figures by Seastar's cost, the sum of operation and bytes: see
    /// [`CostCurve::sum`].
    ///
    /// # Errors
    /// As for [`DiskModel::from_rates`].
    pub fn from_rates_summed(rates: &DiskRates) -> Result<Self, ModelError> {
        let curve = |direction, iops, bandwidth| {
            CostCurve::sum(iops, bandwidth).map_err(|cause| ModelError { direction, cause })
        };
        Ok(Self::new(
            curve(Op::Read, rates.read_iops, rates.read_bandwidth)?,
            curve(Op::Write, rates.write_iops, rates.write_bandwidth)?,
        ))
    }

    /// The model of a disk that is not measured: 10 us per operation up to 4 KiB, and 1 GB/s from 128 KiB on.
    /// It prices requests, so that shares work. It says nothing about what the disk can do, so use it with
    /// [`Policy::Unlimited`](crate::Policy::Unlimited).
    pub fn unmeasured() -> Self {
        let points = [(IOPS_SIZE_DEFAULT, 100_000), (SATURATION_LENGTH_DEFAULT, 7_629)];
        let curve = CostCurve::ladder(&points)
            .unwrap_or_else(|_| CostCurve::flat(DiskTime::from_nanos(10_000)));
        Self::new(curve.clone(), curve)
    }

    /// The same model with a measured cost per flush.
    #[must_use]
    pub fn with_flush(mut self, cost: DiskTime) -> Self {
        self.flush = cost;
        self
    }

    /// The same model with a measured cost of discards by size, for one command each.
    #[must_use]
    pub fn with_discard(mut self, curve: CostCurve) -> Self {
        self.discard = Box::new(curve);
        self
    }

    /// The same model of a disk that seeks. Requests that begin where another one ended have this cost, if it
    /// is less: see [`IoQueue::enqueue`](crate::IoQueue::enqueue).
    #[must_use]
    pub fn with_sequential(mut self, read: CostCurve, write: CostCurve) -> Self {
        self.sequential = Some(Box::new([read, write]));
        self
    }

    /// The same model of a disk that reads and writes whole sectors of `bytes`, rounded up to a power of two.
    /// A part of a sector costs as much as the whole sector.
    #[must_use]
    pub fn with_sector(mut self, bytes: u64) -> Self {
        self.sector_mask = bytes.checked_next_power_of_two().map_or(0, |sector| sector - 1);
        self
    }

    /// The same model of a disk that takes longer or shorter for mixes of reads and writes than for either
    /// alone. The prices change pace and window of [`Policy::PaceWindow`](crate::Policy::PaceWindow). The
    /// costs that classes are charged stay the same.
    #[must_use]
    pub fn with_mix_prices(mut self, prices: Option<MixPrices>) -> Self {
        self.mixes = prices.map(Box::new);
        self
    }

    /// The prices of mixes, if they are known.
    pub fn mix_prices(&self) -> Option<&MixPrices> {
        self.mixes.as_deref()
    }

    /// `bytes`, rounded up to whole sectors.
    const fn sectors(&self, bytes: u64) -> u64 {
        bytes.saturating_add(self.sector_mask) & !self.sector_mask
    }

    /// The cost of a request of `bytes`. A flush costs the same whatever it covers.
    pub fn cost(&self, op: Op, bytes: u64) -> DiskTime {
        match op {
            Op::Read => self.read.cost(self.sectors(bytes)),
            Op::Write => self.write.cost(self.sectors(bytes)),
            Op::Discard => self.discard.cost(bytes),
            Op::Flush => self.flush,
        }
    }

    /// The cost of a discard of `bytes` in this many `commands` of equal size; zero commands count as one.
    pub fn discard_cost(&self, bytes: u64, commands: u32) -> DiskTime {
        let commands = u64::from(commands.max(1));
        let one = self.discard.cost(bytes / commands);
        DiskTime::from_units(one.units().saturating_mul(commands)).min(CostCurve::MAX)
    }

    /// The cost of a request of `bytes`, whatever its place.
    pub fn access_cost(&self, access: &Access, bytes: u64) -> DiskTime {
        match access.op {
            Op::Discard => self.discard_cost(bytes, access.commands),
            op => self.cost(op, bytes),
        }
    }

    /// The cost of a request of `bytes` that begins where another one ended.
    pub fn sequential_cost(&self, op: Op, bytes: u64) -> DiskTime {
        let cost = self.cost(op, bytes);
        match (&self.sequential, op) {
            (Some(curves), Op::Read | Op::Write) => {
                cost.min(curves[op.index()].cost(self.sectors(bytes)))
            }
            _ => cost,
        }
    }

    /// Whether costs depend on the place of a request.
    #[inline]
    pub const fn seeks(&self) -> bool {
        self.sequential.is_some()
    }

    /// The cost of `bytes` at full bandwidth, without the operation.
    #[cfg(feature = "history")]
    pub(crate) fn bytes_cost(&self, op: Op, bytes: u64) -> DiskTime {
        match op {
            Op::Read => self.read.bytes_cost(self.sectors(bytes)),
            Op::Write => self.write.bytes_cost(self.sectors(bytes)),
            Op::Discard => self.discard.bytes_cost(bytes),
            Op::Flush => DiskTime::ZERO,
        }
    }

    /// The cost of `bytes` read or written, whichever is dearer.
    pub fn max_cost(&self, bytes: u64) -> DiskTime {
        self.cost(Op::Read, bytes).max(self.cost(Op::Write, bytes))
    }

    /// The largest power of two, from 512 bytes to 16 MiB, that costs at most `limit`; 512 bytes if even that
    /// costs more.
    pub fn largest_request(&self, op: Op, limit: DiskTime) -> u64 {
        self.part_max(op, REQUEST_LEN_MAX, limit)
    }

    /// The largest size of the parts of a request of `bytes`: as [`largest_request`](Self::largest_request),
    /// but at most the power of two that holds the whole request.
    pub(crate) fn part_max(&self, op: Op, bytes: u64, limit: DiskTime) -> u64 {
        let bytes = bytes.clamp(REQUEST_LEN_MIN, REQUEST_LEN_MAX);
        let mut len = bytes.next_power_of_two();
        while len > REQUEST_LEN_MIN && self.cost(op, len) > limit {
            len /= 2;
        }
        len
    }
}

/// The number of prices of a table, at equal steps of the part of writes. The first one is of reads alone,
/// the last one of writes alone. Between two neighbours the edge of the region is straight; fewer prices
/// follow a curved edge less closely.
pub const MIX_PRICES: usize = 33;
/// The price at which a mix costs what its parts cost alone, in units of 2^-20.
pub const PRICE_ONE: u32 = 1 << PRICE_BITS;
/// Fraction bits of a part and of a price, so that a part is exact to one millionth. The highest price times
/// this scale fits into 32 bits.
pub(crate) const PRICE_BITS: u32 = 20;
/// The largest factor by which a mix is served faster than its parts; lower prices count as this one. It
/// bounds what a wrong region lets through.
const SPEEDUP_MAX: u32 = 4;
/// The largest factor by which a mix is served slower than its parts; higher prices count as this one. It
/// bounds how slow a wrong region makes a disk.
const SLOWDOWN_MAX: u32 = 16;
/// The steps between the prices of a table, one fewer than there are prices.
const STEPS: u64 = MIX_PRICES as u64 - 1;

/// The prices of mixes of reads and writes, by the part of writes in their disk time. A price is the factor
/// by which a disk takes longer for a mix than for its parts alone.
///
/// The prices describe a region of loads. In a second the disk serves of a mix one second of disk time,
/// divided by the price of the mix. Between two neighbours in the table the edge of the region is straight.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MixPrices {
    by_write_part: [u32; MIX_PRICES],
}

impl MixPrices {
    /// A price of 1 for each mix, which then costs what its parts cost alone.
    pub const PLAIN: Self = Self { by_write_part: [PRICE_ONE; MIX_PRICES] };

    /// A table of prices, from reads alone to writes alone, in units of 1 / [`PRICE_ONE`]. Prices below 1/4
    /// count as 1/4, and those above 16 as 16.
    pub fn new(prices: [u32; MIX_PRICES]) -> Self {
        let range = PRICE_ONE / SPEEDUP_MAX..=PRICE_ONE * SLOWDOWN_MAX;
        Self { by_write_part: prices.map(|price| price.clamp(*range.start(), *range.end())) }
    }

    /// The table, from reads alone to writes alone.
    pub const fn prices(&self) -> &[u32; MIX_PRICES] {
        &self.by_write_part
    }

    /// The price of a mix with this part of its disk time in writes, from 0 for none to [`PRICE_ONE`] for
    /// all. A larger part counts as all.
    pub fn at(&self, write_part: u32) -> u32 {
        interpolated(write_part, |step| self.by_write_part[step])
    }
}

/// The price at `write_part`, interpolated in the table that `price` reads.
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

    const RATES: DiskRates = DiskRates {
        read_iops: 5_000,
        write_iops: 2_500,
        read_bandwidth: 500_000_000,
        write_bandwidth: 250_000_000,
    };

    #[test]
    fn a_flush_and_a_discard_cost_a_small_write_and_its_bytes_until_measured() {
        let model = DiskModel::from_rates(&RATES).unwrap();
        let small_write = model.cost(Op::Write, 512);
        assert_eq!(model.cost(Op::Flush, 0), small_write);
        assert_eq!(model.cost(Op::Discard, 0), small_write);
        let bytes = model.cost(Op::Discard, 1 << 30).minus(small_write).units();
        let written = model.cost(Op::Write, 1 << 30).units();
        assert!((bytes * DISCARD_SPEEDUP).abs_diff(written) < written / 1000, "{bytes} {written}");
        let measured = model
            .with_flush(DiskTime::from_nanos(7))
            .with_discard(CostCurve::flat(DiskTime::from_nanos(9)));
        assert_eq!(measured.cost(Op::Flush, 4096), DiskTime::from_nanos(7));
        assert_eq!(measured.cost(Op::Discard, 4096), DiskTime::from_nanos(9));
    }

    #[test]
    fn a_discard_of_many_commands_costs_each_of_them_and_the_bytes() {
        let discard = CostCurve::sum(50_000, 200 << 30).unwrap();
        let model = DiskModel::from_rates(&RATES).unwrap().with_discard(discard);
        for (bytes, commands, micros) in [
            (0, 1, 20),
            (0, 0, 20),
            (1 << 30, 1, 5020),
            (1 << 30, 1024, 25_480),
            (32 << 20, 32, 796),
        ] {
            let cost = model.discard_cost(bytes, commands).as_nanos_ceil();
            assert!(
                cost.abs_diff(micros * 1000) < 1000 + cost / 1000,
                "{bytes} {commands}: {cost}"
            );
            let access = Op::Discard.commands(commands);
            assert_eq!(model.access_cost(&access, bytes), model.discard_cost(bytes, commands));
        }
        assert_eq!(model.discard_cost(u64::MAX, u32::MAX), CostCurve::MAX);
    }

    #[test]
    fn a_part_of_a_sector_costs_all_of_it() {
        let plain = DiskModel::from_rates(&RATES).unwrap();
        for sector in [512, 4096, 16_384] {
            let model = plain.clone().with_sector(sector);
            for op in [Op::Read, Op::Write] {
                for bytes in [1, sector - 1, sector, sector + 1, 100_000, u64::MAX] {
                    let whole = bytes.checked_next_multiple_of(sector).unwrap_or(u64::MAX);
                    assert_eq!(model.cost(op, bytes), plain.cost(op, whole), "{sector} {bytes}");
                }
                assert_eq!(model.cost(op, 0), plain.cost(op, 0));
            }
            assert_eq!(model.cost(Op::Discard, 1), plain.cost(Op::Discard, 1));
        }
        assert_eq!(plain.clone().with_sector(1), plain);
    }

    #[test]
    fn the_largest_request_is_a_power_of_two_within_the_limit() {
        let model = DiskModel::from_rates(&RATES).unwrap();
        // 750 us at 500 MB/s are 375,000 bytes
        let goal = DiskTime::from_nanos(750_000);
        assert_eq!(model.largest_request(Op::Read, goal), 262_144);
        assert_eq!(model.largest_request(Op::Write, goal), 131_072);
        assert_eq!(model.largest_request(Op::Write, DiskTime::ZERO), REQUEST_LEN_MIN);
        assert_eq!(model.largest_request(Op::Write, DiskTime::MAX), REQUEST_LEN_MAX);
    }

    #[test]
    fn the_direction_with_a_bad_figure_is_named() {
        let error = DiskModel::from_rates(&DiskRates { write_iops: 0, ..RATES }).unwrap_err();
        assert_eq!(error, ModelError { direction: Op::Write, cause: CostError::ZeroRate });
    }

    #[test]
    fn an_unmeasured_disk_has_a_price_for_everything() {
        let model = DiskModel::unmeasured();
        assert_eq!(model.cost(Op::Read, 4096), DiskTime::from_nanos(10_000));
        assert!(model.cost(Op::Write, 131_072) > model.cost(Op::Write, 65_536));
    }

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
