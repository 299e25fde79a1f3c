//! The database node of the article: queries that saturate its disks, then writes alongside them.

use core::time::Duration;

use forebay_core::Time;
use forebay_sim::simulation::{ClassTrace, Outcome, Period, SchedulerConfig, Trace};

use crate::experiment::{Scale, Seed};
use crate::report::Report;
use crate::scenario;

const DISK: &str = include_str!("node-disk.yaml");
const SHARDS: u32 = 32;
const JOBS: &str = include_str!("node-load.yaml");

/// How long the queries are alone, and how long they are not.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Phases {
    pub(crate) alone_seconds: u64,
    pub(crate) mixed_seconds: u64,
}

impl Phases {
    pub(crate) const fn of(scale: Scale) -> Self {
        Self { alone_seconds: scale.seconds(15, 300), mixed_seconds: scale.seconds(30, 1_200) }
    }

    pub(crate) const fn seconds(self) -> u64 {
        self.alone_seconds + self.mixed_seconds
    }
}

/// A run of the node; what is measured is the time with writes.
pub(crate) fn run(
    seed: Seed,
    phases: Phases,
    slice_millis: u64,
    scheduler: SchedulerConfig,
) -> Result<Outcome, String> {
    let jobs = scenario::jobs(JOBS, SHARDS)?;
    let from = Time::from_nanos(phases.alone_seconds * 1_000_000_000);
    let writes = jobs.jobs.iter().filter(|job| job.name != "query");
    let schedule = writes.map(|job| Period { job: job.name.clone(), from, to: None }).collect();
    let mut config = seed.config(jobs, seed.disk(DISK)?, phases.mixed_seconds * 1_000);
    config.schedule = schedule;
    config.scheduler = scheduler;
    config.warmup = Duration::from_secs(phases.alone_seconds);
    config.trace_buckets = Some((phases.seconds() * 1_000 / slice_millis) as usize);
    scenario::run(config)
}

/// What the class called `name` did when.
pub(crate) fn class<'a>(trace: &'a Trace, name: &str) -> Result<&'a ClassTrace, String> {
    let found = trace.classes.iter().find(|class| class.name == name);
    found.ok_or_else(|| format!("there is no class called {name}"))
}

/// Adds the parameters of the node to a report.
pub(crate) fn describe(report: &mut Report, phases: Phases) {
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
    let Phases { alone_seconds, mixed_seconds } = phases;
    let said = format!("{alone_seconds} s of queries alone, then {mixed_seconds} s with writes");
    report.parameter("duration", said + " (published: 300 s and 1,200 s)");
    report.parameter("forebay", "pace + window, latency goal 0.75 ms");
}
