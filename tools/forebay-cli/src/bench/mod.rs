//! `forebay bench`: runs a load on a real disk.

mod clock;
mod growth;
mod load;
mod load_thread;
mod metrics;
mod mixed_load;
mod over_time;
mod plan;
mod probe;
mod progress;
mod results;
mod run_status;
mod runner;
mod scheduler;
mod storage;
mod submission_path;
mod watch;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use forebay::engine::BackendChoice;
use forebay::properties::DiskProperties;
use forebay_core::{Policy, SHARDS_MAX};
use forebay_load::results::model::{Comparison, PropertiesSource, Report, VERSION};
use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};

use crate::console::{json, note, print};
use crate::disk::Disk;
use crate::failure::Failure;
use crate::gate::{self, GateOptions};
use crate::interrupt::Interrupt;
use crate::load_options::{Format, LoadOptions};
use crate::metrics_address;
use crate::report;
use crate::whole_number;
use forebay_load::results::difference::{Outcome, difference, text};
use growth::GrowthOptions;
use metrics::Metrics;
pub(crate) use mixed_load::{MixedLoad, MixedLoadOptions};
use plan::{Plan, Topology};
use probe::Probe;
use results::Run;
use storage::{DevicePart, RunTarget, Storage};

/// Run a load on a disk, and show what each job got.
///
/// Without --properties the disk is probed for some seconds first. With --format text the load
/// runs twice, without and with the scheduler, and both runs are shown side by side.
#[derive(Args)]
pub(crate) struct Options {
    #[command(flatten)]
    load: LoadOptions,
    /// The job file, which describes the load in the format of Seastar's io_tester
    #[arg(value_name = "JOBS.yaml", required_unless_present_any = ["grow", "diff"],
          conflicts_with = "grow")]
    jobs: Option<PathBuf>,
    #[command(flatten)]
    growth: GrowthOptions,
    /// Compare two results of this command or of `sim run --format json`; with one file, compare it
    /// with this run. Exit code: 0 no regression, 1 a regression, 2 not comparable
    #[arg(long, num_args = 1..=2, value_names = ["OLD.json", "NEW.json"], conflicts_with = "grow",
          group = "gate")]
    diff: Vec<PathBuf>,
    #[command(flatten)]
    gate: GateOptions,
    /// Where to make the files: a directory, /dev/null to measure the scheduler alone, or with
    /// --overwrite-device a block device
    #[arg(long, value_name = "DIR", default_value = ".")]
    dir: PathBuf,
    /// The interface for requests to the kernel
    #[arg(long, value_enum, default_value_t = BackendName::Auto)]
    backend: BackendName,
    /// How the threads of the load share the scheduler
    #[arg(long, value_enum, default_value_t = Topology::PerThread)]
    topology: Topology,
    /// Number of threads that do the I/O with --topology coordinators [default: 1]. The scheduler
    /// uses fewer if a disk's window holds fewer than four reads of 4 KiB per thread
    #[arg(long, value_name = "N", value_parser = whole_number::within::<u32>(1..=SHARDS_MAX as u64))]
    io_queues: Option<u32>,
    /// Serve the scheduler's metrics as OpenMetrics text over HTTP while the load runs, for example
    /// at 127.0.0.1:9180; port 0 takes a free port
    #[arg(long, value_name = "ADDRESS", value_parser = metrics_address::parse)]
    metrics: Option<SocketAddr>,
    /// Allow the data on the block device named with --dir to be destroyed
    #[arg(long)]
    overwrite_device: bool,
    /// Use only the Nth of M equal parts of the block device, such as 1/3, while other processes
    /// use the rest
    #[arg(long, value_name = "N/M", requires = "overwrite_device", value_parser = DevicePart::parse)]
    share_device: Option<DevicePart>,
    /// End when this process ends, which has started this one
    #[arg(long, value_name = "PID", hide = true)]
    end_with: Option<i32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum BackendName {
    /// The first available one of io_uring, linux-aio and threads
    Auto,
    /// io_uring, or an error
    #[value(name = "io_uring")]
    IoUring,
    /// linux-aio, or an error
    LinuxAio,
    /// Threads that make blocking calls
    Threads,
}

