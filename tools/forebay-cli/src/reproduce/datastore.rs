//! The datastore examples on simulated disks, as the articles of 2016 and 2022 show theirs over
//! time.

use std::time::Duration;

use forebay_config::Source;
use forebay_core::{LATENCY_GOAL_DEFAULT, LatencyTarget, Op, Policy};
use forebay_load::job_file::JobFile;
use forebay_load::results::model::RunResult;
use forebay_load::results::series::Series;
use forebay_report::Chart;
use forebay_sim::simulation::{SchedulerConfig, Simulation, SimulationConfig};
use forebay_sim::spec::DiskSpec;

use super::figure::{ALL, Column, Figure, line};
use crate::failure::Failure;

const SHARDS: u32 = 2;

/// A scheduler with what it is called.
type NamedScheduler = (&'static str, fn() -> SchedulerConfig);

/// An example, run on a disk under one scheduler or several.
pub(super) struct Datastore {
    pub(super) id: &'static str,
    pub(super) title: &'static str,
    pub(super) shows: &'static str,
    jobs: &'static str,
    disk: &'static str,
    seconds: u64,
    schedulers: &'static [NamedScheduler],
    figures: &'static [Figure],
}

/// What came of an example under one scheduler.
pub(super) struct DatastoreRun {
    /// Under which its results are on a page.
    pub(super) id: String,
    pub(super) result: RunResult,
    pub(super) charts: Vec<Chart>,
}

const QUERIES: &[&str] = &["query", "query-half", "query-three-quarters"];

pub(super) const DATASTORES: [Datastore; 2] = [
    Datastore {
        id: "datastore-2016",
        title: "A datastore saturated with queries, and a write load after five seconds",
        shows: "examples/datastore-write-load.yaml on samsung-850-pro, as figures 3 to 6 of the \
                article of 2016 show their node: queries wait in the queue and not in the disk; \
                the write load takes its share at once; what it asks for does not wait with the \
                queries, nor do bursts of memtables and compaction.",
        jobs: include_str!("../../../../examples/datastore-write-load.yaml"),
        disk: "samsung-850-pro",
        seconds: 15,
        schedulers: &[("forebay", SchedulerConfig::default)],
        figures: &[
            Figure {
                title: "2016, figure 3: requests served",
                y: "per second",
                seconds: 0.0..5.0,
                lines: &[line("query", &["query"], Column::Served)],
            },
            Figure {
                title: "2016, figure 3: pending requests",
                y: "requests",
                seconds: 0.0..5.0,
                lines: &[line("query", &["query"], Column::Pending)],
            },
            Figure {
                title: "2016, figure 4: new request delay of queries (p99)",
                y: "ms",
                seconds: 0.0..5.0,
                lines: &[line("query", &["query"], Column::QueueP99)],
            },
            Figure {
                title: "2016, figure 4: bandwidth of queries",
                y: "MB/s",
                seconds: 0.0..5.0,
                lines: &[line("query", &["query"], Column::Megabytes)],
            },
            Figure {
                title: "2016, figure 5: new request delay (p99)",
                y: "ms",
                seconds: ALL,
                lines: &[
                    line("query", &["query"], Column::QueueP99),
                    line("commitlog", &["commitlog"], Column::QueueP99),
                ],
            },
            Figure {
                title: "2016, figure 5: bandwidth",
                y: "MB/s",
                seconds: ALL,
                lines: &[
                    line("query", &["query"], Column::Megabytes),
                    line("commitlog", &["commitlog"], Column::Megabytes),
                ],
            },
            Figure {
                title: "2016, figure 6: new request delay of bursts (p99)",
                y: "ms",
                seconds: ALL,
                lines: &[
                    line("memtable", &["memtable"], Column::QueueP99),
                    line("compaction", &["compaction", "compaction-write"], Column::QueueP99),
                ],
            },
        ],
    },
    Datastore {
        id: "datastore-2022",
        title: "Ingestion, then queries in three phases, alongside compaction",
        shows: "examples/datastore-mixed.yaml on i3.2xlarge, as the article of 2022 shows its \
                node: under the scheduler of before, by Little's law, and under forebay's with a \
                latency target of 1 ms for writes in the disk. Queries have their rate in level \
                phases, compaction takes what is left, and requests wait in the queue, where they \
                are in order.",
        jobs: include_str!("../../../../examples/datastore-mixed.yaml"),
        disk: "i3.2xlarge",
        seconds: 18,
        schedulers: &[("2018: Little's law", littles_law), ("forebay", with_target)],
        figures: &[
            Figure {
                title: "2022: throughput of ingestion",
                y: "MB/s",
                seconds: 0.0..5.0,
                lines: &[
                    line(
                        "written",
                        &["commitlog", "memtable", "compaction-write"],
                        Column::Megabytes,
                    ),
                    line("read", &["compaction"], Column::Megabytes),
                ],
            },
            Figure {
                title: "2022: throughput of queries",
                y: "MB/s",
                seconds: 6.0..f64::INFINITY,
                lines: &[
                    line("queries", QUERIES, Column::Megabytes),
                    line("compaction", &["compaction", "compaction-write"], Column::Megabytes),
                ],
            },
            Figure {
                title: "2022: latency of ingestion (median of memtable)",
                y: "ms",
                seconds: 0.0..5.0,
                lines: &[
                    line("in the disk", &["memtable"], Column::DiskMedian),
                    line("in the queue", &["memtable"], Column::QueueMedian),
                ],
            },
            Figure {
                title: "2022: latency of queries (median)",
                y: "ms",
                seconds: 6.0..f64::INFINITY,
                lines: &[
                    line("in the disk", QUERIES, Column::DiskMedian),
                    line("in the queue", QUERIES, Column::QueueMedian),
                ],
            },
        ],
    },
];

fn littles_law() -> SchedulerConfig {
    let policy = Policy::LittlesLaw { latency_goal: LATENCY_GOAL_DEFAULT };
    SchedulerConfig { policy: Some(policy), ..SchedulerConfig::by_figures() }
}

fn with_target() -> SchedulerConfig {
    let target = LatencyTarget::new(Op::Write, 950, Duration::from_millis(1));
    let latency_target = target.ok().map(LatencyTarget::in_disk);
    SchedulerConfig { latency_target, ..SchedulerConfig::default() }
}

impl Datastore {
    /// Runs it under each of its schedulers.
    pub(super) fn run(&self) -> Result<Vec<DatastoreRun>, Failure> {
        let one = |(place, (name, scheduler)): (usize, &NamedScheduler)| {
            let result = self.simulate(scheduler())?;
            let series = result.series.as_deref();
            let charts = series.map(|series| self.charts(name, series)).unwrap_or_default();
            Ok(DatastoreRun { id: format!("{}-{}", self.id, place + 1), result, charts })
        };
        self.schedulers.iter().enumerate().map(one).collect()
    }

    fn simulate(&self, scheduler: SchedulerConfig) -> Result<RunResult, Failure> {
        let failed = |error: &dyn std::fmt::Display| Failure::Run(format!("{}: {error}", self.id));
        let jobs = JobFile::parse(&Source::new(self.id, self.jobs), None, SHARDS)
            .map_err(|error| failed(&error))?;
        let spec = DiskSpec::resolve(self.disk)?;
        let mut config = SimulationConfig::new(jobs, spec.build(1));
        config.scheduler = scheduler;
        config.warmup = Duration::ZERO;
        config.duration = Duration::from_secs(self.seconds);
        config.capacity = Some(spec.capacity());
        config.series = true;
        let outcome = Simulation::new(config).and_then(Simulation::run);
        outcome.map(|outcome| outcome.result).map_err(|error| failed(&error))
    }

    fn charts(&self, scheduler: &str, series: &Series) -> Vec<Chart> {
        self.figures.iter().map(|figure| figure.chart(scheduler, series)).collect()
    }
}
