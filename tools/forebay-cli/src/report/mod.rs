//! One self-contained page of one run, or of two side by side: what was found, totals, and charts
//! over time.

mod charts;
mod contention;
mod figures;
mod in_region;
mod page;
mod picture;
mod results;
mod slowdown;

#[cfg(test)]
mod tests;

use std::path::PathBuf;

use forebay_load::results::model::{Comparison, Report, RunResult, VERSION};

use crate::console::print;
use crate::failure::Failure;
use crate::whole_file;
pub(crate) use page::{html, on_one_scale};
use picture::picture;
pub(crate) use results::read;

/// Make a page from results that `bench` or `sim run` printed with --format json.
///
/// There are charts over time if the run had --report too. If results have two runs, the one with
/// the scheduler is compared.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// The results
    #[arg(value_name = "RESULTS.json")]
    results: PathBuf,
    /// Results to show next to them, on the same scales
    #[arg(long, value_name = "OTHER.json")]
    compare: Option<PathBuf>,
    /// The file for the page or the picture (SVG)
    #[arg(long, short, value_name = "FILE", default_value = "report.html")]
    out: PathBuf,
    /// Draw one picture instead of the page: the 99th percentile of this job's latency over time, a
    /// line for each run
    #[arg(long, value_name = "JOB", requires = "out")]
    latency_of: Option<String>,
}

/// The command.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let Options { results, compare, out, latency_of } = options;
    let inputs = [Some(results), compare.as_ref()].into_iter().flatten();
    whole_file::check_other(out, &inputs.map(PathBuf::as_path).collect::<Vec<_>>())?;
    whole_file::check(out)?;
    let (title, report, names) = match compare {
        None => (results.display().to_string(), read(results)?, None),
        Some(other) => {
            let names = [results, other].map(|path| path.display().to_string());
            let runs = [last_of(read(results)?), last_of(read(other)?)];
            let comparison = Comparison { version: VERSION, runs };
            let title = format!("{} alongside {}", names[0], names[1]);
            (title, Report::Comparison(Box::new(comparison)), Some(names))
        }
    };
    let drawn = match latency_of {
        Some(job) => picture(&report, names.as_ref(), job)?,
        None => html(&title, &report, names.as_ref())?,
    };
    whole_file::put(out, &drawn)?;
    print(&format!("{}\n", out.display()))
}

/// The run with the scheduler.
fn last_of(report: Report) -> RunResult {
    match report {
        Report::Run(run) => *run,
        Report::Comparison(comparison) => {
            let [_, scheduled] = comparison.runs;
            scheduled
        }
    }
}
