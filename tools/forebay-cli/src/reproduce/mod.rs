//! `forebay reproduce`: the published experiments, repeated.

mod array;
mod datastore;
mod figure;
mod page;
mod results;
mod summary;

use std::collections::BTreeMap;
use std::io;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Instant;

use forebay_experiments::{self as experiments, Experiment, Scale, Seed, Setting};
use forebay_report::svg;

use crate::console::{Format, json, note, print};
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::whole_file;
use array::ArrayOptions;
use results::Results;
use summary::RepeatedExperiment;

/// Repeat the published experiments on simulated disks, and compare their figures.
#[derive(clap::Args, Debug)]
pub(crate) struct Options {
    /// Experiments to run, such as 2016-shares or its number S0-12 [default: all]
    names: Vec<String>,
    /// Where to write the charts and index.html
    #[arg(long, value_name = "DIR", default_value = "forebay-reproduce")]
    out: PathBuf,
    /// Write everything on one page too, with the datastore examples over time and with the values
    /// of all charts as JSON
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,
    /// Run each experiment for as long as the published one, instead of shortened
    #[arg(long)]
    full: bool,
    /// Seed of loads and disks
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    array: ArrayOptions,
    /// Number of experiments that run at the same time [default: one per processor]. The results do
    /// not depend on it
    #[arg(long, value_name = "N")]
    threads: Option<NonZero<usize>>,
    /// The output format: JSON has the published figures next to ours
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// The same as --format json
    #[arg(long, conflicts_with = "format")]
    json: bool,
    /// List the experiments and stop
    #[arg(long)]
    list: bool,
}

/// The page in the directory.
const INDEX: &str = "index.html";

/// Runs the experiments, prints their tables, and writes charts and page.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let chosen = chosen(&options.names)?;
    if options.list {
        return print(&list(&chosen));
    }
    let array = options.array.setting(&chosen)?;
    check(options)?;
    let scale = if options.full { Scale::Full } else { Scale::Short };
    let setting = Setting { scale, seed: Seed(options.seed), array };
    if scale == Scale::Short {
        note("durations are shortened; --full runs them as published");
    }
    let repeated = repeat_all(&chosen, setting, options.threads)?;
    let results = Results::of(&repeated, setting);
    // results are shown even if there is no room for the pages
    let written = write(options, &repeated, &results);
    if options.json || options.format == Format::Json {
        print(&json(&results)?)?;
        return written.map(drop);
    }
    print(&summary::text(&repeated))?;
    for RepeatedExperiment { experiment: Experiment { name, alias, title, .. }, report, .. } in
        &repeated
    {
        print(&format!("{name} ({alias}): {title}\n{report}\n"))?;
    }
    for page in written? {
        print(&format!("{}\n", page.display()))?;
    }
    Ok(())
}

/// Whether the pages would have a place: better known before minutes of work.
fn check(Options { out, report, .. }: &Options) -> Result<(), Failure> {
    let is_there = out.exists();
    if is_there {
        whole_file::check(&out.join(INDEX))?;
    } else {
        let above = out.ancestors().find(|above| above.exists()).unwrap_or_else(|| Path::new("."));
        tempfile::tempdir_in(above).map_err(|error| cannot_make(out, error))?;
    }
    match report {
        Some(report) if is_there || report.parent() != Some(out.as_path()) => {
            whole_file::check(report)
        }
        _ => Ok(()),
    }
}

fn cannot_make(dir: &Path, error: io::Error) -> Failure {
    let (dir, error) = (dir.display(), whole_file::nameless(error));
    Failure::Input(format!("cannot make `{dir}`: {error}; name another directory with --out"))
}

