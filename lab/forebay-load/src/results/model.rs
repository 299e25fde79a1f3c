//! The results of a run as they are written to a file. The names of the fields do not change;
//! fields may be added.

use std::collections::BTreeMap;
use std::fmt;

use forebay_report::verdict::StallFigures;
use serde::{Deserialize, Serialize};

use super::members::MembersResult;
use super::series::Series;

/// The version of the format.
pub const VERSION: u32 = 1;

/// What is written for one call of the program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Report {
    /// The same load without and with the scheduler.
    Comparison(Box<Comparison>),
    /// One run.
    Run(Box<RunResult>),
}

/// The same load without and with the scheduler.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// [`VERSION`].
    pub version: u32,
    /// The run without the scheduler, and the run with it.
    pub runs: [RunResult; 2],
}

/// One run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunResult {
    /// [`VERSION`].
    pub version: u32,
    /// The length of the measured part, without the warm-up.
    pub duration_seconds: f64,
    /// How requests got to the disk: `io_uring`, `linux-aio`, `threads`, `simulated`.
    pub backend: String,
    /// How the shards shared the scheduler: `per-thread` with an I/O queue each, `shared` with one
    /// queue for all, `coordinators` by sending their requests to I/O threads.
    pub topology: String,
    /// How many I/O queues there were.
    pub io_queues: u32,
    /// The scheduler's policy, also for a run that did not use it.
    pub policy: String,
    /// In which order the scheduler serves classes, also for a run that did not use it.
    pub order: String,
    /// What the scheduler knew of the disk.
    pub properties: Properties,
    /// The policy that scheduled this run, or `none`.
    pub scheduler: String,
    /// The seed of offsets and random gaps.
    pub seed: u64,
    /// What each job got, over all shards, in the order of the job file.
    pub classes: Vec<ClassResult>,
    /// What each job got on each shard.
    pub shards: Vec<ShardResult>,
    /// What the scheduler saw of the disk; none without a scheduler.
    pub disk: Option<DiskResult>,
    /// CPU time of the program in the measured part; none in a simulation.
    pub cpu_seconds: Option<f64>,
    /// The part of the time in which the threads of the load waited for a processor, in the mean;
    /// none in a simulation, where the kernel does not count it, and in older files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processor_wait: Option<f64>,
    /// The run over time, if that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub series: Option<Box<Series>>,
}

impl RunResult {
    /// The same run, with the flushes that follow the requests of a job as a job of their own.
    pub(super) fn with_flushes_as_jobs(&self) -> Self {
        let jobs = |class: &ClassResult| {
            let flushes = class.flushes.map(|flushes| flushes.as_job(class));
            std::iter::once(class.clone()).chain(flushes)
        };
        Self { classes: self.classes.iter().flat_map(jobs).collect(), ..self.clone() }
    }
}

/// What the scheduler knew of the disk.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Properties {
    /// Where the figures come from.
    pub source: PropertiesSource,
    /// Reads per second.
    pub read_iops: Option<u64>,
    /// Bytes read per second.
    pub read_bandwidth: Option<u64>,
    /// Writes per second.
    pub write_iops: Option<u64>,
    /// Bytes written per second.
    pub write_bandwidth: Option<u64>,
    /// By which region it priced mixes of reads and writes, if by one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<RegionInUse>,
    /// What looks wrong with the figures, a sentence for each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// A region of mixes that keep a latency of reads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RegionInUse {
    /// Which percentile of the latency.
    pub read_percentile: f64,
    /// How long it is at most, in microseconds.
    pub latency_us: f64,
    /// The goal that it was chosen for, where it is of another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<RegionAsked>,
    /// Its border, from reads alone to writes alone at equal steps of the part of disk time that
    /// writes have: bytes written, and reads of 4 KiB, per second. Empty in older files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub border: Vec<[f64; 2]>,
    /// Where the straight line ends that the steps are of: the same of writes alone, and of reads
    /// alone.
    #[serde(default)]
    pub ends: [f64; 2],
}

/// The goal that a region was chosen for.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RegionAsked {
    /// Which percentile of the latency.
    pub read_percentile: f64,
    /// How long it may be, in microseconds.
    pub latency_us: f64,
    /// Whether the region is of another percentile, or of a latency more than twice as long or less
    /// than half as long.
    pub far: bool,
}

