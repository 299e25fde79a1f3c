//! By which of a disk's regions mixes of reads and writes are priced.

use std::time::Duration;

use clap::Args;
use forebay::properties::{Properties, RegionGoal};
use forebay_explore::Goal;

/// The options of every command that has a scheduler, or says what it makes of a disk.
#[derive(Args)]
pub(crate) struct RegionOptions {
    /// Of several regions in a forebay.yaml, take the one nearest to this latency of reads, such as
    /// p95=1ms [default: nearest to the latency target of reads, or else to the effective goal]
    #[arg(long, value_name = "GOAL")]
    region_goal: Option<Goal>,
    /// Ignore the regions of a forebay.yaml: a mix of reads and writes costs the sum of what its
    /// reads and its writes cost alone
    #[arg(long, conflicts_with = "region_goal")]
    no_region: bool,
}

impl RegionOptions {
    /// Says so in the properties.
    pub(crate) fn apply(&self, properties: &mut Properties) {
        for disk in &mut properties.disks {
            if self.no_region {
                disk.measured.regions.clear();
            }
            if let Some(goal) = self.region_goal {
                disk.measured.region_goal = Some(RegionGoal {
                    read_percentile: goal.percentile.number(),
                    latency: Duration::from_secs_f64(goal.latency_us / 1e6),
                });
            }
        }
    }
}