/// Writes all charts and pages, once all of them are there; says where the pages are. Until then an
/// interruption leaves nothing, and from then on it waits.
fn write(
    options: &Options,
    repeated: &[RepeatedExperiment],
    results: &Results<'_>,
) -> Result<Vec<PathBuf>, Failure> {
    let command = command(options);
    let mut pages = Vec::new();
    if let Some(path) = &options.report {
        pages.push((path.clone(), page::with_datastores(repeated, results, &command)?));
    }
    pages.push((options.out.join(INDEX), page::html(repeated, &command)));
    let interrupt = Interrupt::on_signals()?;
    std::fs::create_dir_all(&options.out).map_err(|error| cannot_make(&options.out, error))?;
    for RepeatedExperiment { experiment, charts, .. } in repeated {
        for (index, svg) in charts.iter().enumerate() {
            let name = format!("{}-{}.svg", experiment.name, index + 1);
            whole_file::put(&options.out.join(name), svg)?;
        }
    }
    for (path, text) in &pages {
        whole_file::put(path, text)?;
    }
    interrupt.check()?;
    Ok(pages.into_iter().map(|(path, _)| path).collect())
}

/// How to make the same pages again.
fn command(options: &Options) -> String {
    let full = if options.full { " --full" } else { "" };
    let seed = if options.seed == 1 { String::new() } else { format!(" --seed {}", options.seed) };
    let names: String = options.names.iter().map(|name| format!(" {name}")).collect();
    let array = options.array.arguments();
    format!("forebay reproduce{names}{full}{seed}{array}")
}

fn list(experiments: &[Experiment]) -> String {
    let line = |Experiment { name, alias, title, .. }: &Experiment| {
        format!("{name:<22} {alias:<9} {title}\n")
    };
    experiments.iter().map(line).collect()
}

fn chosen(names: &[String]) -> Result<Vec<Experiment>, Failure> {
    if names.is_empty() {
        return Ok(experiments::all());
    }
    let all = experiments::all();
    let known: Vec<&str> =
        all.iter().flat_map(|experiment| [experiment.name, experiment.alias]).collect();
    let find = |name: &String| {
        experiments::find(name).ok_or_else(|| {
            let advice = match forebay_config::nearest(name, known.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => String::from("`forebay reproduce --list` shows them all"),
            };
            Failure::Input(format!("no experiment is called `{name}`; {advice}"))
        })
    };
    names.iter().map(find).collect()
}

/// Repeats them side by side, the longest first; they come out in their order, whichever is done
/// first.
fn repeat_all(
    chosen: &[Experiment],
    setting: Setting,
    threads: Option<NonZero<usize>>,
) -> Result<Vec<RepeatedExperiment>, Failure> {
    let threads = threads.map_or_else(thread::available_parallelism, Ok);
    let threads = threads.map_or(1, NonZero::get).min(chosen.len());
    let mut order: Vec<(usize, Experiment)> = chosen.iter().copied().enumerate().collect();
    order.sort_by_key(|(_, experiment)| experiment.place_by_length());
    let next = AtomicUsize::new(0);
    let (sender, results) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..threads {
            let (sender, next, order) = (sender.clone(), &next, &order);
            scope.spawn(move || {
                loop {
                    let next = next.fetch_add(1, Ordering::Relaxed);
                    let Some(&(at, experiment)) = order.get(next) else { break };
                    // the receiver is there until all threads have ended
                    let _ = sender.send((at, repeat(experiment, setting)));
                }
            });
        }
    });
    drop(sender);
    let by_place: BTreeMap<_, _> = results.iter().collect();
    by_place.into_values().collect()
}

fn repeat(experiment: Experiment, setting: Setting) -> Result<RepeatedExperiment, Failure> {
    let start = Instant::now();
    let report = experiment
        .repeat(setting)
        .map_err(|error| Failure::Run(format!("{}: {error}", experiment.name)))?;
    note(format_args!("{} took {:.1} s", experiment.name, start.elapsed().as_secs_f64()));
    let charts = report.charts.iter().map(svg).collect::<Result<Vec<_>, _>>()?;
    Ok(RepeatedExperiment { experiment, report, charts })
}
