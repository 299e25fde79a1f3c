//! The userspace scheduler of 2016.

mod bursts;
mod isolation;
mod node;
mod queues;
mod shares;

use forebay_core::{Order, Policy};

use super::Experiment;
use crate::simulation::SchedulerConfig;

/// What they were published in.
const SOURCE: &str = "ScyllaDB, Designing a Userspace Disk I/O Scheduler for Modern Datastores: \
                      the Scylla example, part 2 (29 April 2016)";

pub(super) const ALL: &[Experiment] = &[
    Experiment {
        name: "S0-7",
        title: "One I/O queue for six shards, or one each",
        source: SOURCE,
        run: queues::run,
    },
    Experiment {
        name: "S0-12",
        title: "Four classes with different shares on one shard",
        source: SOURCE,
        run: shares::run,
    },
    Experiment {
        name: "S0-18",
        title: "A node saturated with queries is hit by a write load",
        source: SOURCE,
        run: isolation::run,
    },
    Experiment {
        name: "S0-19",
        title: "Classes that come in bursts beside a saturating one",
        source: SOURCE,
        run: bursts::run,
    },
];

/// What classes have used is forgotten with a time constant of 100 ms.
pub(super) const DECAY: Order = Order::ExponentialDecay { tau_nanos: 100_000_000 };

/// The scheduler of 2016: so many requests in the disk, whoever has used least lately is next.
pub(super) fn of_2016(requests: u32) -> SchedulerConfig {
    SchedulerConfig {
        policy: Some(Policy::Concurrency { requests }),
        order: DECAY,
        ..SchedulerConfig::default()
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn reports_are_as_recorded() {
        crate::experiments::scenario::are_as_recorded(super::ALL);
    }
}
