//! What experiments are made of: a job file, a disk file, and a run of one on the other.

use core::time::Duration;

use forebay_config::Source;
use forebay_core::{DiskModel, DiskRates, LATENCY_GOAL_DEFAULT, Policy};
use forebay_load::job_file::JobFile;
use forebay_load::results::model::ClassResult;
use forebay_sim::disk::SimDisk;
use forebay_sim::simulation::{Outcome, SchedulerConfig, Simulation, SimulationConfig};
use forebay_sim::spec::DiskSpec;
use serde::de::DeserializeOwned;

use crate::experiment::Seed;

/// What was published, as a data file alongside an experiment holds it.
pub(crate) fn published<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    forebay_config::parse("published.yaml", text).map_err(|error| error.to_string())
}

/// The job file `text` for this many shards.
pub(crate) fn jobs(text: &str, shards: u32) -> Result<JobFile, String> {
    grouped_jobs(text, None, shards)
}

/// The job file `text` with the classes of a sched-groups file.
pub(crate) fn grouped_jobs(
    text: &str,
    classes: Option<&str>,
    shards: u32,
) -> Result<JobFile, String> {
    let classes = classes.map(|text| Source::new("classes", text));
    let parsed = JobFile::parse(&Source::new("jobs", text), classes.as_ref(), shards);
    parsed.map_err(|error| error.to_string())
}

impl Seed {
    /// This many seeds, from this one on.
    pub(crate) fn and_following(self, count: u64) -> impl Iterator<Item = Self> + Clone {
        (self.0..).take(count as usize).map(Self)
    }

    /// The disk that the disk file `text` describes.
    pub(crate) fn disk(self, text: &str) -> Result<Box<dyn SimDisk>, String> {
        let spec =
            DiskSpec::parse(&Source::new("disk", text)).map_err(|error| error.to_string())?;
        Ok(spec.build(self.0))
    }

    /// The disk that the preset `name` describes.
    pub(crate) fn preset(self, name: &str) -> Result<Box<dyn SimDisk>, String> {
        let spec = DiskSpec::resolve(name).map_err(|error| error.to_string())?;
        Ok(spec.build(self.0))
    }

    /// A run of these jobs on this disk: a short warm-up, then this many milliseconds.
    pub(crate) fn config(
        self,
        jobs: JobFile,
        disk: Box<dyn SimDisk>,
        measured_millis: u64,
    ) -> SimulationConfig {
        let mut config = SimulationConfig::new(jobs, disk);
        // the articles measure pace and window by the figures
        config.scheduler = SchedulerConfig::by_figures();
        config.seed = self.0;
        config.warmup = Duration::from_millis(100);
        config.duration = Duration::from_millis(measured_millis);
        config
    }
}

/// Runs a simulation to its end.
pub(crate) fn run(config: SimulationConfig) -> Result<Outcome, String> {
    let outcome = Simulation::new(config).and_then(Simulation::run);
    outcome.map_err(|error| error.to_string())
}

/// What `of` gives for each of these, on two threads.
pub(crate) fn side_by_side<T: Sync, R: Send>(
    all: &[T],
    of: impl Fn(&T) -> Result<R, String> + Sync,
) -> Result<Vec<R>, String> {
    let half = all.len().div_ceil(2);
    let (first, second) = all.split_at(half);
    let each = |part: &[T]| part.iter().map(&of).collect::<Result<Vec<R>, String>>();
    let (first, second) = std::thread::scope(|scope| {
        let second = scope.spawn(|| each(second));
        (each(first), second.join())
    });
    let mut results = first?;
    results.extend(second.map_err(|_| String::from("a simulation panicked"))??);
    Ok(results)
}

/// What the job called `name` got over all shards.
pub(crate) fn job<'a>(outcome: &'a Outcome, name: &str) -> Result<&'a ClassResult, String> {
    let found = outcome.result.classes.iter().find(|class| class.name == name);
    found.ok_or_else(|| format!("there is no job called {name}"))
}

/// What these rates say that requests cost.
pub(crate) fn model(rates: &DiskRates) -> Result<DiskModel, String> {
    DiskModel::from_rates(rates).map_err(|error| error.to_string())
}

/// The rates, off by this many percent in all four figures.
pub(crate) fn off_by(rates: &DiskRates, percent: i64) -> DiskRates {
    let factor = 100_u64.saturating_add_signed(percent);
    let off = |rate: u64| rate * factor / 100;
    DiskRates {
        read_iops: off(rates.read_iops),
        write_iops: off(rates.write_iops),
        read_bandwidth: off(rates.read_bandwidth),
        write_bandwidth: off(rates.write_bandwidth),
    }
}

/// Pace and window at the default goal on a disk of this base latency.
pub(crate) fn pace_window(disk: &dyn SimDisk) -> Policy {
    let base_latency = Some(disk.base_latency());
    Policy::PaceWindow { latency_goal: LATENCY_GOAL_DEFAULT, base_latency }
}

/// A part of the whole in percent, with one digit behind the point.
pub(crate) fn percent(part: f64) -> String {
    format!("{:.1} %", part * 100.0)
}

/// Microseconds as milliseconds.
pub(crate) fn millis(micros: f64) -> String {
    format!("{:.2} ms", micros / 1000.0)
}
