//! The latency of one job over time, as one picture with a line for each run.

use forebay_load::results::model::{Report, RunResult};
use forebay_load::results::series::{JobSeries, Series};
use forebay_report::{Chart, Mark, svg};

use super::page::ROOM;
use crate::failure::Failure;

/// The picture as SVG: the 99th percentile of the job `name`, and where other jobs begin.
pub(super) fn picture(
    report: &Report,
    names: Option<&[String; 2]>,
    name: &str,
) -> Result<String, Failure> {
    let runs: Vec<(&str, &RunResult)> = match report {
        Report::Run(run) => vec![(&run.scheduler, run)],
        Report::Comparison(comparison) => {
            let [first, second] = &comparison.runs;
            let names = names
                .map_or(["unscheduled", "scheduled"], |names| names.each_ref().map(String::as_str));
            vec![(names[0], first), (names[1], second)]
        }
    };
    let title = format!("Latency of {name}: 99th percentile of each sample");
    let mut chart = Chart::new(&title, "seconds", "ms");
    for (label, run) in runs {
        let (series, job) = recorded(run, name)?;
        chart = chart.with(label, Mark::Line, latency(series, job));
        if chart.marks.is_empty() {
            chart.marks = starts(series);
        }
    }
    let highest = chart.highest();
    let chart = chart.reaching(highest * ROOM);
    svg(&chart).map_err(|error| Failure::Run(format!("cannot draw the picture: {error}")))
}

/// The run over time, and the job in it.
fn recorded<'a>(run: &'a RunResult, name: &str) -> Result<(&'a Series, &'a JobSeries), Failure> {
    let Some(series) = run.series.as_deref() else {
        return Err(not_recorded());
    };
    let Some(job) = series.jobs.iter().find(|job| job.name == name) else {
        let names: Vec<&str> = series.jobs.iter().map(|job| job.name.as_str()).collect();
        return Err(Failure::Input(format!(
            "no job of these results is called `{name}`; they have {}",
            names.join(", ")
        )));
    };
    if job.latency_us.p99.is_empty() { Err(not_recorded()) } else { Ok((series, job)) }
}

fn not_recorded() -> Failure {
    Failure::Input(String::from(
        "these results have no time series of latencies: run `bench` or `sim run` with --report \
         and --format json",
    ))
}

/// Milliseconds at the end of each sample that has requests.
fn latency(series: &Series, job: &JobSeries) -> Vec<(f64, f64)> {
    let samples = series.ends_seconds.iter().zip(&job.latency_us.p99).zip(&job.iops);
    let done = samples.filter(|(_, iops)| **iops > 0.0);
    done.map(|((end, us), _)| (*end, us / 1e3)).collect()
}

/// When jobs begin that do nothing in the first sample.
fn starts(series: &Series) -> Vec<(String, f64)> {
    let first = |job: &JobSeries| job.iops.iter().position(|&iops| iops > 0.0);
    let late = series.jobs.iter().filter_map(|job| {
        let before = first(job)?.checked_sub(1)?;
        Some((format!("{} begins", job.name), *series.ends_seconds.get(before)?))
    });
    late.collect()
}
