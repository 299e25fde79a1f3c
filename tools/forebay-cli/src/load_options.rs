//! The options of every command that runs a load.

use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::thread;
use std::time::Duration;

use clap::{Args, ValueEnum};
use forebay::properties::{Properties, RegionGoal, TargetBelowBase, parse_latency_target};
use forebay_config::Source;
use forebay_core::{
    Control, GroupConfig, IoGroup, LATENCY_GOAL_DEFAULT, LatencyTarget, Policy, SHARDS_MAX,
    ServiceOrder,
};
use forebay_explore::Goal;
use forebay_load::job_file::JobFile;
use forebay_load::results::model::Report;
use forebay_load::results::text;

use crate::console::{json, note};
use crate::control::ControlOptions;
use crate::disk::Disk;
use crate::failure::Failure;
use crate::report;
use crate::span;
use crate::whole_file;
use crate::whole_number;

/// How long the fair queue of 2016 remembers.
const TAU_2016_NANOS: u64 = 100_000_000;

/// How a load is run and scheduled, and how the results are shown.
#[derive(Args)]
pub(crate) struct LoadOptions {
    /// A file with priority classes for the jobs, and groups of classes
    #[arg(long, value_name = "FILE")]
    sched_groups: Option<PathBuf>,
    /// The duration of the measurement
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = span::parse_positive)]
    pub(crate) duration: Duration,
    /// The duration of the run before the measurement
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = span::parse)]
    pub(crate) warmup: Duration,
    /// Number of shards [default: one per processor; 2 on a simulated disk]
    #[arg(long, value_name = "N", value_parser = whole_number::within::<u32>(1..=SHARDS_MAX as u64))]
    pub(crate) shards: Option<u32>,
    /// The properties of the disk: an io-properties file, or a forebay.yaml [default: a real disk
    /// is probed for some seconds; those of a simulated disk are known]
    #[arg(long, value_name = "FILE")]
    properties: Option<PathBuf>,
    /// The disk time with which the window begins, unless the disk needs more; trials change it
    /// later. Use --latency-target to bound latencies [default: as much as the disk needs; 0.75ms
    /// with --control rates]
    #[arg(long, value_name = "TIME", value_parser = span::parse_positive)]
    latency_goal: Option<Duration>,
    #[command(flatten)]
    control: ControlOptions,
    /// A latency target from enqueueing to completion, which applies while other requests wait: a
    /// percentile of reads, such as p95=1ms or p99.9=2ms, or of writes, such as writes:p95=5ms;
    /// only of the time in the disk with disk:p95=1ms; or off. While it is missed, less is sent to
    /// the disk, as long as that improves the latency [default: that of --properties]
    #[arg(long, value_name = "TARGET")]
    latency_target: Option<TargetOption>,
    /// How the scheduler decides when a request may go to the disk
    #[arg(long, value_enum, default_value_t = PolicyName::PaceWindow)]
    policy: PolicyName,
    #[command(flatten)]
    region: RegionOptions,
    /// The order in which the scheduler serves classes [default: that of --policy]
    #[arg(long, value_enum)]
    order: Option<OrderName>,
    /// The most requests in the disk, for --policy concurrency and 2016
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = whole_number::within::<u32>(1..=u32::MAX.into()))]
    concurrency: u32,
    /// Seed of the random offsets and gaps
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = seed)]
    pub(crate) seed: u64,
    /// Run the same load without a scheduler first, and compare [default with --format text]
    #[arg(long, value_enum, value_name = "WITH")]
    compare: Option<Baseline>,
    /// Write a page with findings, totals and charts over time; results in JSON or YAML get the
    /// same time series (`series`)
    #[arg(long, value_name = "FILE.html")]
    pub(crate) report: Option<PathBuf>,
    /// How to print the results
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
}

/// Reads the number from which all that is random follows.
pub(crate) fn seed(text: &str) -> Result<u64, String> {
    whole_number::within(0..=u64::MAX)(text)
}

