//! The two loads of the 2022 article: ingestion with compaction, then queries alongside compaction.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use forebay_config::Source;
use forebay_core::{DiskModel, LATENCY_GOAL_DEFAULT, LatencyTarget, Policy, Time};
use forebay_report::{Chart, Mark};
use forebay_sim::simulation::{
    ClassTrace, Outcome, Period, Polling, Sample, SchedulerConfig, Trace,
};
use forebay_sim::spec::DiskSpec;

use super::{MEASURED, preset, region};
use crate::experiment::{Scale, Seed};
use crate::report::Report;
use crate::scenario::{grouped_jobs, model, off_by, pace_window, run};

const LINE: &str = include_str!("disk-by-rates.yaml");
const SURFACE: &str = "by its surface";

/// A disk that the loads run on.
pub(crate) struct Disk {
    pub(crate) name: &'static str,
    spec: DiskSpec,
}

impl Disk {
    /// One that does mixed loads as its four rates say.
    pub(crate) fn line() -> Result<Self, String> {
        let spec =
            DiskSpec::parse(&Source::new("disk", LINE)).map_err(|error| error.to_string())?;
        Ok(Self { name: "by its rates", spec })
    }

    /// One that does them as was measured.
    pub(crate) fn surface() -> Result<Self, String> {
        Ok(Self { name: SURFACE, spec: preset(MEASURED)? })
    }

    /// The same, as fast as the article's under its old scheduler.
    pub(crate) fn peak() -> Result<Self, String> {
        let source = Source::new("disk", include_str!("disk-at-its-peak.yaml"));
        let spec = DiskSpec::parse(&source).map_err(|error| error.to_string())?;
        Ok(Self { name: "at its peak", spec })
    }

    pub(crate) fn both() -> Result<[Self; 2], String> {
        Ok([Self::line()?, Self::surface()?])
    }

    /// Whether it is the one that was measured.
    pub(crate) fn is_measured(&self) -> bool {
        self.name == SURFACE
    }

    /// MB/s of writes alone and of reads alone: the edge of the model is the line between.
    pub(crate) fn edge_mb(&self) -> (f64, f64) {
        let rates = self.spec.build(0).rates();
        (rates.write_bandwidth as f64 / 1e6, rates.read_bandwidth as f64 / 1e6)
    }
}

const SHARDS: u32 = 4;
/// Queries of a shard that may be under scheduler at once.
const FIBERS: u64 = 25;
pub(crate) const SLICES: usize = 200;
/// Queries per second in the three phases.
pub(crate) const QUERY_RATES: [u64; 3] = [10_000, 5_000, 7_500];
/// Of a query; the article does not tell it.
const QUERY_BYTES: u64 = 32_768;

const CLASSES: &str = include_str!("classes.yaml");
const COMPACTION_JOBS: &str = include_str!("compaction-jobs.yaml");
const CLIENT_JOBS: &str = include_str!("client-jobs.yaml");

/// The classes of ingestion, and those of compaction: reads first.
pub(crate) const INGESTED: [&str; 4] =
    ["commitlog", "memtable", "compaction-read", "compaction-write"];
pub(crate) const COMPACTION: [&str; 2] = ["compaction-read", "compaction-write"];
/// The classes of queries alongside compaction.
pub(crate) const QUERIES: [&str; 3] = ["query", COMPACTION[0], COMPACTION[1]];

/// A policy, its costs of requests, and the times when its shards poll.
#[derive(Clone, Copy)]
pub(crate) struct SchedulerVariant {
    pub(crate) name: &'static str,
    policy: PolicyKind,
    costs: CostVariant,
    polling: Polling,
}

impl SchedulerVariant {
    /// The same with shards that look each half millisecond alone, as Seastar's do when they are
    /// busy.
    pub(crate) const fn on_ticks(self) -> Self {
        Self { polling: Polling::Tick(500_000), ..self }
    }
}

#[derive(Clone, Copy, Debug)]
enum PolicyKind {
    NoScheduler,
    LittlesLaw,
    TwoLevelBucket,
    PaceWindow,
}

