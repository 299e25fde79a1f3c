//! `forebay tune`: measures disks and writes the files that describe them.

mod compare;
mod growing;
mod history;
mod output;
mod page;
mod progress;
mod text;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use forebay_config::ByteSize;
use forebay_sim::spec::DiskSpec;
use forebay_tune::verdicts::beforehand;
use forebay_tune::{
    Budget, DirectoryTarget, Error, MeasuredDisk, Purpose, Run, SimTarget, Target, TargetInfo, fit,
    measure,
};

use crate::console::{Format, json, note, print};
use crate::failure::Failure;
use crate::gate::{self, GateOptions};
use crate::interrupt::Interrupt;
use crate::load_options;
use compare::read_runs;
use history::Kept;
use output::Output;
use progress::TuneProgress;
use text::Tuned;

/// The least that `--write-limit` may be, in bytes.
const WRITE_LIMIT_MIN: u64 = 32 << 20;
/// What is written to look for credits within two days, unless `--write-limit` says otherwise.
const WATCH_LIMIT: u64 = 64 << 30;
/// Looks for credits are written down so often.
const KEEP_EVERY: Duration = Duration::from_secs(60);

/// Measure disks, and write the files that describe them to the scheduler.
///
/// Writes io-properties.yaml, which Seastar reads too; forebay.yaml with the properties that only
/// forebay uses; a report as tune.html; and tune.json with all measurements. The files of the
/// measurement have no names, so they disappear at the end, even after a kill. On a rotating disk,
/// three quarters of the free space are reserved during the measurement.
#[derive(Args)]
pub(crate) struct Options {
    /// Directories on the disks to measure; a disk with several of them is measured once
    #[arg(value_name = "DIR")]
    dirs: Vec<PathBuf>,
    /// The duration and the writes of the measurement [default: standard, with --watch quick]
    #[arg(long, value_enum)]
    budget: Option<BudgetName>,
    /// Watch a volume for burst credits in the background, for at most this many hours, 1 to 48.
    /// While other programs use the disk, it uses 2 % of the time. It ends when the credits have
    /// run out. Ctrl-C ends it with the figures so far
    #[arg(long, value_name = "HOURS", value_parser = clap::value_parser!(u32).range(1..=48),
          conflicts_with_all = ["fit_from", "gate"])]
    watch: Option<u32>,
    /// The most to write to each disk, instead of the budget's limit, or of 64GB with --watch
    #[arg(long, value_name = "SIZE", value_parser = write_limit)]
    write_limit: Option<ByteSize>,
    /// The directory for the files, which is created if it is missing
    #[arg(long, value_name = "DIR", default_value = ".")]
    out: PathBuf,
    /// The output format
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Continue an interrupted measurement
    #[arg(long, value_name = "RUN.json", conflicts_with_all = ["dirs", "simulate", "budget"])]
    resume: Option<PathBuf>,
    /// Write the files from the measurements of an earlier run; nothing is measured
    #[arg(long, value_name = "RUN.json", conflicts_with_all = ["dirs", "simulate", "resume"])]
    fit_from: Option<PathBuf>,
    /// Compare two runs; with one file, measure now and compare with it. Exit code: 0 no
    /// regression, 1 a regression, 2 not comparable
    #[arg(long, num_args = 1..=2, value_names = ["OLD.json", "NEW.json"],
          conflicts_with_all = ["resume", "fit_from"], group = "gate")]
    diff: Vec<PathBuf>,
    /// Allow a comparison of different disks, for example of two machines
    #[arg(long)]
    other_disk: bool,
    /// Keep the last 200 runs in a directory, compare this run with the earlier ones, and draw the
    /// rates over time there. The exit codes are those of --diff
    #[arg(long, value_name = "DIR", conflicts_with = "diff", group = "gate")]
    history: Option<PathBuf>,
    #[command(flatten)]
    gate: GateOptions,
    /// Measure a simulated disk, a preset or a disk file, under virtual time
    #[arg(long, value_name = "NAME|FILE", conflicts_with = "dirs")]
    simulate: Option<String>,
    /// Seed of the simulated disk
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = load_options::seed,
          conflicts_with = "resume")]
    seed: u64,
    /// DIR is a block device, and its data may be destroyed
    #[arg(long, alias = "destroy-device-data")]
    overwrite_device: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum BudgetName {
    /// About a minute, at most 64 GiB written, figures within about 10 %
    Quick,
    /// About 3 minutes, up to 5 on a slow disk, at most 128 GiB written, figures within about 5 %
    Standard,
    /// Until the disk is steady, more than half an hour, at most 1 TiB written
    Thorough,
}

