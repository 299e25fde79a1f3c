//! The page.

use std::borrow::Cow;

use forebay_load::results::model::{ClassResult, FlushResult, Report, RunResult};
use forebay_load::results::series::Series;
use forebay_load::results::text;
use forebay_report::{Chart, DrawError, Page, Table, svg};

use super::{charts, figures, in_region};
use crate::console::json;
use crate::failure::Failure;

/// Above the highest value there is room for what marks mean.
pub(super) const ROOM: f64 = 1.12;

/// A run with what it is called.
type Named<'a> = (String, &'a RunResult);

/// The page of `report` as HTML; `runs` are what its runs are called, where there are two.
pub(crate) fn html(
    title: &str,
    report: &Report,
    names: Option<&[String; 2]>,
) -> Result<String, Failure> {
    let runs: Vec<Named<'_>> = match report {
        Report::Run(run) => vec![(format!("scheduler {}", run.scheduler), run)],
        Report::Comparison(comparison) => {
            let [before, after] = &comparison.runs;
            let usual = || [before, after].map(|run| format!("scheduler {}", run.scheduler));
            let [first, second] = names.cloned().unwrap_or_else(usual);
            vec![(first, before), (second, after)]
        }
    };
    let mut page = Page::new(&format!("forebay: {title}"));
    page.title(title);
    for (name, run) in &runs {
        page.about(&about(name, run));
    }
    page.heading("found", "What was found");
    found(&mut page, &runs);
    page.heading("totals", "Totals");
    for (name, run) in &runs {
        page.table(&totals(name, run));
    }
    match (names, report) {
        // of two files neither need be the other without its scheduler
        (Some(names), Report::Comparison(comparison)) => {
            if let Some(differ) = differ(&comparison.runs, names) {
                page.paragraph(&differ);
            }
            for (name, run) in &runs {
                page.paragraph(&format!("{name}:"));
                page.preformatted(&text(&Report::Run(Box::new((*run).clone()))));
            }
        }
        _ => page.preformatted(&text(report)),
    }
    page.heading("time", "Over time");
    let drawn = drawn(&runs)?;
    if drawn.is_empty() {
        page.paragraph("These results have no time series: run with --report to record them.");
    }
    let jobs = runs.iter().filter_map(|(_, run)| Some(run.series.as_ref()?.jobs.len()));
    let jobs = jobs.max().unwrap_or_default();
    if jobs > LINES_MAX {
        page.paragraph(&format!("Only the {LINES_MAX} busiest of {jobs} jobs are drawn."));
    }
    page.charts(&drawn);
    within_region(&mut page, &runs)?;
    slowest_requests(&mut page, &runs);
    page.json("results", &json(report)?);
    Ok(page.finish())
}

/// What makes two runs hard to compare.
fn differ(runs: &[RunResult; 2], names: &[String; 2]) -> Option<String> {
    let jobs = |run: &RunResult| {
        let mut jobs: Vec<String> = run.classes.iter().map(|job| job.name.clone()).collect();
        jobs.sort();
        jobs.join(", ")
    };
    let [first, second] = runs.each_ref().map(jobs);
    let [one, other] = names;
    (first != second)
        .then(|| format!("The loads differ: {one} has the jobs {first}, and {other} {second}."))
}

fn about(name: &str, run: &RunResult) -> String {
    let RunResult { backend, topology, io_queues, seed, .. } = run;
    format!(
        "{name}: {:.1} s measured, {backend}, {topology} with {io_queues} I/O queues, order {}, \
         seed {seed}.",
        run.duration_seconds, run.order
    )
}

