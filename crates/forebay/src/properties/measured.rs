//! What only a careful measurement knows of a disk: the keys of a `forebay.yaml` alongside
//! Seastar's.

use std::time::Duration;

use forebay_core::{
    BANDWIDTH_MAX, Ceiling, CostCurve, CostError, DiskModel, DiskTime, IOPS_MAX, IOPS_SIZE_DEFAULT,
    Op, saturating_nanos,
};

use super::region::{MixRegion, RegionGoal};

/// What a measurement knows of a disk alongside its rates; all of it optional.
///
/// From a file, each time is at most 100 seconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measured {
    /// Latency of a small read that is alone in the disk.
    pub base_latency: Option<Duration>,
    /// Reads.
    pub read: MeasuredDirection,
    /// Writes.
    pub write: MeasuredDirection,
    /// Whether a head has to move: a read or write that [goes on](forebay_core::IoQueue::enqueue)
    /// where another of its file ended takes the disk the time of its bytes alone.
    pub seeks: bool,
    /// When the rates are a ceiling, and not prices alone: the disk gets no more than they say.
    /// [`Ceiling::Always`] for a file with a `rate_factor` below 1.
    pub ceiling: Ceiling,
    /// The disk time of a flush.
    pub flush: Option<Duration>,
    /// The disk time of discards.
    pub discard: Option<DiscardCost>,
    /// Which mixes of reads and writes keep which latency, at most
    /// [`REGIONS_MAX`](super::REGIONS_MAX).
    pub regions: Vec<MixRegion>,
    /// Which of them prices mixes; see [`DiskProperties::region`](super::DiskProperties::region).
    pub region_goal: Option<RegionGoal>,
    /// Keys of the file that have a new name, as pairs of old and new name. The old names are
    /// accepted for one release.
    pub renamed_keys: Vec<(&'static str, &'static str)>,
}

/// One direction of a disk, as measured.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MeasuredDirection {
    /// Disk time of requests by size, sizes rising, at most
    /// [`LADDER_POINTS_MAX`](forebay_core::LADDER_POINTS_MAX); empty where it is not known.
    pub cost: Vec<CostAt>,
    /// This many requests in flight keep the disk busy.
    pub knee: Option<f64>,
    /// Small requests per second in sequence. The scheduler has no use for it; `io.cost` of the
    /// kernel does.
    pub sequential_iops: Option<u64>,
    /// Whether the rates last.
    pub steadiness: Option<Steadiness>,
    /// Whether the operations per second were seen behind buffers and credits.
    pub iops_sustained: Option<Lasting>,
    /// Whether the bytes per second were.
    pub bandwidth_sustained: Option<Lasting>,
}

/// Whether a rate is what a disk keeps up, or what it does for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lasting {
    /// It was seen behind whatever makes a disk faster at first.
    Yes,
    /// That was not reached: the disk may be slower for long.
    Unknown,
}

/// What requests of one size cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CostAt {
    /// Their size, 1 byte to 16 MiB.
    pub bytes: u64,
    /// Disk time of one of them: the inverse of how many the disk does at most, to a nanosecond.
    pub cost: Duration,
}

/// What is known of how a direction keeps its rates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Steadiness {
    /// Whether it was watched for long enough, and was level, to be called steady.
    pub steady: bool,
    /// How much higher the rate was at first than in the end, as a part of the latter.
    pub burst_excess: f64,
    /// For how long it was watched, to a second.
    pub observed: Duration,
}

/// The disk time of discards: so much for each, and so much for their bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiscardCost {
    /// For each command.
    pub command: Duration,
    /// For each GiB.
    pub gib: Duration,
}

/// Costs and rates of one measurement are no further apart.
const AGREEMENT: f64 = 0.05;
const GIB: u128 = 1 << 30;
const NANOS_PER_SECOND: u128 = 1_000_000_000;

impl Measured {
    /// `model` with flushes and discards as measured, on one of `parts` equal parts of the disk:
    /// each takes this many times as much of that part's time.
    ///
    /// They count with what they take from reads that keep the disk busy.
    pub(super) fn refine(&self, mut model: DiskModel, parts: u64) -> Result<DiskModel, CostError> {
        if let Some(flush) = self.flush {
            // a disk that seeks needs no seek for a flush
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
    /// Why costs and rates cannot be of the same disk, if so: the operations at 4 KiB, and the
    /// bandwidth at the size that reaches most, are within 5 %.
    pub fn contradiction(&self, iops: u64, bandwidth: u64) -> Option<String> {
        if self.cost.is_empty() { None } else { contradiction(&self.cost, iops, bandwidth) }
    }

    /// What requests cost on one of `parts` equal parts of the disk.
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
        format!("by these costs the disk does {found:.0} {what} per second, by its rates {stated}")
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
