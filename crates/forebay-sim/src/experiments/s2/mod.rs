//! The algorithm for mixed reads and writes (2022).

mod collection;
mod half_duplex;
mod hard_disk;
mod ingestion;
mod latencies;
mod phases;
mod queries;

use super::{Experiment, Report, Scale};
use crate::spec::DiskSpec;

/// The preset that is fitted to the measured latency surface of an i3.2xlarge.
const MEASURED: &str = "i3.2xlarge";

fn preset(name: &str) -> Result<DiskSpec, String> {
    DiskSpec::resolve(name).map_err(|error| error.to_string())
}

const SOURCE: &str =
    "ScyllaDB, Implementing a New IO Scheduler Algorithm for Mixed Read/Write Workloads (2022)";

pub(super) const ALL: &[Experiment] = &[
    Experiment {
        name: "S2-3",
        title: "NVMe disks are nearly half-duplex",
        source: SOURCE,
        run: half_duplex::run,
    },
    Experiment {
        name: "S2-4",
        title: "A hard disk: a straight line, then no reads at all",
        source: SOURCE,
        run: hard_disk::run,
    },
    Experiment {
        name: "S2-8",
        title: "The second-level bucket while the disk collects garbage",
        source: SOURCE,
        run: collection::run,
    },
    Experiment {
        name: "S2-11",
        title: "Throughput of ingestion",
        source: SOURCE,
        run: ingestion::run,
    },
    Experiment {
        name: "S2-12",
        title: "Throughput of queries",
        source: SOURCE,
        run: queries::plateaus,
    },
    Experiment {
        name: "S2-13",
        title: "Latency in the queue and in the disk",
        source: SOURCE,
        run: latencies::run,
    },
    Experiment {
        name: "S2-14",
        title: "Compaction yields to queries",
        source: SOURCE,
        run: queries::compaction,
    },
];

#[cfg(test)]
mod tests {
    #[test]
    fn reports_are_as_recorded() {
        crate::experiments::scenario::are_as_recorded(super::ALL);
    }
}
