//! Figure 6: classes that want the disk now and then do not wait behind one that always does.

use forebay_core::Policy;
use forebay_report::{Chart, Mark, Table};
use forebay_sim::simulation::{ClassTrace, Sample, SchedulerConfig, Trace};

use crate::articles::y2016;
use crate::articles::y2016::node::{self, Phases};
use crate::experiment::{Experiment, Scale, Seed, Setting, experiment};
use crate::figure::Figure;
use crate::report::Report;

pub(crate) const EXPERIMENT: Experiment = experiment! {
    name: "2016-bursts",
    alias: "S0-19",
    title: "Classes that come in bursts alongside a saturating one",
    source: y2016::SOURCE,
};

const SLICE_MILLIS: u64 = 25;
/// The class that always wants more, and those that come in bursts.
const CLASSES: [&str; 3] = ["query", "memtable", "compaction"];

fn phases(scale: Scale) -> Phases {
    Phases { alone_seconds: scale.seconds(2, 10), mixed_seconds: scale.seconds(20, 120) }
}

/// With the scheduler and without any.
fn measure(seed: Seed, phases: Phases) -> Result<[Trace; 2], String> {
    let open = SchedulerConfig { policy: Some(Policy::Unlimited), ..SchedulerConfig::by_figures() };
    let trace = |scheduler| {
        let outcome = node::run(seed, phases, SLICE_MILLIS, scheduler)?;
        outcome.trace.ok_or_else(|| String::from("the run was not traced"))
    };
    Ok([trace(SchedulerConfig::by_figures())?, trace(open)?])
}

fn run(Setting { scale, seed, .. }: Setting) -> Result<Report, String> {
    let phases = phases(scale);
    report(phases, &measure(seed, phases)?)
}

fn report(phases: Phases, traces: &[Trace; 2]) -> Result<Report, String> {
    let query_ms = node::class(&traces[0], "query")?.queue.mean_ns() / 1e6;
    let open_ms = node::class(&traces[1], "query")?.disk.mean_ns() / 1e6;
    let delay = Figure::new("query: mean delay", "ms", 750.0..=1_000.0, query_ms)
        .compared_with("no scheduler, in the disk", open_ms);
    let mut report = Report {
        figures: vec![delay],
        tables: vec![table(traces)?],
        charts: charts(phases, &traces[0])?,
        ..Report::default()
    };
    node::describe(&mut report, phases);
    Ok(report)
}

fn millis(nanos: f64) -> String {
    format!("{:.2}", nanos / 1e6)
}

fn table([ours, open]: &[Trace; 2]) -> Result<Table, String> {
    let title = "Delay in the queue alongside queries and commit log, in ms; without a scheduler \
                 all waiting is in the disk";
    let columns = [
        "class",
        "published",
        "mean",
        "p99",
        "longest",
        "in the disk",
        "no scheduler: in the disk",
    ];
    let mut table = Table::new(title, &columns);
    for name in CLASSES {
        let (class, open) = (node::class(ours, name)?, node::class(open, name)?);
        let published = if name == "query" { "750 to 1,000" } else { "fairly small" };
        let queue = &class.queue;
        table.row([
            name.to_owned(),
            published.to_owned(),
            millis(queue.mean_ns()),
            millis(queue.quantile_ns(0.99) as f64),
            millis(queue.max_ns() as f64),
            millis(class.disk.mean_ns()),
            millis(open.disk.mean_ns()),
        ]);
    }
    Ok(table)
}

fn charts(phases: Phases, ours: &Trace) -> Result<Vec<Chart>, String> {
    /// This many seconds show several bursts.
    const SECONDS: u64 = 5;
    let slices = |seconds: u64| (seconds * 1_000 / SLICE_MILLIS) as usize;
    let (from, count) = (slices(phases.alone_seconds), slices(SECONDS));
    let seconds = |slice: usize| (slice as u64 * SLICE_MILLIS) as f64 / 1e3;
    let points = |class: &ClassTrace, of: fn(&Sample) -> f64| {
        let shown = class.samples.iter().enumerate().skip(from).take(count);
        shown.map(|(slice, sample)| (seconds(slice), of(sample))).collect::<Vec<_>>()
    };
    let mut delays = Chart::new("Longest delay of bursty classes in the queue", "time (s)", "ms");
    let mut rates = Chart::new("Bandwidth of each class", "time (s)", "MB/s");
    for name in ["memtable", "compaction"] {
        let waits = points(node::class(ours, name)?, |sample| sample.queue.max as f64 / 1e6);
        let waits = waits.into_iter().filter(|&(_, millis)| millis > 0.0).collect();
        delays = delays.with(name, Mark::Dots, waits);
    }
    for name in ["query", "commitlog", "memtable", "compaction"] {
        let rate = points(node::class(ours, name)?, |sample| {
            sample.bytes as f64 / 1e3 / SLICE_MILLIS as f64
        });
        rates = rates.with(name, Mark::Line, rate);
    }
    Ok(vec![delays, rates])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::seeds;

    #[test]
    fn bursts_do_not_wait_behind_queries() {
        let phases = phases(Scale::Short);
        for seed in seeds() {
            let traces = measure(seed, phases).unwrap();
            for name in ["memtable", "compaction"] {
                let queue = &node::class(&traces[0], name).unwrap().queue;
                assert!(queue.mean_ns() <= 600_000.0, "{name}: {}", queue.mean_ns());
                assert!(
                    queue.quantile_ns(0.99) <= 2_450_000,
                    "{name}: {}",
                    queue.quantile_ns(0.99)
                );
            }
        }
    }
}