/// Reads the most to write; a quarter of it is data, and less than 8 MiB of that measures nothing.
fn write_limit(text: &str) -> Result<ByteSize, String> {
    let size: ByteSize = text.parse().map_err(|error| format!("{error}"))?;
    match size.0 {
        WRITE_LIMIT_MIN.. => Ok(size),
        _ => Err(String::from("expected 32MB or more, which is the least that can be measured")),
    }
}

/// The command.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let is_gate = !options.diff.is_empty() || options.history.is_some();
    let done = match options.compared()?.as_slice() {
        [old, new] => compare(options, &read_runs(old)?, &read_runs(new)?),
        old => tune(options, old.first()),
    };
    if is_gate { done.map_err(gate::undecided) } else { done }
}

/// Measures, and compares what was found with the file `old` if there is one.
fn tune(options: &Options, old: Option<&PathBuf>) -> Result<(), Failure> {
    options.check_target()?;
    let output = Output::at(&options.out)?;
    let old = old.map(|path| read_runs(path)).transpose()?;
    if let Some(budget) = old.iter().flatten().map(|run| &run.budget).next()
        && options.fit_from.is_none()
        && *budget != options.budget().name
    {
        return Err(Failure::Input(format!(
            "not comparable: the earlier run has the budget {budget}; add --budget {budget}"
        )));
    }
    let history = options.history.as_deref().map(Kept::at).transpose()?;
    let runs = match &options.fit_from {
        Some(path) => begun(read_runs(path)?),
        None => measure_all(options, &output, old.as_deref().unwrap_or_default())?,
    };
    let tuned = runs.into_iter().map(|run| Ok(Tuned { fit: fit(&run)?, run }));
    let tuned = tuned.collect::<Result<Vec<_>, Error>>().map_err(Failure::from)?;
    output.write(&tuned).inspect_err(|_| {
        if options.fit_from.is_none() {
            output.offer_to_go_on(output::PARTIAL);
        }
    })?;
    if options.fit_from.is_none() && tuned.iter().any(|one| !one.run.complete) {
        output.offer_to_go_on(output::RUN);
    }
    let runs: Vec<Run> = tuned.iter().map(|one| one.run.clone()).collect();
    let gated = old.is_some() || history.is_some();
    match options.format {
        Format::Text => {
            print(&text::summary(&tuned))?;
            print(&(output.queues()? + &output.listed()))?;
        }
        Format::Json if gated => {}
        Format::Json => print(&json(&text::results(&tuned))?)?,
    }
    if let Some(old) = old {
        return compare(options, &old, &runs);
    }
    let Some(kept) = history else { return Ok(()) };
    let disks = kept.add(&runs, options.gate.least())?;
    match options.format {
        Format::Text => print(&format!("\n{}{}", kept.listed(), history::text(&disks)))?,
        Format::Json => print(&json(&disks)?)?,
    }
    gate::outcome(&history::losses(&disks))
}

/// Shows what changed from `old` to `new`.
fn compare(options: &Options, old: &[Run], new: &[Run]) -> Result<(), Failure> {
    let disks = compare::differences(old, new, options.other_disk)?;
    match options.format {
        Format::Text => print(&compare::text(&disks))?,
        Format::Json => print(&json(&disks)?)?,
    }
    gate::outcome(&compare::losses(&disks, options.gate.least()))?;
    match compare::not_compared(&disks).join(", ").as_str() {
        "" => Ok(()),
        names => Err(Failure::Input(format!(
            "not comparable: the runs share no comparable phases for {names}; measure both again"
        ))),
    }
}