/// What a run is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Baseline {
    /// Compare with the same load without a scheduler
    None,
    /// Do not compare: run only once
    Off,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum PolicyName {
    /// At the rate of the disk, within a window of disk time in flight
    #[value(name = "pace+window")]
    PaceWindow,
    /// Seastar 2023: at the rate of the disk, and slower while requests pile up in it
    FlowRatio,
    /// Seastar 2022: at the rate of the disk, and no faster than requests complete
    TwoLevelBucket,
    /// Seastar 2022, without the second level: at the rate of the disk
    TokenBucket,
    /// Seastar 2018: as much in flight as the disk serves within the latency goal
    LittlesLaw,
    /// Seastar 2016: at most --concurrency requests in flight
    Concurrency,
    /// Seastar 2016 with its fair queue: concurrency in the order exponential-decay
    #[value(name = "2016")]
    Seastar2016,
    /// No scheduling: each request goes at once
    None,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum OrderName {
    /// By disk time per share, over all shards
    StartTime,
    /// Seastar 2016: per shard, by weights that are forgotten within 100 ms
    ExponentialDecay,
}

/// How results are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// A table
    Text,
    /// JSON
    Json,
    /// YAML
    Yaml,
}

impl Format {
    /// Results as they are printed.
    pub(crate) fn render(self, report: &Report) -> Result<String, Failure> {
        match self {
            Self::Text => Ok(text(report)),
            Self::Json => json(report),
            Self::Yaml => serde_saphyr::to_string(report)
                .map_err(|error| Failure::Run(format!("cannot format the results: {error}"))),
        }
    }
}

impl LoadOptions {
    /// The jobs and classes of the files given, for a run of this many shards.
    pub(crate) fn job_file(&self, jobs: &Path, shard_count: u32) -> Result<JobFile, Failure> {
        let text = forebay_config::read(jobs)?;
        let name = jobs.display().to_string();
        let jobs = Source::new(&name, &text);
        let Some(path) = &self.sched_groups else {
            return Ok(JobFile::parse(&jobs, None, shard_count)?);
        };
        let text = forebay_config::read(path)?;
        let name = path.display().to_string();
        let groups = Source::new(&name, &text);
        Ok(JobFile::parse(&jobs, Some(&groups), shard_count)?)
    }

    /// Whether there is a place for the page, if one is asked for, that is none of the files that
    /// are `read`.
    pub(crate) fn check_report(&self, read: &[&Path]) -> Result<(), Failure> {
        let Some(page) = &self.report else { return Ok(()) };
        let own = [&self.sched_groups, &self.properties].into_iter().flatten();
        let read: Vec<&Path> = own.map(PathBuf::as_path).chain(read.iter().copied()).collect();
        whole_file::check_other(page, &read)?;
        whole_file::check(page)
    }

    /// Writes the page about `what`, if one is asked for.
    pub(crate) fn write_report(&self, what: &str, results: &Report) -> Result<(), Failure> {
        let Some(path) = &self.report else { return Ok(()) };
        whole_file::put(path, &report::html(what, results, None)?)
    }

    /// The properties file, if one is given.
    pub(crate) fn properties(&self) -> Result<Option<Properties>, Failure> {
        let mut properties = self.properties.as_deref().map(Properties::load).transpose()?;
        if let Some(properties) = &mut properties {
            self.region.apply(properties);
            if let Some(TargetOption(target)) = self.latency_target {
                properties.disks.iter_mut().for_each(|disk| disk.latency_target = target);
            }
        }
        Ok(properties)
    }

    /// How many shards run.
    pub(crate) fn shard_count(&self) -> u32 {
        let processors = || thread::available_parallelism().map_or(1, NonZero::get);
        self.shards.unwrap_or_else(|| processors().min(SHARDS_MAX) as u32)
    }

    /// What decides how much work the disk gets.
    pub(crate) fn control(&self) -> Control {
        match self.policy {
            PolicyName::PaceWindow => self.control.control(),
            _ => Control::Rates,
        }
    }

    /// The policy, for a disk of this base latency if that is known.
    pub(crate) fn policy(&self, base_latency: Option<Duration>) -> Policy {
        let latency_goal = self.latency_goal.unwrap_or(LATENCY_GOAL_DEFAULT);
        match self.policy {
            PolicyName::PaceWindow => {
                let latency_goal = self.latency_goal.unwrap_or_default();
                Policy::PaceWindow { latency_goal, base_latency }
            }
            PolicyName::FlowRatio => Policy::FlowRatio { latency_goal },
            PolicyName::TwoLevelBucket => Policy::TwoLevelBucket { latency_goal },
            PolicyName::TokenBucket => Policy::TokenBucket { latency_goal },
            PolicyName::LittlesLaw => Policy::LittlesLaw { latency_goal },
            PolicyName::Concurrency | PolicyName::Seastar2016 => {
                Policy::Concurrency { requests: self.concurrency }
            }
            PolicyName::None => Policy::Unlimited,
        }
    }

