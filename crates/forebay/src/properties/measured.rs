//! Properties of a disk that only a measurement finds: the keys of a `forebay.yaml` in addition to
//! Seastar's.

use std::time::Duration;

use forebay_core::{
    BANDWIDTH_MAX, Ceiling, CostCurve, CostError, DiskModel, DiskTime, IOPS_MAX, IOPS_SIZE_DEFAULT,
    Op, saturating_nanos,
};

use super::region::{MixRegion, RegionGoal};

/// The measured properties of a disk in addition to its rates, all of them optional.
///
/// In a file each time is at most 100 seconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measured {
    /// The latency of a small read that is alone in the disk.
    pub base_latency: Option<Duration>,
    /// Reads.
    pub read: MeasuredDirection,
    /// Writes.
    pub write: MeasuredDirection,
    /// Whether the disk has a head that seeks: a read or write that
    /// [continues](forebay_core::IoQueue::enqueue) where another one of its file ended only takes
    /// the time of its bytes.
    pub seeks: bool,
    /// Whether and when the rates are limits of the disk's work, and not only prices.
    /// [`Ceiling::Always`] for a file with a `rate_factor` below 1.
    pub ceiling: Ceiling,
    /// The disk time of a flush.
    pub flush: Option<Duration>,
    /// The disk time of discards.
    pub discard: Option<DiscardCost>,
    /// The regions of mixes of reads and writes that meet a latency, at most
    /// [`REGIONS_MAX`](super::REGIONS_MAX).
    pub regions: Vec<MixRegion>,
    /// The goal that chooses the region for pricing mixes; see
    /// [`DiskProperties::region`](super::DiskProperties::region).
    pub region_goal: Option<RegionGoal>,
    /// Keys of the file that have a new name, as pairs of old and new name. The old names are
    /// accepted for one release.
    pub renamed_keys: Vec<(&'static str, &'static str)>,
}

/// One direction of a disk, as measured.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MeasuredDirection {
    /// The disk time of requests by size, in rising order, at most
    /// [`LADDER_POINTS_MAX`](forebay_core::LADDER_POINTS_MAX). Empty if it is unknown.
    pub cost: Vec<CostAt>,
    /// The number of requests in flight that keeps the disk busy.
    pub knee: Option<f64>,
    /// Sequential small requests per second. Only the kernel's `io.cost` uses it, not the
    /// scheduler.
    pub sequential_iops: Option<u64>,
    /// Whether the rates are sustained.
    pub steadiness: Option<Steadiness>,
    /// Whether the operations per second were measured without write buffers and burst credits.
    pub iops_sustained: Option<Lasting>,
    /// The same for the bytes per second.
    pub bandwidth_sustained: Option<Lasting>,
}

/// Whether a rate is sustained, or may be a burst.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lasting {
    /// It was measured after everything that makes a disk faster at first was used up.
    Yes,
    /// That state was not reached. The disk may be slower in the long run.
    Unknown,
}

/// The cost of requests of one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CostAt {
    /// Their size, 1 byte to 16 MiB.
    pub bytes: u64,
    /// The disk time of one of them: the inverse of the highest rate, to a nanosecond.
    pub cost: Duration,
}

/// How steady the rates of a direction are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Steadiness {
    /// Whether the rate was observed for long enough, and was level.
    pub steady: bool,
    /// By how much the first rate exceeds the last one, as a fraction of the latter.
    pub burst_excess: f64,
    /// For how long the rate was observed, to a second.
    pub observed: Duration,
}

/// The disk time of discards, per command and per GiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiscardCost {
    /// The disk time of each command.
    pub command: Duration,
    /// The disk time of each GiB.
    pub gib: Duration,
}

/// The highest relative difference between costs and rates of one measurement.
const AGREEMENT: f64 = 0.05;
const GIB: u128 = 1 << 30;
const NANOS_PER_SECOND: u128 = 1_000_000_000;

impl Measured {
    /// `model` with the measured disk time of flushes and discards, on one of `parts` equal parts
    /// of the disk. Each takes `parts` times as much of that part's time.
    ///
    /// They are charged with the time that they take from reads which keep the disk busy.
    pub(super) fn refine(&self, mut model: DiskModel, parts: u64) -> Result<DiskModel, CostError> {
        if let Some(flush) = self.flush {
            // A flush needs no seek, even on a disk that seeks.
            let least = model.sequential_cost(Op::Write, 0);
            model = model.with_flush(disk_time(flush, parts).max(least));
        }
        if let Some(discard) = self.discard {
            model = model.with_discard(discard.curve(parts)?);
        }
        Ok(model)
    }
}

impl MeasuredDirection {
    /// A message if costs and rates contradict each other. The operations per second at 4 KiB, and
    /// the highest bandwidth of all sizes, must be within 5 % of the rates.
    pub fn contradiction(&self, iops: u64, bandwidth: u64) -> Option<String> {
        if self.cost.is_empty() { None } else { contradiction(&self.cost, iops, bandwidth) }
    }

    /// The cost curve on one of `parts` equal parts of the disk.
    pub(super) fn curve(&self, parts: u64) -> Result<CostCurve, CostError> {
        let point = |at: &CostAt| (at.bytes, disk_time(at.cost, parts));
        CostCurve::through(&self.cost.iter().map(point).collect::<Vec<_>>())
    }
}

pub(super) fn contradiction(cost: &[CostAt], iops: u64, bandwidth: u64) -> Option<String> {
    let rate = |at: &CostAt| 1.0 / at.cost.as_secs_f64();
    let small = cost.iter().take_while(|at| at.bytes <= IOPS_SIZE_DEFAULT).last();
    let operations = small.or_else(|| cost.first()).map_or(0.0, rate);
    let large = cost.iter().filter(|at| at.bytes > IOPS_SIZE_DEFAULT);
    let bytes = large.map(|at| rate(at) * at.bytes as f64).fold(0.0, f64::max);
    let pairs = [("operations", operations, iops), ("bytes", bytes, bandwidth)];
    let wrong = |&(_, found, stated): &(_, f64, u64)| {
        (found / stated.max(1) as f64 - 1.0).abs() > AGREEMENT
    };
    pairs.into_iter().find(wrong).map(|(what, found, stated)| {
        format!("these costs amount to {found:.0} {what} per second, and the rates state {stated}")
    })
}

impl DiscardCost {
    fn curve(&self, parts: u64) -> Result<CostCurve, CostError> {
        let per_second = |of: u128, time: Duration, max: u64| {
            let rate = of * NANOS_PER_SECOND / (time.as_nanos() * u128::from(parts)).max(1);
            u64::try_from(rate).unwrap_or(max).clamp(1, max)
        };
        let commands = per_second(1, self.command, IOPS_MAX);
        CostCurve::sum(commands, per_second(GIB, self.gib, BANDWIDTH_MAX))
    }
}

fn disk_time(time: Duration, parts: u64) -> DiskTime {
    DiskTime::from_nanos(saturating_nanos(time).saturating_mul(parts))
}