/// Measures each disk that the options name, to be compared with those in `old` if there are any.
fn measure_all(options: &Options, output: &Output, old: &[Run]) -> Result<Vec<Run>, Failure> {
    // which may be a pipe that says nothing
    let mut runs = match &options.resume {
        Some(path) => read_runs(path)?,
        None => Vec::new(),
    };
    let interrupt = Interrupt::on_signals()?.into_flag();
    if let Some((name, seed)) = options.simulated(&runs) {
        let spec = DiskSpec::resolve(&name)?;
        let sector = u32::try_from(spec.sector()).unwrap_or(4096);
        let target = SimTarget::new(spec.build(seed), spec.name(), spec.capacity(), sector);
        early(options, old, &target, 0)?;
        if runs.is_empty() {
            runs.push(options.pending(target.info().clone()));
        }
        one(options, output, &interrupt, &mut runs, 0, Box::new(target))?;
        return Ok(runs);
    }
    let dirs = match &options.resume {
        Some(_) => runs.iter().flat_map(|run| &run.target.paths).map(PathBuf::from).collect(),
        None => options.dirs.clone(),
    };
    let disks = MeasuredDisk::find(&dirs, options.overwrite_device)?;
    if !old.is_empty() {
        compare::check_disks(old.len(), disks.len())?;
    }
    if options.resume.is_none() {
        runs = disks.iter().map(|disk| options.pending(TargetInfo::of(disk.paths()))).collect();
    } else if runs.len() != disks.len() {
        let (was, is) = (runs.len(), disks.len());
        return Err(Failure::Input(format!(
            "the run is of {was} disks, and its directories are on {is} now; mount them as they were"
        )));
    }
    let locks = disks.iter().map(MeasuredDisk::lock).collect::<Result<Vec<_>, _>>()?;
    for (index, disk) in disks.iter().enumerate() {
        if options.watch.is_none() && runs.get(index).is_some_and(|run| run.complete) {
            continue;
        }
        let target = DirectoryTarget::open(disk, Arc::clone(&interrupt))?;
        early(options, old, &target, index)?;
        one(options, output, &interrupt, &mut runs, index, Box::new(target))?;
        if interrupt.load(Ordering::Relaxed) {
            break;
        }
    }
    drop(locks);
    Ok(begun(runs))
}

/// Those in which anything was measured; the others are named.
fn begun(runs: Vec<Run>) -> Vec<Run> {
    let (begun, pending): (Vec<Run>, _) = runs.into_iter().partition(|run| !run.phases.is_empty());
    for run in pending {
        note(format_args!("not measured: {}", run.target.disk_name()));
    }
    begun
}

/// Whether what is found of `target` will be comparable with its like in `old`.
fn early(options: &Options, old: &[Run], target: &dyn Target, index: usize) -> Result<(), Failure> {
    let run = Run::new(&options.budget(), target.info().clone());
    compare::check_early(old, &run, index, options.other_disk)
}

/// Measures the disk at `index` of `runs`, or continues its measurement.
fn one(
    options: &Options,
    output: &Output,
    interrupt: &AtomicBool,
    runs: &mut [Run],
    index: usize,
    mut target: Box<dyn Target>,
) -> Result<(), Failure> {
    let Some(known) = runs.get(index) else { return Ok(()) };
    let (mut run, budget) = options.gone_on_with(known, target.info())?;
    note(text::announcement(&run, &budget));
    note(output.announcement());
    if let Some(verdict) = beforehand(&run.target) {
        note(format_args!("warning: {}", verdict.text));
    }
    if run.phases.is_empty()
        && let Some(dir) = run.target.paths.first().filter(|_| run.target.files)
    {
        // first, while nothing else is written that would leave too little for it
        let is_cancelled = || interrupt.load(Ordering::Relaxed);
        run.growth = growing::growth(Path::new(dir), &run, &budget, &is_cancelled)?;
    }
    let mut line = TuneProgress::new(&budget);
    let mut kept = Instant::now();
    let measured = measure(&mut *target, &budget, &mut run, &mut |run, progress| {
        if interrupt.load(Ordering::Relaxed) {
            return Err(Error::Interrupted);
        }
        line.show(progress);
        let is_early = progress.purpose == Purpose::Credits && kept.elapsed() < KEEP_EVERY;
        if is_early || run.phases.is_empty() {
            return Ok(());
        }
        kept = Instant::now();
        output.keep(&with(runs, index, run))
    });
    drop(line);
    let all = with(runs, index, &run);
    match measured {
        // what is known of credits goes into the files too
        Err(Error::Interrupted) if !run.probes.is_empty() && fit(&run).is_ok() => {}
        Err(error) if all.iter().all(|run| run.phases.is_empty()) => return Err(error.into()),
        Err(error) => {
            // where it cannot be written, what was written before stays
            let kept = output.keep(&all);
            output.offer_to_go_on(output::PARTIAL);
            return kept.and(Err(error)).map_err(Failure::from);
        }
        Ok(()) if index + 1 < all.len() => output.keep(&all)?,
        Ok(()) => {}
    }
    runs.clone_from_slice(&all);
    Ok(())
}

