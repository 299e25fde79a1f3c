//! The database node of the article: queries that saturate its disks, then writes beside them.

use core::time::Duration;

use forebay_core::Time;

use crate::experiments::{Report, Scale, scenario};
use crate::simulation::{ClassTrace, Outcome, Period, SchedulerConfig, Trace};

/// An i2.8xlarge as published: its queries stop at 300 MB/s, and reads halve when as much is written,
/// so all bytes pass one bus at that rate. Latency and channels are assumed; they do not limit it.
const DISK: &str = "
kind: ideal
source: the article
channels: 64
read_latency: 500us
write_latency: 500us
bandwidth: 300000000
";
const SHARDS: u32 = 32;
/// All classes have the shares of the article's table 2.
const JOBS: &str = "
- name: query
  type: randread
  shards: all
  shard_info: { parallelism: 78, reqsize: 60kB, shares: 100 }
- name: commitlog
  type: append
  shards: all
  shard_info: { parallelism: 4, rps: 7, reqsize: 128kB, shares: 100 }
  options: { pause_distribution: poisson }
- name: memtable
  type: append
  shards: [7]
  shard_info: { parallelism: 1, reqsize: 128kB, shares: 100, think_after: 50ms, think_time: 550ms }
- name: compaction
  type: seqread
  shards: [13]
  shard_info: { parallelism: 1, reqsize: 128kB, shares: 100, think_after: 75ms, think_time: 1075ms }
";

/// How long the queries are alone, and how long they are not.
#[derive(Clone, Copy, Debug)]
pub(super) struct Phases {
    pub(super) alone_seconds: u64,
    pub(super) beside_seconds: u64,
}

impl Phases {
    pub(super) const fn of(scale: Scale) -> Self {
        Self { alone_seconds: scale.seconds(15, 300), beside_seconds: scale.seconds(30, 1_200) }
    }

    pub(super) const fn seconds(self) -> u64 {
        self.alone_seconds + self.beside_seconds
    }
}

/// A run of the node; what is measured is the time with writes.
pub(super) fn run(
    phases: Phases,
    slice_millis: u64,
    scheduler: SchedulerConfig,
) -> Result<Outcome, String> {
    let jobs = scenario::jobs(JOBS, SHARDS)?;
    let from = Time::from_nanos(phases.alone_seconds * 1_000_000_000);
    let writes = jobs.jobs.iter().filter(|job| job.name != "query");
    let schedule = writes.map(|job| Period { job: job.name.clone(), from, to: None }).collect();
    let mut config = scenario::config(jobs, scenario::disk(DISK)?, phases.beside_seconds * 1_000);
    config.schedule = schedule;
    config.scheduler = scheduler;
    config.warmup = Duration::from_secs(phases.alone_seconds);
    config.trace_buckets = Some((phases.seconds() * 1_000 / slice_millis) as usize);
    scenario::run(config)
}

/// What the class called `name` did when.
pub(super) fn class<'a>(trace: &'a Trace, name: &str) -> Result<&'a ClassTrace, String> {
    let found = trace.classes.iter().find(|class| class.name == name);
    found.ok_or_else(|| format!("there is no class called {name}"))
}

/// Adds the parameters of the node to a report.
pub(super) fn describe(report: &mut Report, phases: Phases) {
    report.parameter(
        "disk",
        "an i2.8xlarge: 300 MB/s in both directions together, from the article; 500 us and 64 \
         channels are assumed",
    );
    report.parameter("queries", "2,496 at a time on 32 shards, 60 KiB each");
    report.parameter("commitlog", "896 writes of 128 KiB per second at random times, 117 MB/s");
    report.parameter("memtable", "on one shard one write of 128 KiB at a time, 50 of 600 ms");
    report.parameter("compaction", "on another one read of 128 KiB at a time, 75 of 1,150 ms");
    report.parameter("shares", "100 each, as in the article's table 2");
    let Phases { alone_seconds, beside_seconds } = phases;
    let said = format!("{alone_seconds} s of queries alone, then {beside_seconds} s with writes");
    report.parameter("duration", said + " (published: 300 s and 1,200 s)");
    report.parameter("forebay", "pace + window, latency goal 0.75 ms");
}
