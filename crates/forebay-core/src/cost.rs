//! What a request of a given size costs in disk time.
//!
//! Decision: `docs/decisions/0002-cost-is-disk-time.md`.

use core::fmt;

use crate::DiskTime;

/// Highest rate of operations that a model accepts, in operations per second. At this rate the cost of an
/// operation is exact to 0.1 %; at higher ones it would be less so.
pub const IOPS_MAX: u64 = 100_000_000;
/// Highest bandwidth that a model accepts, in bytes per second. At this bandwidth the cost of a byte is still
/// 2^20 of the units that store it, so it is exact to one millionth.
pub const BANDWIDTH_MAX: u64 = 1_000_000_000_000;
/// Most points of a measured ladder of sizes. It is the number of powers of two from 512 bytes to 16 MiB, the
/// shortest and the longest request. The cost of each request is searched among them.
pub const LADDER_POINTS_MAX: usize = 16;
/// The default size at which operations per second are measured, in bytes (4 KiB). Requests up to this size
/// cost one operation.
pub const IOPS_SIZE_DEFAULT: u64 = 4096;
/// The default size from which a disk reaches its bandwidth, in bytes (128 KiB). From this size on, requests
/// cost their bytes alone.
pub const SATURATION_LENGTH_DEFAULT: u64 = 128 * 1024;

/// The most that a single request costs, in units of disk time (208 days). It keeps sums of costs
/// far from the end of the number range.
const COST_MAX: u64 = 1 << 60;
/// Fraction bits of the cost of a byte. With fewer, the cost of a byte of a fast disk would be rounded more.
const SLOPE_BITS: u32 = 24;

/// Why figures do not make a cost curve.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum CostError {
    /// A rate of zero: nothing could ever be served.
    ZeroRate,
    /// More operations per second than [`IOPS_MAX`].
    IopsTooHigh(u64),
    /// More bytes per second than [`BANDWIDTH_MAX`].
    BandwidthTooHigh(u64),
    /// The size where bandwidth is reached is not above the size where the
    /// operations were measured: `(iops_size, saturation_length)`.
    SizesOutOfOrder(u64, u64),
    /// A ladder without points, or with more than [`LADDER_POINTS_MAX`].
    LadderLength(usize),
    /// The sizes of a ladder do not rise at this point (counted from zero).
    LadderOrder(usize),
}

crate::error_text::debug_as_display!(CostError);

impl fmt::Display for CostError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ZeroRate => write!(f, "a rate of zero: give at least 1 per second"),
            Self::IopsTooHigh(iops) => {
                write!(f, "{iops} operations per second: at most {IOPS_MAX} are supported")
            }
            Self::BandwidthTooHigh(rate) => {
                write!(f, "{rate} bytes per second: at most {BANDWIDTH_MAX} are supported")
            }
            Self::SizesOutOfOrder(small, large) => write!(
                f,
                "the saturation length {large} must be above the size {small} at which the \
                 operations per second were measured"
            ),
            Self::LadderLength(points) => {
                write!(f, "a ladder of {points} sizes: give 1 to {LADDER_POINTS_MAX}")
            }
            Self::LadderOrder(point) => {
                write!(f, "the size at point {point} of the ladder is not above the one before it")
            }
        }
    }
}

impl core::error::Error for CostError {}

/// A request of at least `bytes` costs `units`, plus `slope` for each byte beyond.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Segment {
    bytes: u64,
    units: u64,
    /// Units per byte, scaled by 2^24.
    slope: u64,
}

/// Disk time as a function of request size, for one direction: straight lines
/// between measured points, never falling.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CostCurve {
    segments: [Segment; LADDER_POINTS_MAX + 1],
    used: usize,
}

impl CostCurve {
    /// The most that a single request costs: 208 days of disk time.
    pub(crate) const MAX: DiskTime = DiskTime::from_units(COST_MAX);

