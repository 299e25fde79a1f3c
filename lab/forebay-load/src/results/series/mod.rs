//! A run over time, as it is written to a file: columns with a value for each sample.

mod builder;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use builder::{SeriesBuilder, SeriesLook};

/// A run over time, warm-up included. All columns have a value for each of
/// [`Series::ends_seconds`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// When the measured part began, in seconds from the start of the run.
    pub measured_from_seconds: f64,
    /// When each sample ended; it began with the end of the one before.
    pub ends_seconds: Vec<f64>,
    /// What each job did, in the order of the job file.
    pub jobs: Vec<JobSeries>,
    /// What was counted of each class, in the order of the job file.
    pub classes: Vec<ClassSeries>,
    /// What was seen of the disk.
    pub disk: DiskSeries,
}

/// What one job did over time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct JobSeries {
    /// The name of the job.
    pub name: String,
    /// Requests done per second.
    pub iops: Vec<f64>,
    /// Bytes moved per second.
    pub bandwidth_bytes_per_second: Vec<f64>,
    /// Requests that failed.
    pub errors: Vec<u64>,
    /// Percentiles of the time from the intended start to the completion, 0 without any; empty in files
    /// from before it was recorded.
    #[serde(default)]
    pub latency_us: Percentiles,
    /// Percentiles of the time from the hand-over to the scheduler to the dispatch, 0 without any.
    pub queue_us: Percentiles,
    /// Percentiles of the time from the dispatch to the completion, 0 without any.
    pub disk_us: Percentiles,
    /// The slowest requests, the slowest first; at most one of each sample.
    pub slowest: Vec<RequestTimes>,
}

/// Percentiles over time, in microseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Percentiles {
    /// The median.
    pub p50: Vec<f64>,
    /// The 95th percentile.
    pub p95: Vec<f64>,
    /// The 99th percentile.
    pub p99: Vec<f64>,
    /// The longest.
    pub max: Vec<f64>,
}

/// The way of one request: when it was where, in seconds from the start of the run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RequestTimes {
    /// When it should have begun.
    pub intended_seconds: f64,
    /// When the scheduler had it.
    pub queued_seconds: f64,
    /// When the disk had it.
    pub dispatched_seconds: f64,
    /// When it was done.
    pub completed_seconds: f64,
    /// The bytes it moved.
    pub bytes: u64,
}

/// What was counted of one class over time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClassSeries {
    /// The name of the class.
    pub name: String,
    /// Its shares at the start,
    pub shares: u32,
    /// which count among those of its group, if it is in one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<GroupOfClass>,
    /// Requests that waited in the queues when the sample ended.
    pub pending: Vec<u64>,
    /// How often the first request came where none waited; where that was never, and some waited
    /// in the end, some did throughout.
    #[serde(default)]
    pub activations: Vec<u64>,
    /// Requests that were in the disk when the sample ended.
    pub in_disk: Vec<u64>,
    /// Disk time dispatched per second, in seconds.
    pub consumption: Vec<f64>,
    /// For how many seconds requests waited while none of the class was in the disk, summed over
    /// queues.
    pub starved_seconds: Vec<f64>,
    /// For how many seconds its limit held requests back, summed over queues.
    pub limited_seconds: Vec<f64>,
    /// Writes done.
    #[serde(default)]
    pub writes: Vec<u64>,
    /// Writes asked for, or parts of large ones, that begin or end at no multiple of 4 KiB.
    #[serde(default)]
    pub misaligned_writes: Vec<u64>,
}

/// A group of classes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GroupOfClass {
    /// Its name.
    pub name: String,
    /// Its shares at the start, alongside those of other groups and of classes outside of groups.
    pub shares: u32,
}

/// What was seen of the disk over time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DiskSeries {
    /// Disk time dispatched per second, in seconds.
    pub consumption: Vec<f64>,
    /// Requests dispatched for each one completed.
    pub flow_ratio: Vec<f64>,
    /// What the disk did of what its figures say; none where work waited for less than a tenth of
    /// the sample.
    pub speed: Vec<Option<f64>>,
    /// For how many seconds work waited for the disk throughout.
    pub waited_seconds: Vec<f64>,
    /// For how many seconds of these the disk stood still.
    #[serde(default)]
    pub stopped_seconds: Vec<f64>,
    /// For how many seconds requests waited for which reason, summed over queues.
    pub blocked_seconds: BTreeMap<String, Vec<f64>>,
    /// Turns of threads that came late.
    pub late_turns: Vec<u64>,
    /// For how many seconds there had been no turns before them.
    pub late_seconds: Vec<f64>,
    /// By how many seconds the latest thread was behind its turn when the sample ended.
    #[serde(default)]
    pub turn_overdue_seconds: Vec<f64>,
    /// Requests that the window gave up.
    pub overdue: Vec<u64>,
    /// Bytes that the device wrote; 0 where that is not known.
    pub written_bytes: Vec<u64>,
    /// Bytes of these that were unscheduled.
    pub written_unscheduled_bytes: Vec<u64>,
    /// Bytes of these that this process wrote.
    #[serde(default)]
    pub written_unscheduled_own_bytes: Vec<u64>,
    /// Bytes that the device read; 0 where that is not known.
    pub read_bytes: Vec<u64>,
    /// Bytes of these that were unscheduled.
    pub read_unscheduled_bytes: Vec<u64>,
    /// Bytes of these that this process read.
    #[serde(default)]
    pub read_unscheduled_own_bytes: Vec<u64>,
}
