//! SchedulerResult 3 to 5: a node saturated with queries is hit by a write load.

use std::collections::BTreeMap;

use forebay_core::Policy;
use forebay_report::{Chart, Mark, Table};
use forebay_sim::simulation::{Sample, SchedulerConfig, Trace};

use crate::articles::y2016;
use crate::articles::y2016::node::{self, Phases};
use crate::experiment::{Experiment, Seed, Setting, experiment};
use crate::figure::Figure;
use crate::report::Report;
use crate::scenario::published;

pub(crate) const EXPERIMENT: Experiment = experiment! {
    name: "2016-write-load",
    alias: "S0-18",
    title: "A node saturated with queries is hit by a write load",
    source: y2016::SOURCE,
};

/// Time in which a phase settles, and which is not counted.
const SETTLING_SECONDS: u64 = 3;

/// What one scheduler did.
struct SchedulerResult {
    trace: Trace,
    utilisation: f64,
    alone: Phase,
    alongside: Phase,
    commitlog: Phase,
    commitlog_p50_millis: f64,
    /// From the dispatch to the completion, on the average.
    commitlog_in_disk_millis: f64,
    query_in_disk_millis: f64,
}

/// A class in one phase of the run.
#[derive(Clone, Copy, Debug)]
struct Phase {
    megabytes_per_second: f64,
    /// From the hand-over to the scheduler to the dispatch, on the average.
    delay_millis: f64,
    /// Requests in the queues, on the average (Little's law).
    pending: f64,
}

impl Phase {
    fn of(samples: &[Sample], slice_nanos: u64) -> Self {
        let seconds = samples.len() as f64 * slice_nanos as f64 / 1e9;
        let bytes: u64 = samples.iter().map(|sample| sample.bytes).sum();
        let requests: u64 = samples.iter().map(|sample| sample.operations).sum();
        let waited = |sample: &Sample| sample.queue.mean * sample.operations as f64;
        let waited: f64 = samples.iter().map(waited).sum();
        Self {
            megabytes_per_second: bytes as f64 / 1e6 / seconds,
            delay_millis: waited / 1e6 / requests.max(1) as f64,
            pending: waited / 1e9 / seconds,
        }
    }
}

fn measure(
    seed: Seed,
    phases: Phases,
    scheduler: SchedulerConfig,
) -> Result<SchedulerResult, String> {
    let slice_millis = phases.mixed_seconds * 1_000 / 60;
    let outcome = node::run(seed, phases, slice_millis, scheduler)?;
    let trace = outcome.trace.ok_or("the run was not traced")?;
    let slices = |seconds: u64| (seconds * 1_000).div_ceil(slice_millis) as usize;
    let (change, settling) = (slices(phases.alone_seconds), slices(SETTLING_SECONDS));
    let (query, commitlog) = (node::class(&trace, "query")?, node::class(&trace, "commitlog")?);
    let alone = query.samples.get(settling..change).unwrap_or_default();
    let alongside = |samples: &[Sample]| {
        let settled = samples.get(change + settling..).unwrap_or_default();
        Phase::of(settled, trace.slice_nanos)
    };
    Ok(SchedulerResult {
        utilisation: outcome.utilisation,
        alone: Phase::of(alone, trace.slice_nanos),
        alongside: alongside(&query.samples),
        commitlog: alongside(&commitlog.samples),
        commitlog_p50_millis: commitlog.queue.quantile_ns(0.5) as f64 / 1e6,
        commitlog_in_disk_millis: commitlog.disk.mean_ns() / 1e6,
        query_in_disk_millis: query.disk.mean_ns() / 1e6,
        trace,
    })
}

/// With the scheduler and without any.
fn measure_both(seed: Seed, phases: Phases) -> Result<[SchedulerResult; 2], String> {
    Ok([
        measure(seed, phases, SchedulerConfig::by_figures())?,
        measure(
            seed,
            phases,
            SchedulerConfig { policy: Some(Policy::Unlimited), ..SchedulerConfig::by_figures() },
        )?,
    ])
}

fn run(Setting { scale, seed, .. }: Setting) -> Result<Report, String> {
    let phases = Phases::of(scale);
    report(phases, &measure_both(seed, phases)?)
}

fn report(phases: Phases, figures: &[SchedulerResult; 2]) -> Result<Report, String> {
    let mut report = Report {
        figures: published_figures(figures),
        tables: vec![table(figures)?],
        charts: charts(phases, figures)?,
        ..Report::default()
    };
    node::describe(&mut report, phases);
    Ok(report)
}

/// Alongside what is without a scheduler, where all waiting is in the disk.
fn published_figures([ours, open]: &[SchedulerResult; 2]) -> Vec<Figure> {
    let SchedulerResult { alone, alongside, commitlog, commitlog_p50_millis, .. } = ours;
    let none = "no scheduler";
    vec![
        Figure::new("queries alone", "MB/s", 300.0, alone.megabytes_per_second),
        Figure::new("queries alone: pending", "requests", 2_400.0..=2_500.0, alone.pending),
        Figure::new("queries alone: delay", "ms", 500.0, alone.delay_millis),
        Figure::new("queries alongside writes", "MB/s", 150.0, alongside.megabytes_per_second)
            .compared_with(none, open.alongside.megabytes_per_second),
        Figure::new(
            "queries alongside writes: delay",
            "ms",
            750.0..=1_000.0,
            alongside.delay_millis,
        )
        .compared_with(none, open.query_in_disk_millis),
        // a couple
        Figure::new("commitlog: median delay", "ms", ..=2.5, *commitlog_p50_millis)
            .compared_with(none, open.commitlog_in_disk_millis),
        Figure::new("commitlog: mean delay", "ms", ..=2.5, commitlog.delay_millis)
            .compared_with(none, open.commitlog_in_disk_millis),
    ]
}

