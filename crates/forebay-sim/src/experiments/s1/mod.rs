//! Better latencies: the scheduler of 2018.

mod deep_writes;
mod response;
mod worked_example;

use core::time::Duration;

use forebay_core::Policy;

use super::Experiment;

/// What they were published in.
const SOURCE: &str =
    "ScyllaDB, The Scylla I/O Scheduler: Better Latencies Under Any Circumstance (2018)";
/// A task quota of 0.5 ms and a half.
const GOAL: Duration = Duration::from_micros(750);
/// Requests that the scheduler of 2016 kept in the article's disk.
const DEPTH_OF_2016: u32 = 32;
/// As many operations and bytes in the disk as it serves within the goal.
const LITTLES_LAW: Policy = Policy::LittlesLaw { latency_goal: GOAL };

pub(super) const ALL: &[Experiment] = &[
    Experiment {
        name: "S1-3",
        title: "How many requests Little's law allows in the disk",
        source: SOURCE,
        run: worked_example::run,
    },
    Experiment {
        name: "S1-4",
        title: "Throughput by concurrency, and its knee",
        source: SOURCE,
        run: response::run_one_size,
    },
    Experiment {
        name: "S1-5",
        title: "Throughput by concurrency for small and for large requests",
        source: SOURCE,
        run: response::run_two_sizes,
    },
    Experiment {
        name: "S1-9",
        title: "Small reads beside deep writes",
        source: SOURCE,
        run: deep_writes::run,
    },
];

#[cfg(test)]
mod tests {
    #[test]
    fn reports_are_as_recorded() {
        crate::experiments::scenario::are_as_recorded(super::ALL);
    }
}
