//! `forebay reproduce`: the published experiments, repeated.

mod draw;
mod page;

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Instant;

use forebay_sim::experiments::{self, Experiment, Scale};

use crate::console::{note, print};
use crate::failure::Failure;
use page::Done;

/// Repeat the published experiments on simulated disks, beside their figures.
#[derive(clap::Args, Debug)]
pub(crate) struct Options {
    /// Which ones, such as S0-12 or S1-9; all of them unless given
    names: Vec<String>,
    /// Where to write the charts and index.html
    #[arg(long, value_name = "DIR", default_value = "forebay-reproduce")]
    out: PathBuf,
    /// Run each as long as it was published, instead of shortened
    #[arg(long)]
    full: bool,
    /// List the experiments and stop
    #[arg(long)]
    list: bool,
}

/// Runs the experiments, prints their tables, and writes charts and page.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let chosen = chosen(&options.names)?;
    if options.list {
        return print(&list(&chosen)?);
    }
    std::fs::create_dir_all(&options.out).map_err(|error| {
        let dir = options.out.display();
        Failure::Input(format!("cannot make `{dir}`: {error}; name another directory with --out"))
    })?;
    let scale = if options.full { Scale::Full } else { Scale::Short };
    if scale == Scale::Short {
        note("durations are shortened; --full runs them as published");
    }
    let mut done = Vec::new();
    for experiment in chosen {
        done.push(repeat(experiment, scale, options)?);
    }
    let command = if options.full { "forebay reproduce --full" } else { "forebay reproduce" };
    let html = page::html(&done, command).map_err(|error| Failure::Run(error.to_string()))?;
    let index = options.out.join("index.html");
    write(&index, &html)?;
    print(&format!("{}\n", index.display()))
}

fn list(experiments: &[Experiment]) -> Result<String, Failure> {
    let mut text = String::new();
    for experiment in experiments {
        writeln!(text, "{:<8} {}", experiment.name, experiment.title)
            .map_err(|error| Failure::Run(error.to_string()))?;
    }
    Ok(text)
}

fn chosen(names: &[String]) -> Result<Vec<Experiment>, Failure> {
    if names.is_empty() {
        return Ok(experiments::all());
    }
    let known: Vec<&str> = experiments::all().iter().map(|experiment| experiment.name).collect();
    let find = |name: &String| {
        experiments::find(name).ok_or_else(|| {
            let advice = forebay_config::known(name, known.iter().copied());
            Failure::Input(format!("no experiment is called `{name}`; {advice}"))
        })
    };
    names.iter().map(find).collect()
}

fn repeat(experiment: Experiment, scale: Scale, options: &Options) -> Result<Done, Failure> {
    let start = Instant::now();
    let report = (experiment.run)(scale)
        .map_err(|error| Failure::Run(format!("{}: {error}", experiment.name)))?;
    print(&format!("{}: {}\n{report}\n", experiment.name, experiment.title))?;
    note(format_args!("{} took {:.1} s", experiment.name, start.elapsed().as_secs_f64()));
    let mut charts = Vec::new();
    for (index, chart) in report.charts.iter().enumerate() {
        let svg = draw::svg(chart).map_err(|error| Failure::Run(error.to_string()))?;
        write(&options.out.join(format!("{}-{}.svg", experiment.name, index + 1)), &svg)?;
        charts.push(svg);
    }
    Ok(Done { experiment, report, charts })
}

fn write(path: &std::path::Path, text: &str) -> Result<(), Failure> {
    std::fs::write(path, text)
        .map_err(|error| Failure::Run(format!("cannot write {}: {error}", path.display())))
}
