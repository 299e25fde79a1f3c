//! `forebay tune`: measures disks and writes the files that describe them.

mod output;
mod page;
mod progress;
mod text;
mod tuned;

use std::fs;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::{Args, ValueEnum};
use forebay_config::ByteSize;
use forebay_sim::spec::DiskSpec;
use forebay_tune::diff::diff;
use forebay_tune::verdicts::beforehand;
use forebay_tune::{
    Budget, DirectoryTarget, Error, MeasuredDisk, Run, SimTarget, Target, fit, measure,
};

use crate::console::{json, note, print};
use crate::failure::Failure;
use output::Output;
use progress::TuneProgress;
use tuned::Tuned;

/// The longest file of runs that is read, in bytes. A disk takes some 100 KiB of it.
const RUNS_BYTES_MAX: usize = 16 << 20;

/// Measure disks, and write the files that describe them to the scheduler.
///
/// Writes io-properties.yaml, which Seastar reads too, forebay.yaml with what only forebay knows,
/// a report as tune.html, and tune.json with all that was measured. Files for the measurement are
/// made in free space, have no names, and are gone at the end, however it ends.
#[derive(Args)]
pub(crate) struct Options {
    /// Directories on the disks to measure; of several on one disk it is measured once
    #[arg(value_name = "DIR")]
    dirs: Vec<PathBuf>,
    /// How long to measure
    #[arg(long, value_enum, default_value_t = BudgetName::Standard)]
    budget: BudgetName,
    /// The most to write to each disk, instead of what the budget allows
    #[arg(long, value_name = "SIZE")]
    write_limit: Option<ByteSize>,
    /// Where to write the files; it is made unless it is there
    #[arg(long, value_name = "DIR", default_value = ".")]
    out: PathBuf,
    /// What to print
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Go on with an interrupted measurement
    #[arg(long, value_name = "RUN.json", conflicts_with_all = ["dirs", "simulate", "budget"])]
    resume: Option<PathBuf>,
    /// Write the files from what an earlier run measured; nothing is measured
    #[arg(long, value_name = "RUN.json", conflicts_with_all = ["dirs", "simulate", "resume"])]
    fit_from: Option<PathBuf>,
    /// Compare two runs; nothing is measured
    #[arg(long, num_args = 2, value_names = ["OLD.json", "NEW.json"],
          conflicts_with_all = ["dirs", "simulate", "resume", "fit_from"])]
    diff: Option<Vec<PathBuf>>,
    /// Measure a simulated disk, a preset or a disk file, under virtual time
    #[arg(long, value_name = "NAME|FILE", conflicts_with = "dirs")]
    simulate: Option<String>,
    /// A block device may be named, and the data on it is destroyed
    #[arg(long)]
    destroy_device_data: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum BudgetName {
    /// About 30 seconds, at most 4 GiB written: figures within some 10 %
    Quick,
    /// About 3 minutes, at most 24 GiB written: figures within some 5 %
    Standard,
    /// Until the disk is steady, more than half an hour, at most 512 GiB written
    Thorough,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people
    Text,
    /// For programs
    Json,
}

/// The command.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    if let Some([old, new]) = options.diff.as_deref() {
        return compare(old, new, options.format);
    }
    let output = Output::at(&options.out)?;
    let runs = match &options.fit_from {
        Some(path) => read_runs(path)?,
        None => measure_all(options, &output)?,
    };
    let tuned = runs.into_iter().map(|run| Ok(Tuned { fit: fit(&run)?, run }));
    let tuned = tuned.collect::<Result<Vec<_>, Error>>().map_err(Failure::from)?;
    output.write(&tuned)?;
    match options.format {
        Format::Text => print(&(text::summary(&tuned) + &output.listed())),
        Format::Json => print(&json(&text::results(&tuned))?),
    }
}

/// Measures each disk that the options name.
fn measure_all(options: &Options, output: &Output) -> Result<Vec<Run>, Failure> {
    let interrupt = interrupt()?;
    let mut runs = match &options.resume {
        Some(path) => read_runs(path)?,
        None => Vec::new(),
    };
    if let Some(name) = options.simulate.clone().or_else(|| simulated(&runs)) {
        let spec = DiskSpec::resolve(&name)?;
        let sector = u32::try_from(spec.sector()).unwrap_or(4096);
        let target = SimTarget::new(spec.build(1), spec.name(), spec.capacity(), sector);
        return one(options, output, &interrupt, runs, 0, Box::new(target));
    }
    let dirs = match &options.resume {
        Some(_) => runs.iter().flat_map(|run| &run.target.paths).map(PathBuf::from).collect(),
        None => options.dirs.clone(),
    };
    if dirs.is_empty() {
        return Err(Failure::Input(String::from(
            "no directory is named; name one on each disk to measure",
        )));
    }
    let disks = MeasuredDisk::find(&dirs, options.destroy_device_data)?;
    let locks = disks.iter().map(MeasuredDisk::lock).collect::<Result<Vec<_>, _>>()?;
    for (index, disk) in disks.iter().enumerate() {
        if runs.get(index).is_some_and(|run| run.complete) {
            continue;
        }
        let target = DirectoryTarget::open(disk, Arc::clone(&interrupt))?;
        runs = one(options, output, &interrupt, runs, index, Box::new(target))?;
    }
    drop(locks);
    Ok(runs)
}