/// All runs, with `run` in its place.
fn with(runs: &[Run], index: usize, run: &Run) -> Vec<Run> {
    let all = runs.iter().enumerate();
    all.map(|(at, other)| if at == index { run } else { other }).cloned().collect()
}

/// The budget of an interrupted run.
fn budget_of(run: &Run) -> Result<Budget, Failure> {
    let named = Budget::named(&run.budget)
        .ok_or_else(|| Failure::Input(format!("unknown budget `{}`; measure again", run.budget)))?;
    Ok(with_memory(named.with_write_limit(run.written_max)))
}

impl Options {
    /// The simulated disk to measure and its seed, which are those of an interrupted run.
    fn simulated(&self, runs: &[Run]) -> Option<(String, u64)> {
        if let Some(name) = &self.simulate {
            return Some((name.clone(), self.seed));
        }
        let run = runs.first().filter(|run| run.target.is_simulated())?;
        Some((run.target.paths.first()?.clone(), run.seed.unwrap_or(self.seed)))
    }

    /// A run of a disk that is to be measured.
    fn pending(&self, target: TargetInfo) -> Run {
        let watch_hours = self.watch.unwrap_or(0);
        let seed = self.simulate.is_some().then_some(self.seed);
        Run { watch_hours, seed, ..Run::new(&self.budget(), target) }
    }

    /// The run to begin or to continue, and its budget.
    fn gone_on_with(&self, known: &Run, target: &TargetInfo) -> Result<(Run, Budget), Failure> {
        let written_max = self.write_limit.map_or(known.written_max, |limit| limit.0);
        let watch_hours = self.watch.unwrap_or(known.watch_hours);
        let run = Run { written_max, watch_hours, ..known.clone() };
        let budget = budget_of(&run)?;
        if run.phases.is_empty() {
            let seed = run.seed;
            return Ok((Run { watch_hours, seed, ..Run::new(&budget, target.clone()) }, budget));
        }
        if !run.target.is_same_disk(target) {
            let [was, is] = [&run.target, target].map(TargetInfo::disk_name);
            return Err(Failure::Input(format!(
                "{was} was measured, and {is} is at {} now; mount the same disk there, or measure \
                 anew without --resume",
                run.target.paths.join(", ")
            )));
        }
        Ok((run, budget))
    }

    /// Whether there is something to measure: better known before directories are made for it.
    fn check_target(&self) -> Result<(), Failure> {
        let earlier = self.resume.is_some() || self.fit_from.is_some();
        if self.dirs.is_empty() && self.simulate.is_none() && !earlier {
            return Err(Failure::Input(String::from(
                "the directory is missing; name one on each disk to measure, or give --diff two \
                 files",
            )));
        }
        Ok(())
    }

    /// The files to compare; two are compared as they are.
    fn compared(&self) -> Result<Vec<PathBuf>, Failure> {
        let measures = !self.dirs.is_empty() || self.simulate.is_some();
        if self.diff.len() == 2 && measures {
            return Err(Failure::Input(String::from(
                "with two files nothing is measured; leave out the directory, or one file",
            )));
        }
        if let [old, dir] = self.diff.as_slice()
            && dir.is_dir()
        {
            let (old, dir) = (old.display(), dir.display());
            return Err(Failure::Input(format!(
                "`{dir}` is a directory; to measure it, write `forebay tune {dir} --diff {old}`"
            )));
        }
        Ok(self.diff.clone())
    }

    fn budget(&self) -> Budget {
        let default = if self.watch.is_some() { BudgetName::Quick } else { BudgetName::Standard };
        let named = match self.budget.unwrap_or(default) {
            BudgetName::Quick => Budget::QUICK,
            BudgetName::Standard => Budget::STANDARD,
            BudgetName::Thorough => Budget::THOROUGH,
        };
        let most = if self.watch.is_some() { WATCH_LIMIT } else { u64::MAX };
        let most = most.min(named.written_max);
        let limit = self.write_limit.map_or(most, |limit| limit.0);
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

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::Interrupted => Self::Interrupted,
            Error::Refused(_) | Error::Run(_) => Self::Input(error.to_string()),
            _ => Self::Run(error.to_string()),
        }
    }
}
