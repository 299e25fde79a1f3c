//! The algorithm for mixed reads and writes (2022).

pub(crate) mod edges;
pub(crate) mod phases;
mod region;

use forebay_sim::spec::DiskSpec;

/// The preset that is fitted to the measured latency surface of an i3.2xlarge.
pub(crate) const MEASURED: &str = "i3.2xlarge";

pub(crate) fn preset(name: &str) -> Result<DiskSpec, String> {
    DiskSpec::resolve(name).map_err(|error| error.to_string())
}

/// What it was published in.
pub(crate) const SOURCE: &str =
    "ScyllaDB, Implementing a New IO Scheduler Algorithm for Mixed Read/Write Workloads (2022)";