impl fmt::Display for RegionInUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let goal =
            |percentile: f64, us: f64| format!("p{percentile} of reads within {:.3} ms", us / 1e3);
        f.write_str(&goal(self.read_percentile, self.latency_us))?;
        let Some(RegionAsked { read_percentile, latency_us, far }) = self.asked else {
            return Ok(());
        };
        let nearness = if far { "which is far from" } else { "the nearest to" };
        write!(f, ", {nearness} {}", goal(read_percentile, latency_us))
    }
}

/// Where the figures of a disk come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PropertiesSource {
    /// An io-properties file.
    File,
    /// A short measurement before the run.
    Probe,
    /// The description of the simulated disk.
    Simulated,
    /// There are none.
    None,
}

/// What one shard did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ShardResult {
    /// The number of the shard.
    pub shard: u32,
    /// What each of its jobs got.
    pub classes: Vec<ClassResult>,
}

/// What one job got.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClassResult {
    /// The name of the job.
    pub name: String,
    /// The name of its priority class.
    pub class: String,
    /// The shares of the class.
    pub shares: u32,
    /// Requests done in the measured part of the run.
    pub requests: u64,
    /// Requests that failed in it.
    pub errors: u64,
    /// Requests in the disk, in the queue, or due and never sent at its end.
    pub unfinished: u64,
    /// Requests done per second.
    pub iops: f64,
    /// Bytes moved per second.
    pub bandwidth_bytes_per_second: u64,
    /// From the intended start to the completion. Unfinished requests count with their age. Here,
    /// and in the three parts below, `flushes` do not count.
    pub latency_us: LatencyResult,
    /// From the hand-over to the scheduler to the completion.
    pub service_us: LatencyResult,
    /// From the hand-over to the scheduler to the dispatch to the disk.
    pub queue_us: LatencyResult,
    /// From the dispatch to the disk to the completion.
    pub disk_us: LatencyResult,
    /// The flushes that follow other requests of the job; none without them, and in older files,
    /// where their latencies are among the others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flushes: Option<FlushResult>,
    /// What a request at the 99th percentile of `latency_us` spent where; none in older files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99_parts_us: Option<LatencyParts>,
    /// What identifies its load, in the words of the job file; empty by shard, and in older files.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub load: String,
    /// The measured part of the run in equal parts, to say how even it was; none by shard, and in
    /// older files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub intervals: Vec<IntervalResult>,
}

/// The flushes that follow other requests of a job, and are counted among its requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FlushResult {
    /// Flushes done in the measured part of the run.
    pub requests: u64,
    /// Flushes done per second.
    pub iops: f64,
    /// From the completion of the request before to that of the flush. Unfinished flushes count
    /// with their age.
    pub latency_us: LatencyResult,
}

impl ClassResult {
    /// What the flushes of the job are called in results.
    pub fn flushes_name(&self) -> String {
        format!("{} flushes", self.name)
    }
}

impl FlushResult {
    /// A job that does nothing but these flushes of `job`. Only their latencies are known by
    /// interval.
    fn as_job(&self, job: &ClassResult) -> ClassResult {
        let interval = |of: &IntervalResult| IntervalResult {
            latency_ns: of.flush_latency_ns.clone(),
            ..IntervalResult::default()
        };
        ClassResult {
            name: job.flushes_name(),
            class: job.class.clone(),
            shares: job.shares,
            requests: self.requests,
            iops: self.iops,
            latency_us: self.latency_us,
            load: job.load.clone(),
            intervals: job.intervals.iter().map(interval).collect(),
            ..ClassResult::default()
        }
    }
}

/// The parts of a latency, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LatencyParts {
    /// Before the scheduler had it: the load generator had as many requests under way as it may, or
    /// ran late.
    pub backlog: f64,
    /// From the hand-over to the dispatch.
    pub queue: f64,
    /// From the dispatch to the completion.
    pub disk: f64,
}

/// What a job got in one part of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct IntervalResult {
    /// Requests done.
    pub requests: u64,
    /// Bytes moved by these.
    pub bytes: u64,
    /// Latencies of the requests that were meant to begin in it: `nanoseconds:count`, separated by
    /// spaces, where the count is of those that took so long or up to a sixteenth longer.
    pub latency_ns: String,
    /// The same of the [flushes](ClassResult::flushes).
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub flush_latency_ns: String,
}