/// The simulated disk that an interrupted run measured.
fn simulated(runs: &[Run]) -> Option<String> {
    let target = &runs.first()?.target;
    target.paths.first().filter(|_| target.device.is_empty()).cloned()
}

/// Measures one disk, the one at `index` of `runs`.
fn one(
    options: &Options,
    output: &Output,
    interrupt: &AtomicBool,
    mut runs: Vec<Run>,
    index: usize,
    mut target: Box<dyn Target>,
) -> Result<Vec<Run>, Failure> {
    let (mut run, budget) = match runs.get(index) {
        Some(run) => {
            let written_max = options.write_limit.map_or(run.written_max, |limit| limit.0);
            let run = Run { written_max, ..run.clone() };
            let budget = budget_of(&run)?;
            (run, budget)
        }
        None => {
            let budget = options.budget();
            (Run::new(&budget, target.info().clone()), budget)
        }
    };
    runs.truncate(index);
    note(text::announcement(&run, &budget));
    if let Some(verdict) = beforehand(&run.target) {
        note(format_args!("warning: {}", verdict.text));
    }
    let mut line = TuneProgress::new(&budget);
    let measured = measure(&mut *target, &budget, &mut run, &mut |run, progress| {
        if interrupt.load(Ordering::Relaxed) {
            return Err(Error::Interrupted);
        }
        line.show(progress);
        output.keep(&runs, run)
    });
    drop(line);
    match measured {
        Ok(()) => {
            runs.push(run);
            Ok(runs)
        }
        Err(error @ (Error::Interrupted | Error::Incomplete(_))) => {
            output.keep(&runs, &run).map_err(Failure::from)?;
            output.offer_to_go_on();
            Err(error.into())
        }
        Err(error) => {
            output.forget();
            Err(error.into())
        }
    }
}

/// The budget of an interrupted run.
fn budget_of(run: &Run) -> Result<Budget, Failure> {
    let named = Budget::named(&run.budget).ok_or_else(|| {
        Failure::Input(format!("no budget is called `{}`; measure again", run.budget))
    })?;
    Ok(with_memory(named.with_write_limit(run.written_max)))
}

impl Options {
    fn budget(&self) -> Budget {
        let named = match self.budget {
            BudgetName::Quick => Budget::QUICK,
            BudgetName::Standard => Budget::STANDARD,
            BudgetName::Thorough => Budget::THOROUGH,
        };
        let limit = self.write_limit.map_or(named.written_max, |limit| limit.0);
        with_memory(named.with_write_limit(limit))
    }
}

/// The budget on this machine.
fn with_memory(budget: Budget) -> Budget {
    let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kib = memory.lines().find_map(|line| {
        line.strip_prefix("MemTotal:")?.trim().trim_end_matches(" kB").parse::<u64>().ok()
    });
    budget.for_memory(kib.unwrap_or(0) << 10)
}

fn read_runs(path: &Path) -> Result<Vec<Run>, Failure> {
    let text = forebay_config::read_at_most(path, RUNS_BYTES_MAX)?;
    Ok(Run::parse(&path.display().to_string(), &text)?)
}

/// Prints what changed between two runs.
fn compare(old: &Path, new: &Path, format: Format) -> Result<(), Failure> {
    let (old, new) = (read_runs(old)?, read_runs(new)?);
    if old.len() != new.len() {
        return Err(Failure::Input(format!(
            "the runs have {} and {} disks; compare runs of the same directories",
            old.len(),
            new.len()
        )));
    }
    let mut disks = Vec::new();
    for (old, new) in paired(&old, &new) {
        disks.push((name_of_both(old, new), diff(&fit(old)?, &fit(new)?)));
    }
    match format {
        Format::Text => print(&text::differences(&disks)),
        Format::Json => print(&json(&disks)?),
    }
}

/// The disks of two measurements, side by side: of the same places, or where these are others, in
/// the order in which they were named.
fn paired<'a>(old: &'a [Run], new: &'a [Run]) -> Vec<(&'a Run, &'a Run)> {
    let same = |new: &Run| old.iter().find(|old| old.target.paths == new.target.paths);
    let by_place: Option<Vec<&Run>> = new.iter().map(same).collect();
    by_place.unwrap_or_else(|| old.iter().collect()).into_iter().zip(new).collect()
}

fn name_of_both(old: &Run, new: &Run) -> String {
    let name = |run: &Run| run.target.paths.join(", ");
    if old.target.paths == new.target.paths {
        return name(new);
    }
    format!("{} before, {} now", name(old), name(new))
}

/// Set by the first Ctrl-C; the second one ends the program.
fn interrupt() -> Result<Arc<AtomicBool>, Failure> {
    let raised = Arc::new(AtomicBool::new(false));
    let handler = Arc::clone(&raised);
    ctrlc::set_handler(move || {
        if handler.swap(true, Ordering::Relaxed) {
            process::exit(130);
        }
        note("ending; once more to end at once");
    })
    .map_err(|error| Failure::Run(format!("cannot listen for signals: {error}")))?;
    Ok(raised)
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::Interrupted => Self::Interrupted,
            Error::Refused(_) | Error::Run(_) => Self::Input(error.to_string()),
            _ => Self::Run(error.to_string()),
        }
    }
}