fn table(figures: &[SchedulerResult; 2]) -> Result<Table, String> {
    let published: BTreeMap<String, String> = published(include_str!("published.yaml"))?;
    let columns = ["", "published", "no scheduler", "forebay"];
    let mut table = Table::new("Before and alongside the write load", &columns);
    let mut add = |name: &str, digits: usize, of: fn(&SchedulerResult) -> f64| {
        let published = published.get(name).map_or("-", String::as_str);
        let [ours, open] = figures.each_ref().map(|figures| format!("{:.digits$}", of(figures)));
        table.row([name.to_owned(), published.to_owned(), open, ours]);
    };
    add("queries alone: MB/s", 0, |f| f.alone.megabytes_per_second);
    add("queries alone: pending", 0, |f| f.alone.pending);
    add("queries alone: delay (ms)", 0, |f| f.alone.delay_millis);
    add("queries alongside writes: MB/s", 0, |f| f.alongside.megabytes_per_second);
    add("queries alongside writes: delay (ms)", 0, |f| f.alongside.delay_millis);
    add("commitlog: MB/s", 0, |f| f.commitlog.megabytes_per_second);
    add("commitlog: median delay (ms)", 2, |f| f.commitlog_p50_millis);
    add("commitlog: mean delay (ms)", 2, |f| f.commitlog.delay_millis);
    add("commitlog: mean time in the disk (ms)", 2, |f| f.commitlog_in_disk_millis);
    add("disk used (%)", 1, |f| f.utilisation * 100.0);
    Ok(table)
}

fn charts(phases: Phases, [ours, open]: &[SchedulerResult; 2]) -> Result<Vec<Chart>, String> {
    let line = |figures: &SchedulerResult, name: &str, of: fn(&Sample, f64) -> f64| {
        let seconds = figures.trace.slice_nanos as f64 / 1e9;
        let samples = node::class(&figures.trace, name)?.samples.iter().enumerate();
        let points = samples.map(|(at, sample)| (at as f64 * seconds, of(sample, seconds)));
        Ok::<_, String>(points.collect::<Vec<_>>())
    };
    let delay = |sample: &Sample, _| sample.queue.mean / 1e6;
    let in_disk = |sample: &Sample, _| sample.disk.mean / 1e6;
    let rate = |sample: &Sample, seconds| sample.bytes as f64 / 1e6 / seconds;
    let (from, to) = (phases.alone_seconds as f64, phases.seconds() as f64);
    let across =
        |before: f64, after: f64| vec![(0.0, before), (from, before), (from, after), (to, after)];
    let delays = Chart::new("Delay of new requests", "time (s)", "ms")
        .with("query, in the queue", Mark::Line, line(ours, "query", delay)?)
        .with("commitlog, in the queue", Mark::Line, line(ours, "commitlog", delay)?)
        .with("no scheduler: commitlog, in the disk", Mark::Line, line(open, "commitlog", in_disk)?)
        .with("query, published: then 750 to 1,000", Mark::Dashed, across(500.0, 875.0));
    let bandwidths = Chart::new("Bandwidth", "time (s)", "MB/s")
        .with("query", Mark::Line, line(ours, "query", rate)?)
        .with("commitlog", Mark::Line, line(ours, "commitlog", rate)?)
        .with("no scheduler: query", Mark::Line, line(open, "query", rate)?)
        .with("no scheduler: commitlog", Mark::Line, line(open, "commitlog", rate)?)
        .with("query, published", Mark::Dashed, across(300.0, 150.0));
    Ok(vec![delays, bandwidths])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Scale;
    use crate::tests::seeds;

    #[test]
    fn the_commit_log_does_not_wait_with_the_queries() {
        let phases = Phases::of(Scale::Short);
        for seed in seeds() {
            let figures = measure_both(seed, phases).unwrap();
            let SchedulerResult {
                alone,
                alongside,
                commitlog,
                commitlog_p50_millis,
                utilisation,
                ..
            } = &figures[0];
            assert!((299.0..=301.0).contains(&alone.megabytes_per_second), "{alone:?}");
            assert!((2_480.0..=2_496.0).contains(&alone.pending), "{alone:?}");
            assert!((505.0..=515.0).contains(&alone.delay_millis), "{alone:?}");
            assert!((164.0..=170.0).contains(&alongside.megabytes_per_second), "{alongside:?}");
            assert!((890.0..=930.0).contains(&alongside.delay_millis), "{alongside:?}");
            assert!(commitlog.delay_millis <= 3.5, "{commitlog:?}");
            assert!(*commitlog_p50_millis <= 0.6, "{commitlog_p50_millis}");
            assert!(*utilisation >= 0.999, "{utilisation}");
        }
    }
}