/// The command.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    if let Some(parent) = options.end_with {
        end_with(parent)?;
    }
    if options.growth.is_enabled() {
        let load = &options.load;
        load.check_report(&[])?;
        return options.growth.run(&options.dir, load.format, load.report.as_deref());
    }
    let done = match (options.diff.as_slice(), &options.jobs) {
        ([old, new], None) => {
            let (old, new) = (report::read(old)?, report::read(new)?);
            compare(&old, &new, options.load.format, options.gate.least())
        }
        ([_, _], Some(_)) => Err(Failure::Input(String::from(
            "with two files nothing is run; leave out the job file, or one of them",
        ))),
        (_, None) => Err(Failure::Input(String::from(
            "name a job file to run and compare with that file, or a second file",
        ))),
        (old, Some(jobs)) => measure(options, jobs, old.first()),
    };
    if options.diff.is_empty() { done } else { done.map_err(gate::undecided) }
}

/// Has the kernel end this process with the thread that started it, in the process `parent`.
fn end_with(parent: i32) -> Result<(), Failure> {
    set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(|error| Failure::Run(format!("cannot follow process {parent}: {error}")))?;
    // It may have ended before.
    if getppid() == Pid::from_raw(parent) { Ok(()) } else { Err(Failure::Interrupted) }
}

/// Runs the load of the job file `jobs`, and compares it with the file `old` if there is one.
fn measure(options: &Options, jobs_path: &Path, old: Option<&PathBuf>) -> Result<(), Failure> {
    let old = old.map(|path| report::read(path)).transpose()?;
    let load = &options.load;
    let io_queues = options.io_queues()?;
    load.check_report(&[jobs_path])?;
    let jobs = load.job_file(jobs_path, load.shard_count())?;
    let target = RunTarget::of(&options.dir, options.overwrite_device, options.share_device)?;
    load.check_policy()?;
    let given = options.given_properties(&target)?;
    Storage::check(&target, &jobs)?;
    let backend = options.backend(&target);
    let metrics = options.metrics.map(Metrics::serve).transpose()?;
    let interrupt = Interrupt::on_signals()?;
    let disk = match given {
        Some(properties) => Disk::new(&properties, PropertiesSource::File)?,
        None if matches!(target, RunTarget::Null) => Disk::unmeasured(),
        None => {
            let (shard_count, interrupt) = (load.shard_count(), &interrupt);
            Probe { target: &target, shard_count, backend, interrupt }.measure()?
        }
    };
    // refused before any data is written
    let latency_target = load.latency_target(&disk)?;
    let storage = Storage::make(&target, &jobs, backend, &interrupt)?;
    let (report, failed) = run_load(
        &Plan {
            title: "running",
            jobs: &jobs,
            storage: &storage,
            target: target.path(),
            disk: &disk,
            policy: match disk.rates {
                Some(_) => load.policy(disk.base_latency),
                None => Policy::Unlimited,
            },
            latency_target,
            control: load.control(),
            order: load.order(),
            topology: options.topology,
            io_queues,
            metrics: metrics.as_ref(),
            has_series: load.report.is_some(),
            is_scheduled: true,
            warmup: load.warmup,
            duration: load.duration,
            seed: load.seed,
            backend,
            interrupt: &interrupt,
        },
        load.compares(!matches!(target, RunTarget::Null)),
    )?;
    drop(storage);
    let what = format!("{} on {}", jobs_path.display(), options.dir.display());
    // results are shown even if there is no room for the page
    let written = load.write_report(&what, &report);
    let done = shown(options, &report, failed, old.as_ref());
    written.and(done)
}

/// Shows `report`, of which this many requests may have failed, and what it is alongside `old`.
fn shown(
    options: &Options,
    report: &Report,
    failed: Option<(u64, String)>,
    old: Option<&Report>,
) -> Result<(), Failure> {
    let format = options.load.format;
    if old.is_none() || format == Format::Text {
        print(&format.render(report)?)?;
    }
    let failed =
        failed.map(|(count, first)| format!("{count} requests failed; the first: {first}"));
    let Some(old) = old else { return failed.map_or(Ok(()), |failed| Err(Failure::Run(failed))) };
    failed.iter().for_each(note);
    compare(old, report, format, options.gate.least())
}

