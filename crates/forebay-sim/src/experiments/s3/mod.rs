//! Writing to an array of NVMe disks (2025).

mod border;
mod capacity;
mod parallelism;
mod placement;
mod watched;

use super::{Experiment, Report, Scale};

const SOURCE: &str = "ScyllaDB, The Deceptively Simple Act of Writing to Disk (2025)";

pub(super) const ALL: &[Experiment] = &[
    Experiment {
        name: "S3-4",
        title: "Throughput of the classes against the configured capacity",
        source: SOURCE,
        run: capacity::run,
    },
    Experiment {
        name: "S3-12",
        title: "Bandwidth and latency as parallelism grows",
        source: SOURCE,
        run: parallelism::run,
    },
    Experiment {
        name: "S3-14",
        title: "RAID0: do requests collide on members?",
        source: SOURCE,
        run: placement::collisions,
    },
    Experiment {
        name: "S3-15",
        title: "RAID0: where files begin",
        source: SOURCE,
        run: placement::run,
    },
    Experiment {
        name: "S3-21",
        title: "Requests that are split at the border of a chunk",
        source: SOURCE,
        run: border::run,
    },
];

#[cfg(test)]
mod tests {
    #[test]
    fn reports_are_as_recorded() {
        crate::experiments::scenario::are_as_recorded(super::ALL);
    }
}