#[derive(Clone, Copy, Debug)]
enum CostVariant {
    /// As the rates of the disk say.
    Exact,
    /// A request costs its operation and its bytes, as in 2022.
    Summed,
    /// All rates are given this many percent lower.
    Lower(i64),
    /// As the rates of the disk say, and corrected so that this holds.
    Target(LatencyTarget),
    /// Mixes as the published surface prices them where reads keep this.
    Region(&'static str),
}

pub(crate) const NO_SCHEDULER: SchedulerVariant = SchedulerVariant {
    name: "no scheduler",
    policy: PolicyKind::NoScheduler,
    costs: CostVariant::Exact,
    polling: Polling::Events,
};

pub(crate) const SCHEDULERS: [SchedulerVariant; 5] = [
    SchedulerVariant {
        name: "2018: Little's law",
        policy: PolicyKind::LittlesLaw,
        costs: CostVariant::Exact,
        polling: Polling::Events,
    },
    SchedulerVariant {
        name: "2022: two-level bucket",
        policy: PolicyKind::TwoLevelBucket,
        costs: CostVariant::Summed,
        polling: Polling::Events,
    },
    SchedulerVariant {
        name: "pace+window",
        policy: PolicyKind::PaceWindow,
        costs: CostVariant::Exact,
        polling: Polling::Events,
    },
    SchedulerVariant {
        name: "pace+window, cost of 2022",
        policy: PolicyKind::PaceWindow,
        costs: CostVariant::Summed,
        polling: Polling::Events,
    },
    // so much lower that ingestion loses about the 11 % of throughput that the article lost
    SchedulerVariant {
        name: "pace+window, rates -20 %",
        policy: PolicyKind::PaceWindow,
        costs: CostVariant::Lower(20),
        polling: Polling::Events,
    },
];

/// Pace and window told rates that are this many percent too low.
pub(crate) const fn lower(percent: i64) -> SchedulerVariant {
    SchedulerVariant {
        name: "pace+window",
        policy: PolicyKind::PaceWindow,
        costs: CostVariant::Lower(percent),
        polling: Polling::Events,
    }
}

/// The window of trials, capped by a latency target.
pub(crate) const fn held(target: LatencyTarget) -> SchedulerVariant {
    SchedulerVariant {
        name: "pace+window",
        policy: PolicyKind::PaceWindow,
        costs: CostVariant::Target(target),
        polling: Polling::Events,
    }
}

/// Pace and window told what mixes cost where reads keep `goal`.
pub(crate) const fn in_region(goal: &'static str) -> SchedulerVariant {
    SchedulerVariant {
        name: "pace+window, region",
        policy: PolicyKind::PaceWindow,
        costs: CostVariant::Region(goal),
        polling: Polling::Events,
    }
}

/// The load of clients that ingest, while compaction takes what is left.
pub(crate) fn ingestion(
    seed: Seed,
    disk: &Disk,
    scheduler: &SchedulerVariant,
    seconds: u64,
) -> Result<Arc<Outcome>, String> {
    once(seed, disk, scheduler, &format!("{CLIENT_JOBS}{COMPACTION_JOBS}"), seconds, Vec::new())
}

/// Three phases of queries, while compaction takes what is left.
pub(crate) fn queries(
    seed: Seed,
    disk: &Disk,
    scheduler: &SchedulerVariant,
    phase_seconds: u64,
) -> Result<Arc<Outcome>, String> {
    let mut jobs = COMPACTION_JOBS.to_owned();
    let mut schedule = Vec::new();
    for (index, rate) in QUERY_RATES.into_iter().enumerate() {
        let job = format!("query-{}k", rate as f64 / 1000.0).replace('.', "-");
        let rps = rate / u64::from(SHARDS) / FIBERS;
        jobs.push_str(&format!(
            "- {{name: {job}, type: randread, shards: all, options: {{pause_distribution: poisson}},
   shard_info: {{parallelism: {FIBERS}, rps: {rps}, reqsize: {QUERY_BYTES}, class: query}}}}\n"
        ));
        let from = phase_start(index, phase_seconds);
        schedule.push(Period {
            job,
            from,
            to: Some(from.plus_nanos(phase_seconds * 1_000_000_000)),
        });
    }
    // a quiet phase before, between and after
    once(seed, disk, scheduler, &jobs, 7 * phase_seconds, schedule)
}

/// When a phase of queries begins; each is followed by as long a pause.
pub(crate) fn phase_start(index: usize, phase_seconds: u64) -> Time {
    Time::from_nanos((2 * index as u64 + 1) * phase_seconds * 1_000_000_000)
}

type Run = Arc<OnceLock<Result<Arc<Outcome>, String>>>;

/// [`simulate`]; what several experiments report on is simulated once.
fn once(
    seed: Seed,
    disk: &Disk,
    scheduler: &SchedulerVariant,
    jobs: &str,
    seconds: u64,
    schedule: Vec<Period>,
) -> Result<Arc<Outcome>, String> {
    static RUNS: Mutex<BTreeMap<String, Run>> = Mutex::new(BTreeMap::new());
    let SchedulerVariant { policy, costs, polling, .. } = scheduler;
    let all = format!("{seed:?} {} {policy:?} {costs:?} {polling:?} {seconds} {jobs}", disk.name);
    let mut runs = RUNS.lock().unwrap_or_else(PoisonError::into_inner);
    let run = Arc::clone(runs.entry(all).or_default());
    drop(runs);
    let outcome = || simulate(seed, disk, scheduler, jobs, seconds, schedule).map(Arc::new);
    run.get_or_init(outcome).clone()
}