/// A distribution of latencies, in microseconds; all zero if there were no requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LatencyResult {
    /// The mean.
    pub mean: f64,
    /// The median.
    pub p50: f64,
    /// The 95th percentile.
    pub p95: f64,
    /// The 99th percentile.
    pub p99: f64,
    /// The 99.9th percentile.
    pub p999: f64,
    /// The longest.
    pub max: f64,
}

/// What the scheduler saw of the disk.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DiskResult {
    /// Disk time dispatched per second, in seconds, over the measured part of the run.
    pub consumption_mean: f64,
    /// The same in its busiest second.
    pub consumption_max: f64,
    /// Requests dispatched for each one completed; above 1 while requests pile up in the disk, which
    /// they cannot where a window bounds them.
    pub flow_ratio: f64,
    /// The most requests that were in the disk at once; of a real disk, that one of its I/O queues
    /// had there.
    pub in_flight_max: u64,
    /// For how many seconds requests waited for which reason.
    pub dispatch_blocked: BTreeMap<String, f64>,
    /// Threads and tasks that the scheduler woke, its timers included; none in older files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wake_ups: Option<u64>,
    /// What the members of a simulated array had in flight; none for a single disk, and in older
    /// files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub members: Option<MembersResult>,
    /// What the disk did of what its figures say while work waited for it; none where that was for
    /// less than a tenth of the measured part. Healthy is 0.9 or more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speed: Option<f64>,
    /// For how many seconds work waited for the disk throughout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waited_seconds: Option<f64>,
    /// The stalls of the disk; none where it never stalled, and in older files.
    #[serde(default, rename = "stops", skip_serializing_if = "Option::is_none")]
    pub stalls: Option<StallsResult>,
    /// What became of the latency target; none without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_target: Option<LatencyTargetResult>,
}

/// Where work waited for less than this part of the time, nothing is known of the disk's speed.
pub(super) const WAITED_MIN: f64 = 0.1;

impl DiskResult {
    /// What the disk did of what its figures say while work waited for it and it did not stand
    /// still; none where that was for less than a tenth of the measured `seconds`.
    pub fn running_speed(&self, seconds: f64) -> Option<f64> {
        let (speed, waited) = (self.speed?, self.waited_seconds?);
        let running = waited - self.stalls.map_or(0.0, |stalls| stalls.seconds);
        (running >= seconds * WAITED_MIN).then(|| speed * waited / running.max(f64::MIN_POSITIVE))
    }
}

/// The stalls of the disk in the measured part of a run: spans in which requests were in the disk and
/// none completed, for longer than eight windows and 100 ms.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct StallsResult {
    /// How many there were.
    pub count: u64,
    /// How long they were together.
    pub seconds: f64,
    /// How long the longest was.
    pub longest_seconds: f64,
    /// Requests that became overdue in them.
    pub overdue: u64,
}

impl From<StallsResult> for StallFigures {
    fn from(stalls: StallsResult) -> Self {
        let StallsResult { count, seconds, longest_seconds, overdue } = stalls;
        Self { count, seconds, longest_seconds, overdue }
    }
}

/// What became of a latency target in the measured part of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LatencyTargetResult {
    /// As it is written: `p95=1ms`, `writes:p99=5ms`.
    pub target: String,
    /// What the percentile may be, in microseconds.
    pub latency_us: f64,
    /// Whether that is not above the latency of the idle disk, so that nothing keeps it.
    #[serde(default)]
    pub below_base: bool,
    /// Requests of its kind that met a loaded disk,
    pub measured: u64,
    /// of which this many took longer.
    pub over: u64,
    /// Whether these were no more than may be, and the disk stood still for no larger part of the
    /// run; none where nothing was measured and it never stood still.
    pub holds: Option<bool>,
    /// Whether sending less keeps it, as the scheduler found at the end.
    pub attainable: bool,
    /// Disk time that might be unfinished in the disk at the end, in microseconds.
    pub window_us: f64,
}

/// `value` with `digits` digits behind the point, so that results stay comparable as text.
pub fn rounded(value: f64, digits: i32) -> f64 {
    let scale = 10_f64.powi(digits);
    (value * scale).round() / scale
}