    /// The curve of a disk known by two figures. Requests up to `iops_size` bytes cost `1 / iops`, and
    /// requests from `saturation_length` bytes on cost `bytes / bandwidth`. A straight line joins the two.
    ///
    /// Unlike the sum of both terms (see [`CostCurve::sum`]), a stream of either size gets the full rate that
    /// was measured with it. The figures contradict each other if `iops` requests of `saturation_length` per
    /// second fall short of `bandwidth`. Then the cost is the larger of the two.
    ///
    /// # Errors
    /// Rates outside `1..=IOPS_MAX` and `1..=BANDWIDTH_MAX`, or sizes out of order.
    pub fn two_point(
        iops: u64,
        bandwidth: u64,
        iops_size: u64,
        saturation_length: u64,
    ) -> Result<Self, CostError> {
        let small = operation_units(iops)?;
        let tail = byte_slope(bandwidth)?;
        if saturation_length <= iops_size {
            return Err(CostError::SizesOutOfOrder(iops_size, saturation_length));
        }
        let mut curve = Self::flat_units(small);
        let large = slope_units(tail, saturation_length);
        if large >= small {
            let slope = slope_between((iops_size, small), (saturation_length, large));
            curve.push(Segment { bytes: iops_size, units: small, slope });
            curve.push(Segment { bytes: saturation_length, units: large, slope: tail });
        } else {
            let crossing = (u128::from(small) << SLOPE_BITS) / u128::from(tail);
            let crossing = u64::try_from(crossing).unwrap_or(u64::MAX);
            curve.push(Segment { bytes: crossing, units: small, slope: tail });
        }
        Ok(curve)
    }

    /// Seastar's cost, `1 / iops + bytes / bandwidth`, for comparison. It charges a small request for its
    /// operation and for its bytes, so that no stream reaches either figure.
    ///
    /// # Errors
    /// Rates outside `1..=IOPS_MAX` and `1..=BANDWIDTH_MAX`.
    pub fn sum(iops: u64, bandwidth: u64) -> Result<Self, CostError> {
        let mut curve = Self::flat_units(operation_units(iops)?);
        curve.segments[0].slope = byte_slope(bandwidth)?;
        Ok(curve)
    }

    /// The curve through a measured ladder of `(bytes, operations per second)`;
    /// see [`CostCurve::through`].
    ///
    /// # Errors
    /// Rates outside `1..=IOPS_MAX`, no point or too many, sizes that do not rise.
    pub fn ladder(points: &[(u64, u64)]) -> Result<Self, CostError> {
        let mut costs = [(0, DiskTime::ZERO); LADDER_POINTS_MAX];
        for (cost, &(bytes, iops)) in costs.iter_mut().zip(points) {
            *cost = (bytes, DiskTime::from_units(operation_units(iops)?));
        }
        let used = costs.get(..points.len()).ok_or(CostError::LadderLength(points.len()))?;
        Self::through(used)
    }

    /// The curve through measured points of `(bytes, cost)`, in order of size. It is flat below the first
    /// point, and has the bandwidth of the last one beyond it. Where noise made a larger request look
    /// cheaper, the curve stays level.
    ///
    /// # Errors
    /// No point or more than [`LADDER_POINTS_MAX`], or sizes that do not rise.
    pub fn through(points: &[(u64, DiskTime)]) -> Result<Self, CostError> {
        if points.is_empty() || points.len() > LADDER_POINTS_MAX {
            return Err(CostError::LadderLength(points.len()));
        }
        let mut curve = Self::flat(points[0].1);
        let mut last = (0, 0);
        for (index, &(bytes, cost)) in points.iter().enumerate() {
            if bytes <= last.0 {
                return Err(CostError::LadderOrder(index));
            }
            let units = cost.units().min(COST_MAX).max(last.1);
            if index > 0 {
                let slope = slope_between(last, (bytes, units));
                curve.segments[index].slope = slope;
            }
            curve.push(Segment { bytes, units, slope: 0 });
            last = (bytes, units);
        }
        curve.segments[curve.used - 1].slope = slope_between((0, 0), last);
        Ok(curve)
    }

