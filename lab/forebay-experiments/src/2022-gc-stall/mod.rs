//! Reads and writes while the disk collects garbage: what each generation of the budget lets in.

use forebay_core::{LATENCY_GOAL_DEFAULT, Policy};
use forebay_report::{Chart, Mark, Table};
use forebay_sim::simulation::{ClassTrace, Outcome, Sample, SchedulerConfig};

use crate::articles::y2022;
use crate::experiment::{Experiment, Seed, Setting};
use crate::figure::thousands;
use crate::report::Report;
use crate::scenario::{grouped_jobs, millis, pace_window, run as simulate};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "2022-gc-stall",
    alias: "S2-8",
    title: "The second-level bucket while the disk collects garbage",
    source: y2022::SOURCE,
    about: include_str!("about.txt"),
    known: "",
    run,
};

const DISK: &str = include_str!("disk.yaml");
const COLLECTION_S: (f64, f64) = (0.4, 0.6);
const CLASSES: &str = include_str!("classes.yaml");
const JOBS: &str = include_str!("load.yaml");
const SHARDS: u32 = 4;
/// The width of a slice, whatever the length of a run.
const SLICE_MS: u64 = 10;
const GOAL_MS: f64 = LATENCY_GOAL_DEFAULT.as_micros() as f64 / 1000.0;
/// Reads whose mean in the disk is above this wait there for more than the window holds: two goals,
/// and what a read takes by itself.
const ABOVE_MS: f64 = 2.0;

/// The budgets by year, and what is published of each.
const BUDGETS: [(&str, &str); 4] = [
    ("rate alone (2022, first level)", "does not notice"),
    ("two-level bucket (2022)", "never beyond the disk; off since 2023"),
    ("flow ratio (2023)", "acts in 0.3 to 2 s"),
    ("pace+window (forebay)", "-"),
];

fn outcome(seed: Seed, budget: usize, millis: u64) -> Result<Outcome, String> {
    let disk = seed.disk(DISK)?;
    let latency_goal = LATENCY_GOAL_DEFAULT;
    let policy = match budget {
        0 => Policy::TokenBucket { latency_goal },
        1 => Policy::TwoLevelBucket { latency_goal },
        2 => Policy::FlowRatio { latency_goal },
        _ => pace_window(&*disk),
    };
    let mut config = seed.config(grouped_jobs(JOBS, Some(CLASSES), SHARDS)?, disk, millis);
    config.scheduler = SchedulerConfig { policy: Some(policy), ..SchedulerConfig::by_figures() };
    config.trace_buckets = Some(((100 + millis) / SLICE_MS) as usize);
    simulate(config)
}

/// The slices of a class between two times, in seconds.
fn between(
    class: &ClassTrace,
    slice_seconds: f64,
    from: f64,
    to: f64,
) -> impl Iterator<Item = &Sample> {
    let at = move |time: f64| (time / slice_seconds).round() as usize;
    class.samples.iter().take(at(to)).skip(at(from))
}

/// What came of one budget.
#[derive(Debug)]
struct StallResult {
    /// The longest that a read was in the disk from the collection on, in microseconds.
    read_longest_us: f64,
    /// For how many seconds after the collection reads were in the disk for more than
    /// [`ABOVE_MS`] in the mean of a slice.
    seconds_above: f64,
    /// The mean of reads in the disk in the last tenth of a second, in microseconds.
    read_last_us: f64,
    /// Bytes written per second before, while and after the disk collected, in MB/s.
    writes: [f64; 3],
}

fn stall_result(outcome: &Outcome) -> Result<StallResult, String> {
    let trace = outcome.trace.as_ref().ok_or("the run was not traced")?;
    let slice = trace.slice_nanos as f64 / 1e9;
    let [reads, writes] = trace.classes.as_slice() else {
        return Err("there are not two classes".to_owned());
    };
    let (from, to) = COLLECTION_S;
    let end = outcome.ended.as_nanos() as f64 / 1e9;
    let longest = between(reads, slice, from, end).map(|sample| sample.disk.max).max();
    let above = between(reads, slice, to, end).filter(|sample| sample.disk.mean > ABOVE_MS * 1e6);
    let last = between(reads, slice, end - 0.1, end).map(|sample| sample.disk.mean);
    let rate = |(from, to): (f64, f64)| {
        let bytes: u64 = between(writes, slice, from, to).map(|sample| sample.bytes).sum();
        bytes as f64 / 1e6 / (to - from)
    };
    Ok(StallResult {
        read_longest_us: longest.unwrap_or(0) as f64 / 1e3,
        seconds_above: above.count() as f64 * slice,
        read_last_us: last.sum::<f64>() / (0.1 / slice).round() / 1e3,
        writes: [(0.15, from), (from, to), (to, end)].map(rate),
    })
}

