//! How much may be in a disk, and how long that makes an urgent request wait.

use std::ops::Not;
use std::time::Duration;

use forebay::properties::DiskProperties;
use forebay_core::{Ceiling, DiskTime, GroupConfig, IoGroup, Op, PRICE_ONE, Policy, RUN_NANOS};
use forebay_load::results::model::{RegionAsked, RegionInUse};
use serde::Serialize;

use super::disk::DescribedDisk;
use crate::disk::in_use;

/// The size that fits into every goal.
const GOAL_LEN: u64 = 128 << 10;

/// What the scheduler keeps to, in microseconds and bytes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Budget {
    pub(super) latency_goal_us: f64,
    pub(super) effective_goal_us: f64,
    /// Why the effective goal is what it is.
    pub(super) goal_reason: GoalReason,
    /// Disk time that may go at once after a pause: one effective goal.
    pub(super) burst_us: f64,
    /// Disk time that may be unfinished in the disk when another request goes: where trials of
    /// other windows begin.
    pub(super) window_us: f64,
    /// Whether the disk gets no more than its rates, whatever trials find.
    /// The disk gets no more than its rates.
    pub(super) is_ceiling: bool,
    /// The same once a burst is over.
    pub(super) is_ceiling_after_burst: bool,
    /// What requests may take in the disk while others wait, as stated; none for no promise.
    pub(super) latency_target: Option<String>,
    /// What the percentile may be.
    pub(super) latency_target_us: Option<f64>,
    /// Whether that is not above the base latency, so that nothing keeps it.
    #[serde(skip_serializing_if = "Not::not")]
    pub(super) latency_target_below_base: bool,
    /// Longest pieces that requests are sent in: reads, writes.
    pub(super) largest_request_bytes: [u64; 2],
    /// Disk time of the dearer of the two.
    pub(super) largest_request_us: f64,
    /// The longest that a small request of the heaviest class waits, if the disk is as fast as
    /// stated and nothing else of that class waits.
    pub(super) longest_wait_us: f64,
    /// The longest that a stream keeps the head of a disk that seeks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) run_us: Option<f64>,
    /// Reads and writes of 4 KiB, then of 128 KiB, that fill the window.
    pub(super) depth: u64,
    pub(super) depth_large: u64,
    /// Requests of 4 KiB that keep the disk busy, as measured or else by its figures, for the number of
    /// I/O queues.
    #[serde(skip)]
    pub(super) queue_depth: u64,
}

/// How mixes of reads and writes are priced.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Mixes {
    /// By which region.
    region: RegionInUse,
    /// How much longer half reads and half writes take than alone.
    price_of_half: f64,
}

impl Mixes {
    /// How mixes on this disk are priced, if they are.
    pub(super) fn of(
        disk: &DiskProperties,
        latency_goal: Duration,
        base_latency: Option<Duration>,
    ) -> Option<Self> {
        let policy = Policy::PaceWindow { latency_goal, base_latency };
        let choice = disk.region_choice(&policy)?;
        let model = disk.model_under(&policy).ok()?;
        let price = model.mix_prices()?.at(PRICE_ONE / 2);
        Some(Self {
            region: in_use(&choice),
            price_of_half: f64::from(price) / f64::from(PRICE_ONE),
        })
    }

    /// For people.
    pub(super) fn said(&self) -> String {
        let advice = match self.region.asked {
            Some(RegionAsked { far: true, .. }) => {
                ". Run `forebay explore DIR -o FILE` with that as its --goal"
            }
            _ => "",
        };
        format!(
            "go by the region that keeps {}: half and half, they take {:.2} times as long as \
             alone{advice}",
            self.region, self.price_of_half
        )
    }
}

/// What decides the effective goal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum GoalReason {
    LatencyGoal,
    BaseLatency,
    LargeRequest,
}

impl Budget {
    /// The budget of a disk.
    pub(super) fn of(disk: &DescribedDisk, latency_goal: Duration) -> Self {
        let (model, base_latency) = (&disk.model, disk.base_latency);
        let policy = Policy::PaceWindow { latency_goal, base_latency };
        let latency_target = disk.latency_target();
        let group =
            IoGroup::new(GroupConfig { latency_target, ..GroupConfig::new(model.clone(), policy) });
        let ceiling = disk.figures.as_ref().map(|figures| figures.properties.measured.ceiling);
        let target = group.latency_target();
        let goal = group.effective_goal();
        // 2.5 windows while all classes are backlogged, and twice as much during a trial
        let fullest = DiskTime::from_units(goal.units().saturating_mul(5));
        let largest = [Op::Read, Op::Write].map(|op| (op, model.largest_request(op, goal)));
        let largest_cost =
            largest.map(|(op, len)| model.cost(op, len)).into_iter().max().unwrap_or_default();
        let large_cost = model.max_cost(GOAL_LEN);
        let run = model.seeks().then_some(DiskTime::from_nanos(RUN_NANOS));
        let base = base_latency.map_or(0.0, |base| base.as_secs_f64() * 1e6);
        Self {
            latency_goal_us: latency_goal.as_secs_f64() * 1e6,
            effective_goal_us: us(goal),
            goal_reason: match () {
                () if us(goal) <= latency_goal.as_secs_f64() * 1e6 => GoalReason::LatencyGoal,
                () if us(large_cost) >= base => GoalReason::LargeRequest,
                () => GoalReason::BaseLatency,
            },
            burst_us: us(goal),
            window_us: us(goal),
            is_ceiling: ceiling == Some(Ceiling::Always),
            is_ceiling_after_burst: ceiling == Some(Ceiling::AfterBurst),
            latency_target: target.map(|status| status.target.to_string()),
            latency_target_us: target.map(|status| status.target.latency().as_nanos() as f64 / 1e3),
            latency_target_below_base: target.is_some_and(|status| status.below_base),
            largest_request_bytes: largest.map(|(_, len)| len),
            largest_request_us: us(largest_cost),
            longest_wait_us: us(fullest.max(run.unwrap_or_default()).plus(largest_cost)),
            run_us: run.map(us),
            depth: fitting(goal, model.max_cost(4096)),
            depth_large: fitting(goal, large_cost),
            queue_depth: knee(disk)
                .unwrap_or_else(|| fitting(group.busy_window(), model.max_cost(4096))),
        }
    }
}

/// Small requests of either direction in flight that do 95 % of its rate, where that was measured.
fn knee(disk: &DescribedDisk) -> Option<u64> {
    let measured = &disk.figures.as_ref()?.properties.measured;
    let requests = measured.read.knee?.max(measured.write.knee?);
    Some(requests.round().max(1.0) as u64)
}

/// How many requests of `cost` go before the window is closed.
fn fitting(window: DiskTime, cost: DiskTime) -> u64 {
    window.units().div_ceil(cost.units().max(1))
}

/// Disk time in microseconds.
pub(super) fn us(time: DiskTime) -> f64 {
    time.units() as f64 / DiskTime::UNITS_PER_NANO as f64 / 1e3
}
