//! `forebay sim run`: one load on a simulated disk.

use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Args;
use forebay_core::{Ceiling, LatencyTarget, Policy};
use forebay_load::job_file::{Job, JobFile};
use forebay_load::results::model::{Comparison, PropertiesSource, Report, VERSION};
use forebay_sim::simulation::{
    Outcome, Polling, SchedulerConfig, Simulation, SimulationConfig, SimulationError, Trace,
};
use forebay_sim::spec::DiskSpec;

use crate::console::{note, print};
use crate::disk::Disk;
use crate::failure::Failure;
use crate::load_options::LoadOptions;
use crate::span;
use crate::whole_file;

use super::page;

/// Shards, unless given: the same on every machine, so that results are too.
const SHARDS_DEFAULT: u32 = 2;

/// Run a load on a simulated disk, and show what each job got.
///
/// No real disk is used: time is virtual, and the same seed gives the same results on every
/// machine. Without --properties the scheduler knows the disk's true rates.
#[derive(Args)]
#[command(override_usage = "forebay sim run [OPTIONS] --disk <NAME|FILE> <JOBS.yaml>")]
pub(crate) struct Options {
    #[command(flatten)]
    load: LoadOptions,
    /// The job file, which describes the load in the format of Seastar's io_tester
    #[arg(value_name = "JOBS.yaml")]
    jobs: PathBuf,
    /// The disk: a preset, a disk file, or a measured latency surface (.csv, .json)
    #[arg(long, value_name = "NAME|FILE")]
    disk: String,
    /// Let shards poll at this interval only, instead of on every event
    #[arg(long, value_name = "TIME", value_parser = span::parse_positive)]
    tick: Option<Duration>,
    /// Also write a page with charts of the scheduled run over time: latency target, measured
    /// percentile, speed and throughput
    #[arg(long, value_name = "FILE.html")]
    page: Option<PathBuf>,
}

/// The command.
pub(super) fn run(options: &Options) -> Result<(), Failure> {
    let load = &options.load;
    if let Some(page) = &options.page {
        whole_file::check_other(page, &[&options.jobs])?;
        whole_file::check(page)?;
    }
    load.check_report(&[&options.jobs])?;
    let spec = DiskSpec::resolve(&options.disk)?;
    let name = options.jobs.display();
    let jobs = load.job_file(&options.jobs, load.shards.unwrap_or(SHARDS_DEFAULT))?;
    check_sector(&jobs, &spec).map_err(|message| Failure::Input(format!("{name}: {message}")))?;
    let known = options.known(&spec)?;
    let target = load.latency_target(&known)?;
    let start = Instant::now();
    let mut requests = 0;
    let mut trace = None;
    let mut one = |policy| {
        let outcome = options.simulate(&jobs, &spec, &known, (policy, target));
        let outcome = outcome.map_err(|error| {
            Failure::Input(format!("{name}: on the disk {}: {error}", spec.name()))
        })?;
        requests += outcome.requests;
        trace = outcome.trace;
        Ok::<_, Failure>(outcome.result)
    };
    let policy = load.policy(known.base_latency);
    let report = if load.compares(true) {
        let runs = [one(Policy::Unlimited)?, one(policy)?];
        Report::Comparison(Box::new(Comparison { version: VERSION, runs }))
    } else {
        Report::Run(Box::new(one(policy)?))
    };
    let seconds = start.elapsed().as_secs_f64();
    note(format_args!(
        "{requests} requests simulated in {seconds:.1} s, {:.2} million per second",
        requests as f64 / seconds / 1e6
    ));
    print(&load.format.render(&report)?)?;
    if let (Some(path), Some(trace)) = (&options.page, &trace) {
        options.write_page(path, &spec, &report, trace)?;
    }
    load.write_report(&format!("{name} on {}", spec.name()), &report)
}

/// Whether the disk would take the requests of the jobs; why not, if not.
fn check_sector(jobs: &JobFile, spec: &DiskSpec) -> Result<(), String> {
    let sector = spec.sector();
    let odd = |job: &&Job| !u64::from(job.reqsize).is_multiple_of(sector);
    jobs.jobs.iter().find(odd).map_or(Ok(()), |job| {
        Err(format!(
            "job `{}`: `reqsize` is {}, but the disk {} has sectors of {sector} bytes; write a \
             multiple of that",
            job.name,
            job.reqsize,
            spec.name()
        ))
    })
}

impl Options {
    /// What the scheduler knows of the disk.
    fn known(&self, spec: &DiskSpec) -> Result<Disk, Failure> {
        if let Some(properties) = self.load.properties()? {
            // a simulated disk is mounted nowhere, so the file must describe one disk
            let [disk] = properties.disks.as_slice() else {
                let count = properties.disks.len();
                return Err(Failure::Input(format!(
                    "the io-properties describe {count} disks; keep the one to simulate"
                )));
            };
            return Disk::new(disk, PropertiesSource::File);
        }
        Disk::simulated(&*spec.build(self.load.seed))
    }

    fn write_page(
        &self,
        path: &Path,
        spec: &DiskSpec,
        report: &Report,
        trace: &Trace,
    ) -> Result<(), Failure> {
        let run = match report {
            Report::Run(run) => run,
            Report::Comparison(comparison) => &comparison.runs[1],
        };
        let name = format!("{} on {}", self.jobs.display(), spec.name());
        whole_file::put(path, &page::html(&name, run, trace)?)
    }

    fn simulate(
        &self,
        jobs: &JobFile,
        spec: &DiskSpec,
        known: &Disk,
        (policy, latency_target): (Policy, Option<LatencyTarget>),
    ) -> Result<Outcome, SimulationError> {
        let mut config = SimulationConfig::new(jobs.clone(), spec.build(self.load.seed));
        config.scheduler = SchedulerConfig {
            model: Some(known.model_under(&policy)),
            policy: Some(policy),
            order: self.load.order(),
            duplex: known.duplex,
            latency_target,
            control: self.load.control(),
            ceiling: known
                .properties
                .as_ref()
                .map_or_else(Ceiling::default, |disk| disk.measured.ceiling),
            ..SchedulerConfig::default()
        };
        config.properties = Some(known.in_results(&policy));
        config.warmup = self.load.warmup;
        config.duration = self.load.duration;
        config.seed = self.load.seed;
        config.capacity = Some(spec.capacity());
        config.file_system = spec.file_system();
        config.trace_buckets = self.page.as_ref().map(|_| page::SLICES);
        config.series = self.load.report.is_some();
        if let Some(tick) = self.tick {
            let nanos = u64::try_from(tick.as_nanos()).ok().and_then(NonZero::new);
            config.polling = nanos.map_or(Polling::Events, |nanos| Polling::Tick(nanos.get()));
        }
        Simulation::new(config)?.run()
    }
}