    /// Says so where `disk` needs a longer goal than the one asked for.
    fn note_longer_goal(&self, disk: &Disk) {
        let policy = self.policy(disk.base_latency);
        let Some(asked) = self.latency_goal.filter(|_| self.policy == PolicyName::PaceWindow)
        else {
            return;
        };
        let group = IoGroup::new(GroupConfig::new(disk.model_under(&policy), policy));
        let goal = Duration::from_nanos(group.effective_goal().as_nanos_ceil());
        if disk.rates.is_some() && goal > asked {
            note(format_args!(
                "the goal is {goal:.1?} instead of --latency-goal {:.1?}: within that time this \
                 disk cannot do a single request, or not 128 KiB, and would idle",
                asked
            ));
        }
    }

    /// What requests may take in `disk`: as asked for, or as its properties say, while the policy
    /// can hold it. Says so where the goal is not the one asked for.
    pub(crate) fn latency_target(&self, disk: &Disk) -> Result<Option<LatencyTarget>, Failure> {
        self.check_policy()?;
        self.note_longer_goal(disk);
        let stated = || disk.properties.as_ref()?.latency_target;
        let target = self.latency_target.map_or_else(stated, |TargetOption(target)| target);
        TargetBelowBase::check(target, disk.base_latency)
            .map_err(|error| Failure::Input(error.to_string()))?;
        Ok(target.filter(|_| self.heeds_target()))
    }

    /// Whether the policy can hold a latency target.
    fn heeds_target(&self) -> bool {
        self.policy == PolicyName::PaceWindow && !matches!(self.control(), Control::Fixed(_))
    }

    /// Whether the other options are for the policy: better known before anything is measured.
    pub(crate) fn check_policy(&self) -> Result<(), Failure> {
        if self.policy != PolicyName::PaceWindow
            && let Some(option) = self.control.given()
        {
            return Err(Failure::Input(format!("{option} is for --policy pace+window")));
        }
        match self.latency_target {
            Some(TargetOption(Some(target))) if !self.heeds_target() => Err(Failure::Input(
                format!("--latency-target {target} is for --policy pace+window without --fixed"),
            )),
            _ => Ok(()),
        }
    }

    /// In which order classes are served.
    pub(crate) fn order(&self) -> ServiceOrder {
        match (self.order, self.policy) {
            (Some(OrderName::ExponentialDecay), _) | (None, PolicyName::Seastar2016) => {
                ServiceOrder::ExponentialDecay { tau_nanos: TAU_2016_NANOS }
            }
            _ => ServiceOrder::StartTime,
        }
    }

    /// Whether the load is also run without a scheduler: if asked for, or else where the text is
    /// for people and there is a disk whose requests get in each other's way.
    pub(crate) fn compares(&self, is_disk: bool) -> bool {
        let is_usual = is_disk && self.format == Format::Text;
        let compares = self.compare.map_or(is_usual, |with| with == Baseline::None);
        compares && self.policy != PolicyName::None
    }
}

/// The options of every command that has a scheduler, or says what it makes of a disk.
#[derive(Args)]
pub(crate) struct RegionOptions {
    /// Of several regions in a forebay.yaml, take the one nearest to this latency of reads, such as
    /// p95=1ms [default: nearest to the latency target of reads, or else to the effective goal]
    #[arg(long, value_name = "GOAL")]
    region_goal: Option<Goal>,
    /// Ignore the regions of a forebay.yaml: a mix of reads and writes then costs as much as its
    /// reads and its writes cost separately
    #[arg(long, conflicts_with = "region_goal")]
    no_region: bool,
}

impl RegionOptions {
    /// Says so in the properties.
    pub(crate) fn apply(&self, properties: &mut Properties) {
        for disk in &mut properties.disks {
            if self.no_region {
                disk.measured.regions.clear();
            }
            if let Some(goal) = self.region_goal {
                disk.measured.region_goal = Some(RegionGoal {
                    read_percentile: goal.percentile.number(),
                    latency: Duration::from_secs_f64(goal.latency_us / 1e6),
                });
            }
        }
    }
}

/// What was asked for; none is `off`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TargetOption(pub(crate) Option<LatencyTarget>);

impl FromStr for TargetOption {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        parse_latency_target(text).map(Self)
    }
}