    /// A curve of the bytes alone, at `bandwidth` bytes per second, for requests that need no seek.
    ///
    /// # Errors
    /// A bandwidth outside `1..=BANDWIDTH_MAX`.
    pub fn transfer(bandwidth: u64) -> Result<Self, CostError> {
        let mut curve = Self::flat_units(0);
        curve.segments[0].slope = byte_slope(bandwidth)?;
        Ok(curve)
    }

    /// A curve of `command` for each request, and of its bytes at `speedup` times the bandwidth of this
    /// curve.
    pub(crate) fn of_commands(&self, command: DiskTime, speedup: u64) -> Self {
        let mut curve = Self::flat(command);
        curve.segments[0].slope = self.segments[self.used - 1].slope / speedup.max(1);
        curve
    }

    /// The same cost for every size.
    pub fn flat(cost: DiskTime) -> Self {
        Self::flat_units(cost.units())
    }

    /// The cost of a request of `bytes`: at least one unit, and at most 208 days of disk time.
    pub fn cost(&self, bytes: u64) -> DiskTime {
        let mut segment = &self.segments[0];
        for next in &self.segments[1..self.used] {
            if bytes < next.bytes {
                break;
            }
            segment = next;
        }
        let units = segment.units.saturating_add(slope_units(segment.slope, bytes - segment.bytes));
        DiskTime::from_units(units.clamp(1, COST_MAX))
    }

    /// The cost of `bytes` at full bandwidth, without the operation.
    #[cfg(feature = "history")]
    pub(crate) fn bytes_cost(&self, bytes: u64) -> DiskTime {
        DiskTime::from_units(slope_units(self.segments[self.used - 1].slope, bytes))
    }

    fn flat_units(units: u64) -> Self {
        let mut curve = Self { segments: Default::default(), used: 0 };
        curve.push(Segment { bytes: 0, units, slope: 0 });
        curve
    }

    fn push(&mut self, segment: Segment) {
        self.segments[self.used] = segment;
        self.used += 1;
    }
}

/// Disk time of one operation, rounded to the nearest unit.
fn operation_units(iops: u64) -> Result<u64, CostError> {
    match iops {
        0 => Err(CostError::ZeroRate),
        1..=IOPS_MAX => Ok((DiskTime::UNITS_PER_SECOND + iops / 2) / iops),
        _ => Err(CostError::IopsTooHigh(iops)),
    }
}

/// Scaled disk time of one byte; at least 2^20 at the highest bandwidth.
fn byte_slope(bandwidth: u64) -> Result<u64, CostError> {
    match bandwidth {
        0 => Err(CostError::ZeroRate),
        1..=BANDWIDTH_MAX => Ok((DiskTime::UNITS_PER_SECOND << SLOPE_BITS) / bandwidth),
        _ => Err(CostError::BandwidthTooHigh(bandwidth)),
    }
}

fn slope_between(from: (u64, u64), to: (u64, u64)) -> u64 {
    let rise = u128::from(to.1 - from.1) << SLOPE_BITS;
    u64::try_from(rise / u128::from(to.0 - from.0)).unwrap_or(u64::MAX)
}

