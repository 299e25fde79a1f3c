//! Better latencies: the scheduler of 2018.

pub(crate) mod response;

use core::time::Duration;

use forebay_core::Policy;

/// What they were published in.
pub(crate) const SOURCE: &str =
    "ScyllaDB, The Scylla I/O Scheduler: Better Latencies Under Any Circumstance (2018)";
/// The units of the article: 95,000 reads of 4 kB are its 371 MB/s, and 0.75 ms of its 512 MB/s are
/// its 402 kB (of 1000 bytes, the one exception).
pub(crate) const KB: u64 = 1 << 10;
pub(crate) const MB: u64 = 1 << 20;
/// A task quota of 0.5 ms and a half.
pub(crate) const GOAL: Duration = Duration::from_micros(750);
/// Requests that the scheduler of 2016 kept in the article's disk.
pub(crate) const DEPTH_OF_2016: u32 = 32;
/// As many operations and bytes in the disk as it serves within the goal.
pub(crate) const LITTLES_LAW: Policy = Policy::LittlesLaw { latency_goal: GOAL };