/// What the metrics say; what warns stands out.
fn found(page: &mut Page, runs: &[Named<'_>]) {
    for (name, run) in runs {
        if runs.len() > 1 {
            page.paragraph(&format!("{name}:"));
        }
        let unscheduled = runs.iter().find(|(_, other)| other.disk.is_none());
        let findings = figures::of(run, unscheduled.map(|(_, other)| *other));
        let lines: Vec<(String, bool)> =
            findings.iter().map(|finding| (finding.to_string(), finding.kind.warns())).collect();
        page.list(lines.iter().map(|(text, warns)| (text.as_str(), *warns)));
    }
}

fn totals(name: &str, run: &RunResult) -> Table {
    let columns = [
        "job",
        "class",
        "shares",
        "requests",
        "per second",
        "MB/s",
        "p50",
        "p99",
        "p99.9",
        "queue p99",
        "queue max",
        "disk p99",
        "errors",
    ];
    let mut table = Table::new(&format!("{name}; latencies in ms"), &columns);
    for job in &run.classes {
        table.row(row(job));
        if let Some(flushes) = &job.flushes {
            table.row(flush_row(job, flushes));
        }
    }
    table
}

fn ms(us: f64) -> String {
    format!("{:.2}", us / 1e3)
}

/// The flushes that follow the requests of a job; what is not known of them alone stays empty.
fn flush_row(job: &ClassResult, flushes: &FlushResult) -> Vec<String> {
    let FlushResult { requests, iops, latency_us } = flushes;
    let mut row = vec![job.flushes_name(), job.class.clone(), job.shares.to_string()];
    row.extend([requests.to_string(), format!("{iops:.0}"), String::new()]);
    row.extend([latency_us.p50, latency_us.p99, latency_us.p999].map(ms));
    row.extend([const { String::new() }; 4]);
    row
}

fn row(job: &ClassResult) -> Vec<String> {
    vec![
        job.name.clone(),
        job.class.clone(),
        job.shares.to_string(),
        job.requests.to_string(),
        format!("{:.0}", job.iops),
        format!("{:.1}", job.bandwidth_bytes_per_second as f64 / 1e6),
        ms(job.latency_us.p50),
        ms(job.latency_us.p99),
        ms(job.latency_us.p999),
        ms(job.queue_us.p99),
        ms(job.queue_us.max),
        ms(job.disk_us.p99),
        job.errors.to_string(),
    ]
}

/// The charts of all runs; of two runs side by side and on one scale.
fn drawn(runs: &[Named<'_>]) -> Result<Vec<String>, DrawError> {
    let charts = |(name, run): &Named<'_>| {
        let series = run.series.as_deref().map(busiest);
        let all = series.map(|series| charts::of(run, &series)).unwrap_or_default();
        let named = |chart: Chart| Chart { title: format!("{}: {name}", chart.title), ..chart };
        let is_one = runs.len() == 1;
        all.into_iter().map(|chart| if is_one { chart } else { named(chart) }).collect()
    };
    on_one_scale(&runs.iter().map(charts).collect::<Vec<Vec<Chart>>>())
}

/// The charts of all runs, the first of each and then the second of each, these on one scale.
pub(crate) fn on_one_scale(all: &[Vec<Chart>]) -> Result<Vec<String>, DrawError> {
    let most = all.iter().map(Vec::len).max().unwrap_or_default();
    let mut drawn = Vec::new();
    for place in 0..most {
        let row: Vec<&Chart> = all.iter().filter_map(|charts| charts.get(place)).collect();
        let highest = row.iter().map(|chart| chart.highest()).fold(0.0, f64::max);
        for chart in row {
            drawn.push(svg(&chart.clone().reaching(highest * ROOM))?);
        }
    }
    Ok(drawn)
}

/// Where each run was in the region of its disk, if that has one.
fn within_region(page: &mut Page, runs: &[Named<'_>]) -> Result<(), Failure> {
    let known = runs.iter().filter_map(|(name, run)| Some((name, in_region::of(run)?)));
    for (place, (name, drawn)) in known.enumerate() {
        if place == 0 {
            page.heading("region", "In the region of mixes");
        }
        match drawn {
            Ok(drawn) => {
                page.paragraph(&format!("{name}: {}", drawn.said));
                page.charts(&drawn.charts.iter().map(svg).collect::<Result<Vec<_>, _>>()?);
            }
            Err(why) => page.paragraph(&format!("{name}: {why}")),
        }
    }
    Ok(())
}

fn slowest_requests(page: &mut Page, runs: &[Named<'_>]) {
    let all = runs.iter().filter_map(|(name, run)| {
        let mut slowest = charts::slowest_requests(&busiest(run.series.as_deref()?))?;
        if runs.len() > 1 {
            slowest.title = format!("{}: {name}", slowest.title);
        }
        Some(slowest.svg())
    });
    let all: Vec<String> = all.collect();
    if !all.is_empty() {
        page.heading("ways", "Single requests");
        page.paragraph(
            "The slowest requests of each job, at most one per sample. The scheduler orders \
             requests in the queue, but not in the disk.",
        );
        page.charts(&all);
    }
}

/// The maximum number of lines in a chart.
const LINES_MAX: usize = 16;

/// The run with the jobs that moved most bytes, and with the classes that had most disk time, in
/// the order they had.
fn busiest(series: &Series) -> Cow<'_, Series> {
    if series.jobs.len() <= LINES_MAX && series.classes.len() <= LINES_MAX {
        return Cow::Borrowed(series);
    }
    let mut series = series.clone();
    keep_most(&mut series.jobs, |job| &job.bandwidth_bytes_per_second);
    keep_most(&mut series.classes, |class| &class.consumption);
    Cow::Owned(series)
}

fn keep_most<T>(all: &mut Vec<T>, of: fn(&T) -> &Vec<f64>) {
    let sum = |one: &T| of(one).iter().sum::<f64>();
    let mut order: Vec<usize> = (0..all.len()).collect();
    // the earlier one stays where two did as much
    order.sort_by(|&one, &other| sum(&all[other]).total_cmp(&sum(&all[one])));
    let mut stays = vec![false; all.len()];
    order.iter().take(LINES_MAX).for_each(|&place| stays[place] = true);
    let mut stays = stays.into_iter();
    all.retain(|_| stays.next().unwrap_or(false));
}

#[cfg(test)]
mod tests {
    use forebay_load::results::series::JobSeries;

    use super::*;

    #[test]
    fn of_a_thousand_jobs_those_that_did_most_are_drawn_in_their_order() {
        let job = |place: usize| JobSeries {
            name: place.to_string(),
            bandwidth_bytes_per_second: vec![(place * 7 % 1000) as f64],
            ..JobSeries::default()
        };
        let all = Series { jobs: (0..1000).map(job).collect(), ..Series::default() };
        let kept = busiest(&all);
        let rates: Vec<f64> =
            kept.jobs.iter().map(|job| job.bandwidth_bytes_per_second[0]).collect();
        assert_eq!(rates.len(), LINES_MAX);
        assert!(rates.iter().all(|rate| *rate >= 984.0), "{rates:?}");
        let places: Vec<usize> = kept.jobs.iter().map(|job| job.name.parse().unwrap()).collect();
        assert!(places.is_sorted(), "{places:?}");
        let few = Series { jobs: (0..LINES_MAX).map(job).collect(), ..Series::default() };
        assert_eq!(*busiest(&few), few);
    }
}
