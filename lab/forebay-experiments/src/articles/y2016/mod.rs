//! The userspace scheduler of 2016.

pub(crate) mod node;

use forebay_core::{Policy, ServiceOrder};
use forebay_sim::simulation::SchedulerConfig;

/// What it was published in.
pub(crate) const SOURCE: &str = "ScyllaDB, Designing a Userspace Disk I/O Scheduler for Modern Datastores: \
                      the Scylla example, part 2 (29 April 2016)";
/// The unit of the article's tables: `fair_queue_tester` of January 2016 (scylladb/seastar, commit
/// 9259502ab) prints bytes per second shifted by ten bits.
pub(crate) const KB: u64 = 1024;
/// What classes have used is forgotten with a time constant of 100 ms.
pub(crate) const DECAY: ServiceOrder = ServiceOrder::ExponentialDecay { tau_nanos: 100_000_000 };

/// The scheduler of 2016: this many requests in the disk, and the class that used least lately is next.
pub(crate) fn of_2016(requests: u32) -> SchedulerConfig {
    SchedulerConfig {
        policy: Some(Policy::Concurrency { requests }),
        order: DECAY,
        ..SchedulerConfig::by_figures()
    }
}
