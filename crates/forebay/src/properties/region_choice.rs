//! The choice of the region for pricing mixes.

use std::fmt;
use std::time::Duration;

use forebay_core::{LATENCY_GOAL_DEFAULT, Op, Policy};

use super::{DiskProperties, MixRegion, RegionGoal};

/// The percentile of reads for which the window is made, within two effective goals.
const PROMISED_PERCENTILE: f64 = 95.0;
const PROMISED_GOALS: u32 = 2;
/// The size of a request, in bytes, whose disk time the effective goal is at least.
const GOAL_LEN: u64 = 128 << 10;
/// The factor of latency beyond which a region is for another goal.
const NEAR: f64 = 2.0;

/// A region, and the goal for which it was chosen. It displays as the latency that the region meets
/// and, if that differs, the goal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RegionChoice<'a> {
    /// The region nearest to the goal.
    pub region: &'a MixRegion,
    /// The goal.
    pub goal: RegionGoal,
}

impl RegionChoice<'_> {
    /// Whether the region is of another percentile, or of more than twice the latency or less than
    /// half of it, so that it fits the goal badly.
    pub fn is_distant(&self) -> bool {
        let (percentiles, factor) = self.distance();
        percentiles > 0.0 || factor > NEAR
    }

    /// The difference of the percentile, and the factor of the latency, which is 1 or more.
    fn distance(&self) -> (f64, f64) {
        let Self { region, goal } = self;
        let ratio = region.latency.as_secs_f64() / goal.latency.as_secs_f64().max(1e-9);
        ((region.read_percentile - goal.read_percentile).abs(), ratio.max(1.0 / ratio))
    }
}

impl fmt::Display for RegionChoice<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { region, goal } = self;
        let words = |percentile: f64, latency: Duration| {
            format!("p{percentile} of reads within {:.3} ms", latency.as_secs_f64() * 1e3)
        };
        let kept = words(region.read_percentile, region.latency);
        let wanted = words(goal.read_percentile, goal.latency);
        if kept == wanted {
            return f.write_str(&kept);
        }
        let nearness = if self.is_distant() { "far from" } else { "the nearest to" };
        write!(f, "{kept}, {nearness} {wanted}")
    }
}

impl DiskProperties {
    /// The region by which `policy` prices mixes, see [`DiskProperties::region_choice`].
    pub fn region(&self, policy: &Policy) -> Option<&MixRegion> {
        self.region_choice(policy).map(|choice| choice.region)
    }

    /// The region by which `policy` prices mixes: of the percentile nearest to that of
    /// [`region_goal`](super::Measured::region_goal), the one nearest in latency, longer or
    /// shorter.
    ///
    /// Without that, the goal is the [latency target](Self::latency_target) of reads, or else p95
    /// within two effective goals. `None` if there are no regions, if reads and writes have
    /// separate budgets, or if the policy uses none.
    pub fn region_choice(&self, policy: &Policy) -> Option<RegionChoice<'_>> {
        let Policy::PaceWindow { latency_goal, base_latency } = *policy else { return None };
        let latency_goal = if latency_goal.is_zero() { LATENCY_GOAL_DEFAULT } else { latency_goal };
        if self.duplex {
            return None;
        }
        let goal = self.wanted_goal(latency_goal, base_latency)?;
        let choices = self.measured.regions.iter().map(|region| RegionChoice { region, goal });
        choices.min_by(|one, other| {
            let (one, other) = (one.distance(), other.distance());
            one.0.total_cmp(&other.0).then(one.1.total_cmp(&other.1))
        })
    }

    fn wanted_goal(
        &self,
        latency_goal: Duration,
        base_latency: Option<Duration>,
    ) -> Option<RegionGoal> {
        if let Some(goal) = self.measured.region_goal {
            return Some(goal);
        }
        let target = self.latency_target.filter(|target| target.op() == Op::Read);
        if let Some(target) = target {
            let read_percentile = f64::from(target.permille()) / 10.0;
            return Some(RegionGoal { read_percentile, latency: target.latency() });
        }
        let large = self.model().ok()?.max_cost(GOAL_LEN).as_nanos_ceil();
        let least = latency_goal.max(Duration::from_nanos(large));
        let goal = least.max(base_latency.unwrap_or_default());
        let latency = goal.saturating_mul(PROMISED_GOALS);
        Some(RegionGoal { read_percentile: PROMISED_PERCENTILE, latency })
    }
}

#[cfg(test)]
mod tests {
    use forebay_core::DiskRates;

    use super::*;
    use crate::properties::{RADIUS_ONE, REGION_RADII};

    /// The message for a disk with a region for p95 = 1 ms and one for 4 ms.
    fn said(percentile: f64, micros: u64) -> (String, bool) {
        let rates = DiskRates {
            read_iops: 100_000,
            write_iops: 50_000,
            read_bandwidth: 1_000_000_000,
            write_bandwidth: 500_000_000,
        };
        let region = |millis| MixRegion {
            read_percentile: 95.0,
            latency: Duration::from_millis(millis),
            write_bandwidth: rates.write_bandwidth,
            read_iops: rates.read_iops,
            radii: vec![RADIUS_ONE; REGION_RADII],
        };
        let mut disk = DiskProperties::from_rates(&rates, Vec::new());
        disk.measured.regions = vec![region(1), region(4)];
        let latency = Duration::from_micros(micros);
        disk.measured.region_goal = Some(RegionGoal { read_percentile: percentile, latency });
        let choice = disk.region_choice(&Policy::pace_window()).unwrap();
        (choice.to_string(), choice.is_distant())
    }

    #[test]
    fn a_region_of_another_goal_is_said_to_be_one() {
        let kept = "p95 of reads within 1.000 ms";
        assert_eq!(said(95.0, 1000), (kept.to_owned(), false));
        let near = format!("{kept}, the nearest to p95 of reads within 1.500 ms");
        assert_eq!(said(95.0, 1500), (near, false));
        let far = format!("{kept}, far from p95 of reads within 0.100 ms");
        assert_eq!(said(95.0, 100), (far, true));
        let other = format!("{kept}, far from p99 of reads within 1.000 ms");
        assert_eq!(said(99.0, 1000), (other, true));
        assert!(said(95.0, 20_000).1);
    }
}