fn run(Setting { scale, seed, .. }: Setting) -> Result<Report, String> {
    let measured = scale.seconds(9_900, 29_900);
    let mut report = Report::default();
    report.parameter("disk", "preset nvme-2022, at 30 % of its speed from 0.4 to 0.6 s");
    report.parameter(
        "load",
        "4 shards; Poisson reads of 4 KiB, 10,000/s; 128 KiB writes, 500 deep per shard",
    );
    report.parameter("shares", "reads 1000, writes 100");
    report.parameter("measured", format!("{measured} ms after 100 ms"));
    let mut table = Table::new(
        "Reads in the disk, and MB/s of writes",
        &[
            "budget",
            "published",
            "longest read",
            "above 2 ms after it",
            "at the end",
            "writes before",
            "during",
            "after",
        ],
    );
    let mut latency = Chart::new("Reads: mean latency in the disk (cut at 10 ms)", "s", "ms");
    let mut bandwidth = Chart::new("Writes", "s", "MB/s");
    for (budget, (name, published)) in BUDGETS.into_iter().enumerate() {
        let outcome = outcome(seed, budget, measured)?;
        let StallResult { read_longest_us, seconds_above, read_last_us, writes } =
            stall_result(&outcome)?;
        let [before, during, after] = writes.map(thousands);
        table.row([
            name.to_owned(),
            published.to_owned(),
            millis(read_longest_us),
            format!("{seconds_above:.2} s"),
            millis(read_last_us),
            before,
            during,
            after,
        ]);
        let (of_reads, of_writes) = over_time(&outcome)?;
        latency = latency.with(name, Mark::Line, of_reads);
        bandwidth = bandwidth.with(name, Mark::Line, of_writes);
    }
    let end = 0.1 + measured as f64 / 1e3;
    report.tables.push(table);
    report.charts.push(latency.with(
        "latency goal",
        Mark::Dashed,
        vec![(0.0, GOAL_MS), (end, GOAL_MS)],
    ));
    report.charts.push(bandwidth);
    Ok(report)
}

type Points = Vec<(f64, f64)>;

/// The mean latency of reads in the disk in ms, and MB/s of writes.
fn over_time(outcome: &Outcome) -> Result<(Points, Points), String> {
    const SHOWN_MAX_MS: f64 = 10.0;
    let trace = outcome.trace.as_ref().ok_or("the run was not traced")?;
    let slice = trace.slice_nanos as f64 / 1e9;
    let points = |class: usize, figure: &dyn Fn(&Sample) -> f64| {
        let samples = trace.classes.get(class).map_or(&[][..], |class| &class.samples);
        let samples = samples.iter().enumerate();
        samples.map(|(at, sample)| (at as f64 * slice, figure(sample))).collect::<Points>()
    };
    let latency = |sample: &Sample| (sample.disk.mean / 1e6).min(SHOWN_MAX_MS);
    Ok((points(0, &latency), points(1, &|sample| sample.bytes as f64 / 1e6 / slice)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::seeds;

    #[test]
    fn the_window_bounds_reads_in_a_slow_disk_and_the_rate_does_not() {
        for seed in seeds() {
            let [rate, two_level, flow, window] = [0, 1, 2, 3]
                .map(|budget| stall_result(&outcome(seed, budget, 9_900).unwrap()).unwrap());
            assert!(rate.read_longest_us > 25.0 * window.read_longest_us);
            // 7 goals, the base latency at 30 % of the speed included
            assert!(window.read_longest_us < 7.0 * GOAL_MS * 1e3, "{}", window.read_longest_us);
            assert!(two_level.seconds_above <= 0.02 && window.seconds_above <= 0.02);
            // until the end: 9.4 s
            assert!(rate.seconds_above > 9.3 && rate.read_last_us > 100_000.0, "{rate:?}");
            // the price that it raises drains the disk in the end
            assert!((5.8..9.2).contains(&flow.seconds_above), "{flow:?}");
            assert!(flow.read_last_us < 220.0, "{flow:?}");
        }
    }
}
