//! A run over time, as charts.

use forebay_load::results::model::RunResult;
use forebay_load::results::series::{JobSeries, Percentiles, RequestTimes, Series};
use forebay_report::{Chart, Mark, Timeline, TimelineRow};

type Points = Vec<(f64, f64)>;

/// The charts of a run that was recorded over time.
pub(super) fn of(run: &RunResult, series: &Series) -> Vec<Chart> {
    let mut charts = vec![
        of_jobs(series, "Bandwidth", "MB/s", |job| scaled(&job.bandwidth_bytes_per_second, 1e-6)),
        of_jobs(series, "Requests done", "per second", |job| job.iops.clone()),
        pending(series),
    ];
    charts.extend(latencies(series, "in the queue", |job| &job.queue_us));
    charts.extend(latencies(series, "in the disk", |job| &job.disk_us));
    if run.disk.is_some() {
        charts.extend([consumption(series), speed(series), flow(series), blocked(run, series)]);
    }
    let from = series.measured_from_seconds;
    let marked = |chart: Chart| if from > 0.0 { chart.marked("measured", from) } else { chart };
    charts.into_iter().map(marked).collect()
}

/// The slowest requests of each job, from when they were due until they were done.
pub(super) fn slowest_requests(series: &Series) -> Option<Timeline> {
    let rows = series.jobs.iter().flat_map(|job| job.slowest.iter().map(|times| row(job, times)));
    let rows: Vec<TimelineRow> = rows.collect();
    let parts = ["due but not sent", "in the queue", "in the disk"].map(String::from);
    let title = String::from("Stages of the slowest requests");
    (!rows.is_empty()).then_some(Timeline { title, parts, rows })
}

fn row(job: &JobSeries, times: &RequestTimes) -> TimelineRow {
    let millis = |from: f64, to: f64| (to - from).max(0.0) * 1e3;
    let RequestTimes {
        intended_seconds,
        queued_seconds,
        dispatched_seconds,
        completed_seconds,
        bytes,
    } = *times;
    TimelineRow {
        name: format!("{} at {intended_seconds:.2} s", job.name),
        millis: [
            millis(intended_seconds, queued_seconds),
            millis(queued_seconds, dispatched_seconds),
            millis(dispatched_seconds, completed_seconds),
        ],
        note: format!(
            "{bytes} bytes: due at {intended_seconds:.6} s, queued at {queued_seconds:.6} s, \
             dispatched at {dispatched_seconds:.6} s, completed at {completed_seconds:.6} s"
        ),
    }
}

/// A column as points over time.
fn points(series: &Series, column: &[f64]) -> Points {
    series.ends_seconds.iter().copied().zip(column.iter().copied()).collect()
}

fn scaled(column: &[f64], by: f64) -> Vec<f64> {
    column.iter().map(|value| value * by).collect()
}

fn chart(title: &str, y: &str) -> Chart {
    Chart::new(title, "seconds", y)
}

fn of_jobs(series: &Series, title: &str, y: &str, of: impl Fn(&JobSeries) -> Vec<f64>) -> Chart {
    series.jobs.iter().fold(chart(title, y), |chart, job| {
        chart.with(&job.name, Mark::Line, points(series, &of(job)))
    })
}

fn latencies(series: &Series, place: &str, of: impl Fn(&JobSeries) -> &Percentiles) -> [Chart; 2] {
    let chart = |percentile: &str, column: fn(&Percentiles) -> &Vec<f64>| {
        let title = format!("Time {place}, {percentile}");
        series.jobs.iter().fold(chart(&title, "ms"), |chart, job| {
            let points = points(series, &scaled(column(of(job)), 1e-3));
            // where nothing was done there is nothing to show
            let done = points.into_iter().zip(&job.iops).filter(|(_, iops)| **iops > 0.0);
            chart.with(&job.name, Mark::Line, done.map(|(point, _)| point).collect())
        })
    };
    [chart("median", |all| &all.p50), chart("99th percentile", |all| &all.p99)]
}

fn pending(series: &Series) -> Chart {
    series.classes.iter().fold(chart("Pending requests", "requests"), |chart, class| {
        let pending: Vec<f64> = class.pending.iter().map(|&count| count as f64).collect();
        chart.with(&class.name, Mark::Line, points(series, &pending))
    })
}

fn consumption(series: &Series) -> Chart {
    let all = points(series, &scaled(&series.disk.consumption, 100.0));
    let chart = chart("Consumption: disk time dispatched", "%");
    // classes come first, for colours go by place and are to be those of the other charts
    let of_classes = series.classes.iter().fold(chart, |chart, class| {
        let part = points(series, &scaled(&class.consumption, 100.0));
        chart.with(&class.name, Mark::Line, part)
    });
    of_classes.with("all", Mark::Dashed, all)
}

fn speed(series: &Series) -> Chart {
    let times = series.ends_seconds.iter().copied();
    let known = times.zip(&series.disk.speed);
    let speed = known.filter_map(|(at, speed)| Some((at, (*speed)? * 100.0)));
    chart("Speed: what the disk does of what its figures say", "%").with(
        "delivered while work waited",
        Mark::Line,
        speed.collect(),
    )
}

fn flow(series: &Series) -> Chart {
    let ratio = points(series, &series.disk.flow_ratio);
    chart("Flow ratio: dispatched per completed", "").with("flow ratio", Mark::Line, ratio)
}

/// For which part of their time queues let nothing through, by reason.
fn blocked(run: &RunResult, series: &Series) -> Chart {
    let queues = f64::from(run.io_queues.max(1));
    let begins = || std::iter::once(0.0).chain(series.ends_seconds.iter().copied());
    let lengths: Vec<f64> = series.ends_seconds.iter().zip(begins()).map(|(e, b)| e - b).collect();
    let reasons = series.disk.blocked_seconds.iter().filter(|(reason, _)| *reason != "empty");
    reasons.fold(
        chart("Why requests waited", "% of the queues' time"),
        |chart, (reason, column)| {
            let parts = column.iter().zip(&lengths);
            let parts: Vec<f64> =
                parts.map(|(seconds, length)| seconds / length / queues * 100.0).collect();
            chart.with(reason, Mark::Line, points(series, &parts))
        },
    )
}