/// Says which figures may not last.
fn warn_of_bursts(properties: &DiskProperties) {
    let names: Vec<&str> = properties.not_sustained().collect();
    if !names.is_empty() {
        note(format_args!(
            "warning: {} of the properties may be burst rates; they were not sustained",
            names.join(", ")
        ));
    }
}

/// Runs the load, before that without the scheduler if `compares`. With the report comes how many
/// requests failed, and what went wrong first.
fn run_load(plan: &Plan<'_>, compares: bool) -> Result<(Report, Option<(u64, String)>), Failure> {
    if !compares || plan.policy == Policy::Unlimited {
        let Run { result, failed } = runner::run(plan)?;
        return Ok((Report::Run(Box::new(result)), failed));
    }
    let times = format!("{:?} and {:?} of warm-up", plan.duration, plan.warmup);
    note(format_args!("running without the scheduler: {times}"));
    let before = runner::run(&Plan { title: "unscheduled", is_scheduled: false, ..*plan })?;
    plan.storage.restore(plan.jobs, plan.backend, plan.interrupt)?;
    note(format_args!("running with the scheduler: {times}"));
    let after = runner::run(&Plan { title: "scheduled", ..*plan })?;
    let runs = [before.result, after.result];
    let comparison = Comparison { version: VERSION, runs };
    let failed = [before.failed, after.failed].into_iter().flatten();
    let failed = failed.reduce(|(before, first), (after, _)| (before + after, first));
    Ok((Report::Comparison(Box::new(comparison)), failed))
}

impl Options {
    /// The properties of the disk at `target`, if a file is given.
    fn given_properties(&self, target: &RunTarget) -> Result<Option<DiskProperties>, Failure> {
        let Some(mut properties) = self.load.properties()? else { return Ok(None) };
        // Nothing lies on /dev/null, so the one disk described is the one meant.
        if matches!(target, RunTarget::Null) && properties.disks.len() == 1 {
            return Ok(properties.disks.pop());
        }
        let disk = properties.disk_for(target.path());
        let disk = disk.map_err(|error| Failure::Input(error.to_string()))?;
        warn_of_bursts(disk);
        Ok(Some(disk.clone()))
    }

    /// How many I/O threads to have, where there are any.
    fn io_queues(&self) -> Result<usize, Failure> {
        match self.io_queues {
            Some(count) if self.topology == Topology::Coordinators => Ok(count as usize),
            Some(_) => Err(Failure::Input(format!(
                "--io-queues is for --topology coordinators; with {} there is {}",
                self.topology.name(),
                match self.topology {
                    Topology::Shared => "one queue for all",
                    _ => "a queue per shard: say how many with --shards",
                }
            ))),
            None => Ok(1),
        }
    }

    fn backend(&self, target: &RunTarget) -> BackendChoice {
        match self.backend {
            _ if matches!(target, RunTarget::Null) => BackendChoice::Null,
            BackendName::Auto => BackendChoice::Auto,
            BackendName::IoUring => BackendChoice::IoUring,
            BackendName::LinuxAio => BackendChoice::LinuxAio,
            BackendName::Threads => BackendChoice::Threads,
        }
    }
}

/// Shows what changed, and fails where at least the part `least` of something was lost, or where
/// that cannot be told.
fn compare(old: &Report, new: &Report, format: Format, least: f64) -> Result<(), Failure> {
    let difference = difference(old, new).map_err(Failure::Input)?;
    match format {
        Format::Text => print(&text(&difference))?,
        Format::Json | Format::Yaml => print(&json(&difference)?)?,
    }
    match difference.outcome(least) {
        Outcome::Passed => Ok(()),
        Outcome::Lost(lost) => gate::outcome(&lost),
        Outcome::Undecided(why) => Err(Failure::Input(why)),
    }
}