fn slope_units(slope: u64, bytes: u64) -> u64 {
    let units = (u128::from(slope) * u128::from(bytes)) >> SLOPE_BITS;
    u64::try_from(units).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(cost: DiskTime) -> f64 {
        DiskTime::UNITS_PER_SECOND as f64 / cost.units() as f64
    }

    fn close(value: f64, expected: f64) {
        assert!((value / expected - 1.0).abs() < 0.001, "{value} is not {expected}");
    }

    #[test]
    fn both_measured_points_are_exact() {
        for (iops, bandwidth) in [(5_000, 500_000_000), (134_608, 605_000_000), (16_000, 1 << 30)] {
            let curve = CostCurve::two_point(iops, bandwidth, 4096, 131_072).unwrap();
            for small in [1, 512, 4096] {
                close(rate(curve.cost(small)), iops as f64);
            }
            for large in [131_072_u64, 1 << 20, 16 << 20] {
                close(rate(curve.cost(large)) * large as f64, bandwidth as f64);
            }
        }
    }

    #[test]
    fn the_sum_charges_small_requests_twice() {
        let curve = CostCurve::sum(134_608, 605_000_000).unwrap();
        close(rate(curve.cost(4096)), 70_400.0);
        // seastar's own figures for an i4i.2xlarge, reads of 4096 and 131072 bytes
        let curve = CostCurve::sum(218_786, 1_542_559_872).unwrap();
        close(curve.cost(4096).units() as f64 / 64.0, 7_226.0);
        close(curve.cost(131_072).units() as f64 / 64.0, 89_541.0);
    }

    #[test]
    fn the_extremes_of_the_rates_fit() {
        let slow = CostCurve::two_point(1, 1, 4096, 131_072).unwrap();
        assert_eq!(slow.cost(4096).units(), DiskTime::UNITS_PER_SECOND);
        assert_eq!(slow.cost(131_072).units(), 131_072 * DiskTime::UNITS_PER_SECOND);
        assert_eq!(slow.cost(u64::MAX).units(), COST_MAX);
        let fast = CostCurve::two_point(IOPS_MAX, BANDWIDTH_MAX, 4096, 131_072).unwrap();
        assert_eq!(fast.cost(512).units(), 640);
        close(rate(fast.cost(131_072)) * 131_072.0, 1e12);
    }

    #[test]
    fn absurd_rates_are_refused() {
        assert_eq!(CostCurve::sum(0, 1), Err(CostError::ZeroRate));
        assert_eq!(CostCurve::sum(1, 0), Err(CostError::ZeroRate));
        let high = IOPS_MAX + 1;
        assert_eq!(CostCurve::sum(high, 1), Err(CostError::IopsTooHigh(high)));
        let high = BANDWIDTH_MAX + 1;
        assert_eq!(CostCurve::sum(1, high), Err(CostError::BandwidthTooHigh(high)));
        let sizes = CostCurve::two_point(1, 1, 4096, 4096);
        assert_eq!(sizes, Err(CostError::SizesOutOfOrder(4096, 4096)));
    }

    #[test]
    fn a_hard_disk_that_cannot_reach_its_bandwidth_at_128_kib_is_bound_by_seeks() {
        let curve = CostCurve::two_point(100, 150_000_000, 4096, 131_072).unwrap();
        close(rate(curve.cost(131_072)), 100.0);
        close(rate(curve.cost(15_000_000)), 10.0);
    }

    #[test]
    fn a_ladder_passes_through_its_points_and_never_falls() {
        let points = [(512, 200_000), (4096, 210_000), (16_384, 100_000), (131_072, 15_000)];
        let curve = CostCurve::ladder(&points).unwrap();
        close(rate(curve.cost(4096)), 200_000.0);
        close(rate(curve.cost(16_384)), 100_000.0);
        close(rate(curve.cost(131_072)), 15_000.0);
        close(rate(curve.cost(262_144)), 7_500.0);
        let mut last = 0;
        for bytes in (0..300_000).step_by(512) {
            let cost = curve.cost(bytes).units();
            assert!(cost >= last);
            last = cost;
        }
        let costs = points.map(|(bytes, iops)| (bytes, DiskTime::from_nanos(1_000_000_000 / iops)));
        let through = CostCurve::through(&costs).unwrap();
        close(rate(through.cost(32_768)), rate(curve.cost(32_768)));
        assert_eq!(CostCurve::ladder(&[]), Err(CostError::LadderLength(0)));
        assert_eq!(CostCurve::ladder(&[(2, 1), (2, 1)]), Err(CostError::LadderOrder(1)));
        assert_eq!(CostCurve::ladder(&[(1, 1); 17]), Err(CostError::LadderLength(17)));
    }
}
