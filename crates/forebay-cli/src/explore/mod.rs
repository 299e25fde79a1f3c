//! `forebay explore`: which mixes of reads and writes a disk carries within a latency.

mod output;

use std::io::{self, IsTerminal};
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use forebay::properties::REGIONS_MAX;
use forebay_explore::{Error, Fit, Goal, Report, fit, measure, text};
use forebay_sim::spec::DiskSpec;
use forebay_sim::surface::Grid;

use crate::console::{json, note, print};
use crate::failure::Failure;
use crate::whole_file;

/// Steps of each axis of the matrix, as diskplorer has them.
const STEPS: u32 = 20;
/// What is fitted unless goals are given: those of them that the disk meets.
const GOALS: [&str; 3] = ["p95=500us", "p95=1ms", "p95=2ms"];

/// Find out which mixes of reads and writes a disk carries within a latency.
///
/// Takes a measured surface, or measures a simulated disk: read latencies under loads of reads and
/// writes. For each goal a region of loads is fitted that keep it, and judged by loads that were
/// left out of the fit: how much of what it allows breaks the goal (over), and how much of what
/// keeps it is forbidden (waste), beside the straight line between the disk's figures.
#[derive(Args)]
pub(crate) struct Options {
    /// A surface measured earlier: CSV, or the result file (.json) of diskplorer
    #[arg(long, value_name = "FILE", required_unless_present = "disk")]
    from: Option<PathBuf>,
    /// Measure a simulated disk, a preset or a disk file, under virtual time: 21 rates of reads
    /// beside 21 rates of writes
    #[arg(long, value_name = "NAME|FILE", conflicts_with = "from")]
    disk: Option<String>,
    /// Write what was measured, as CSV for --from
    #[arg(long, value_name = "FILE.csv")]
    save: Option<PathBuf>,
    /// A percentile of reads, and how long it may be, such as p95=1ms; more than once for several.
    /// Unless given, p95 of 0.5, 1 and 2 ms where the disk meets them
    #[arg(long, value_name = "GOAL")]
    goal: Vec<Goal>,
    /// Write the regions into this forebay.yaml, which `tune` made, instead of those that it has
    #[arg(long, short, value_name = "forebay.yaml")]
    output: Option<PathBuf>,
    /// Write a page with heat maps: the region, the straight line, and where they are wrong
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,
    /// Write the heat maps alone
    #[arg(long, value_name = "FILE.svg")]
    svg: Option<PathBuf>,
    /// How to print it
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// The same as --format json
    #[arg(long, conflicts_with = "format")]
    json: bool,
}

/// How it is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people
    Text,
    /// JSON
    Json,
}

/// The command.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let (name, surface) = options.surface()?;
    if let Some(path) = &options.save {
        whole_file::put(path, &surface.to_csv())?;
    }
    let fits = options.fits(&name, &surface)?;
    let (report, picture) = (options.report.as_ref(), options.svg.as_ref());
    output::pictures((&name, &surface), &fits, report, picture)?;
    if let Some(path) = &options.output {
        output::regions(path, &fits)?;
    }
    if options.json || options.format == Format::Json {
        let (cells, missed) = (surface.cells().len(), surface.missed().len());
        return print(&json(&Report::new(&name, cells, missed, &fits))?);
    }
    print(&text(&name, &fits))
}

impl Options {
    /// The surface and what it is called.
    fn surface(&self) -> Result<(String, Grid), Failure> {
        if let Some(path) = &self.from {
            return Ok((path.display().to_string(), Grid::read(path)?));
        }
        let name = self.disk.as_deref().unwrap_or_default();
        let disk = DiskSpec::resolve(name)?;
        let surface = measure(&disk, STEPS, |done, all| {
            if done % (STEPS + 1) == 0 && io::stderr().is_terminal() {
                note(format_args!("{done} of {all} loads"));
            }
        });
        Ok((name.to_owned(), surface))
    }

    fn fits(&self, name: &str, surface: &Grid) -> Result<Vec<Fit>, Failure> {
        let wrong = |error: Error| Failure::Input(format!("{name}: {error}"));
        if self.goal.len() > REGIONS_MAX {
            return Err(Failure::Input(format!("more than {REGIONS_MAX} goals; leave some out")));
        }
        let twice = |&(index, goal): &(usize, &Goal)| self.goal[..index].contains(goal);
        if let Some((_, goal)) = self.goal.iter().enumerate().find(twice) {
            return Err(Failure::Input(format!("--goal {goal} is given twice; leave one out")));
        }
        if !self.goal.is_empty() {
            let fits = self.goal.iter().map(|&goal| fit(surface, goal).map_err(wrong));
            return fits.collect();
        }
        let mut fits = Vec::new();
        let mut unmet = None;
        for goal in GOALS.into_iter().filter_map(|goal| goal.parse().ok()) {
            match fit(surface, goal) {
                Ok(fit) => fits.push(fit),
                Err(error @ (Error::BelowBase { .. } | Error::NothingMeets { .. })) => {
                    unmet = Some(error);
                }
                Err(error) => return Err(wrong(error)),
            }
        }
        match unmet {
            Some(error) if fits.is_empty() => Err(wrong(error)),
            Some(error) => {
                note(format_args!("left out: {error}"));
                Ok(fits)
            }
            None => Ok(fits),
        }
    }
}