fn simulate(
    seed: Seed,
    disk: &Disk,
    scheduler: &SchedulerVariant,
    jobs: &str,
    seconds: u64,
    schedule: Vec<Period>,
) -> Result<Outcome, String> {
    let disk = disk.spec.build(seed.0);
    let rates = disk.rates();
    let model = match scheduler.costs {
        CostVariant::Exact | CostVariant::Target(_) => model(&rates)?,
        CostVariant::Region(goal) => model(&rates)?.with_mix_prices(Some(region::prices(goal)?)),
        CostVariant::Summed => {
            DiskModel::from_rates_summed(&rates).map_err(|error| error.to_string())?
        }
        CostVariant::Lower(percent) => model(&off_by(&rates, -percent))?,
    };
    let latency_goal = LATENCY_GOAL_DEFAULT;
    let policy = match scheduler.policy {
        PolicyKind::NoScheduler => Policy::Unlimited,
        PolicyKind::LittlesLaw => Policy::LittlesLaw { latency_goal },
        PolicyKind::TwoLevelBucket => Policy::TwoLevelBucket { latency_goal },
        PolicyKind::PaceWindow => pace_window(&*disk),
    };
    let jobs = grouped_jobs(jobs, Some(CLASSES), SHARDS)?;
    let mut config = seed.config(jobs, disk, seconds * 1000);
    let base = match scheduler.costs {
        CostVariant::Target(target) => {
            SchedulerConfig { latency_target: Some(target), ..SchedulerConfig::default() }
        }
        CostVariant::Exact
        | CostVariant::Summed
        | CostVariant::Lower(_)
        | CostVariant::Region(_) => {
            SchedulerConfig { policy: Some(policy), ..SchedulerConfig::by_figures() }
        }
    };
    config.scheduler = SchedulerConfig { model: Some(model), ..base };
    config.schedule = schedule;
    config.polling = scheduler.polling;
    config.trace_buckets = Some(SLICES);
    run(config)
}

/// How long the phases are.
pub(crate) fn seconds(scale: Scale) -> (u64, u64) {
    (scale.seconds(3, 120), scale.seconds(1, 60))
}

pub(crate) fn trace(outcome: &Outcome) -> Result<&Trace, String> {
    outcome.trace.as_ref().ok_or_else(|| "the run was not traced".to_owned())
}

pub(crate) fn class<'a>(outcome: &'a Outcome, name: &str) -> Result<&'a ClassTrace, String> {
    let found = trace(outcome)?.classes.iter().find(|class| class.name == name);
    found.ok_or_else(|| format!("there is no class called {name}"))
}

/// What `figure` says of each slice of a class, over time in seconds.
pub(crate) fn over_time(
    outcome: &Outcome,
    name: &str,
    figure: impl Fn(&Sample, f64) -> f64,
) -> Result<Vec<(f64, f64)>, String> {
    let slice_seconds = trace(outcome)?.slice_nanos as f64 / 1e9;
    let samples = class(outcome, name)?.samples.iter().enumerate();
    Ok(samples
        .map(|(at, sample)| (at as f64 * slice_seconds, figure(sample, slice_seconds)))
        .collect())
}

/// What all reports on these loads say.
pub(crate) fn report(scale: Scale) -> Report {
    let (ingestion, phase) = seconds(scale);
    let mut report = Report::default();
    report.parameter(
        "disk by its rates",
        "an i3.2xlarge in ScyllaDB's table: 411,200 reads/s, 181,500 writes/s, 2,015 MB/s of \
         reads, 809 MB/s of writes; mixes on a straight line",
    );
    report.parameter(
        "disk by its surface",
        format!("preset {MEASURED}: fitted to the latencies that diskplorer published"),
    );
    report.parameter(
        "load",
        format!(
            "4 shards; ingestion: commitlog and memtable 131 MB/s each; queries of {} KiB; \
             compaction reads and writes 128 KiB whenever it may",
            QUERY_BYTES >> 10
        ),
    );
    report.parameter("shares", "query, commitlog, memtable 1000 each; compaction 100");
    report
        .parameter("measured", format!("ingestion {ingestion} s, each phase of queries {phase} s"));
    report
}

pub(crate) fn mb_per_second(sample: &Sample, seconds: f64) -> f64 {
    sample.bytes as f64 / 1e6 / seconds
}

/// A chart of the bandwidth of these classes.
pub(crate) fn throughput(
    title: &str,
    outcome: &Outcome,
    classes: &[&str],
) -> Result<Chart, String> {
    let mut chart = Chart::new(title, "s", "MB/s");
    for name in classes {
        chart = chart.with(name, Mark::Line, over_time(outcome, name, mb_per_second)?);
    }
    Ok(chart)
}

/// The samples of the class `name` in one phase of queries, without its first and last slice.
pub(crate) fn phase<'a>(
    outcome: &'a Outcome,
    name: &str,
    index: usize,
    phase_seconds: u64,
) -> Result<Vec<&'a Sample>, String> {
    let slice = trace(outcome)?.slice_nanos;
    let from = phase_start(index, phase_seconds).as_nanos();
    let to = from + phase_seconds * 1_000_000_000;
    let within = |at: u64| at * slice >= from + slice && (at + 2) * slice <= to;
    let samples = (0_u64..).zip(&class(outcome, name)?.samples);
    Ok(samples.filter(|&(at, _)| within(at)).map(|(_, sample)| sample).collect())
}
