//! Table 1: a reader with one request at a time alongside many large writes.

use core::time::Duration;
use std::collections::BTreeMap;

use forebay_core::Policy;
use forebay_load::results::model::ClassResult;
use forebay_report::{Chart, Mark, Table};
use forebay_sim::simulation::{Polling, SchedulerConfig};

use crate::articles::y2016::{DECAY, of_2016};
use crate::articles::y2018;
use crate::articles::y2018::{DEPTH_OF_2016, LITTLES_LAW};
use crate::experiment::{Experiment, Seed, Setting, experiment};
use crate::figure::{Figure, PublishedRange};
use crate::report::Report;
use crate::scenario;

pub(crate) const EXPERIMENT: Experiment = experiment! {
    name: "2018-deep-writes",
    alias: "S1-9",
    title: "Small reads alongside deep writes",
    source: y2018::SOURCE,
};

const DISK: &str = include_str!("disk.yaml");
/// So often the disk collects garbage, for so long, and is then at half of its speed, in
/// milliseconds: fitted to the 99th and 99.9th percentile of the writes before.
const COLLECTS_EACH: u64 = 2_400;
const COLLECTS_FOR: u64 = 38;
/// Instead of that it pauses after this many written megabytes, for this many milliseconds in the
/// mean: fitted to the same two figures.
const PAUSES_EACH: u64 = 640;
const PAUSES_FOR: u64 = 13;
const JOBS: &str = include_str!("load.yaml");
/// The task quota.
const TICK: Polling = Polling::Tick(500_000);

/// SchedulerResult by the names of their rows, before and after.
type Published = BTreeMap<String, [u32; 2]>;

/// A row of the table: its name and unit, the digits shown, and what it is.
type Row = (&'static str, &'static str, usize, fn(&SchedulerResult) -> f64);
const ROWS: [Row; 10] = [
    ("writes", "MB/s", 1, |f| f.writes.bandwidth_bytes_per_second as f64 / y2018::MB as f64),
    ("reads", "KB/s", 0, |f| f.reads.bandwidth_bytes_per_second as f64 / y2018::KB as f64),
    ("reads: mean", "ms", 2, |f| f.reads.latency_us.mean / 1e3),
    ("reads: p95", "ms", 2, |f| f.reads.latency_us.p95 / 1e3),
    ("reads: p99", "ms", 2, |f| f.reads.latency_us.p99 / 1e3),
    ("reads: p99.9", "ms", 2, |f| f.reads.latency_us.p999 / 1e3),
    ("writes: mean", "ms", 1, |f| f.writes.latency_us.mean / 1e3),
    ("writes: p95", "ms", 1, |f| f.writes.latency_us.p95 / 1e3),
    ("writes: p99", "ms", 1, |f| f.writes.latency_us.p99 / 1e3),
    ("writes: p99.9", "ms", 1, |f| f.writes.latency_us.p999 / 1e3),
];
/// Of the article's table: writes and reads before, and after.
const COLUMNS: usize = 4;

/// What one scheduler gave.
struct SchedulerResult {
    reads: ClassResult,
    writes: ClassResult,
}

/// All of them.
struct Compared {
    open: SchedulerResult,
    old: SchedulerResult,
    littles_law: SchedulerResult,
    littles_law_on_ticks: SchedulerResult,
    ours: SchedulerResult,
    ours_on_ticks: SchedulerResult,
}

/// The disk with its garbage collections within this many seconds.
fn disk(seconds: u64) -> String {
    let starts = (1..=(seconds + 1) * 1_000 / COLLECTS_EACH).map(|at| at * COLLECTS_EACH);
    let slow = starts.map(|from| {
        let to = from + COLLECTS_FOR;
        format!("  - {{kind: slow, from: {from}ms, to: {to}ms, percent: 50}}\n")
    });
    format!("{DISK}faults:\n{}", slow.collect::<String>())
}

/// The disk that pauses to collect garbage.
fn disk_with_pauses() -> String {
    format!("{DISK}collect_every: {PAUSES_EACH}MB\ncollect_pause: {PAUSES_FOR}ms\n")
}

/// The scheduler of 2018.
fn of_2018() -> SchedulerConfig {
    let policy = Some(LITTLES_LAW);
    SchedulerConfig { policy, order: DECAY, ..SchedulerConfig::by_figures() }
}

impl SchedulerResult {
    fn measure(
        seed: Seed,
        disk: &str,
        scheduler: &SchedulerConfig,
        polling: Polling,
        seconds: u64,
    ) -> Result<Self, String> {
        let (jobs, disk) = (scenario::jobs(JOBS, 1)?, seed.disk(disk)?);
        let mut config = seed.config(jobs, disk, seconds * 1_000);
        config.scheduler = scheduler.clone();
        config.warmup = Duration::from_secs(1);
        config.polling = polling;
        let outcome = scenario::run(config)?;
        let job = |name| scenario::job(&outcome, name).cloned();
        Ok(Self { reads: job("reads")?, writes: job("writes")? })
    }
}

impl Compared {
    fn measure(seed: Seed, disk: &str, seconds: u64) -> Result<Self, String> {
        let (of_2018, forebay) = (of_2018(), SchedulerConfig::by_figures());
        let open = SchedulerConfig { policy: Some(Policy::Unlimited), ..forebay.clone() };
        Ok(Self {
            open: SchedulerResult::measure(seed, disk, &open, Polling::Events, seconds)?,
            old: SchedulerResult::measure(
                seed,
                disk,
                &of_2016(DEPTH_OF_2016),
                Polling::Events,
                seconds,
            )?,
            littles_law: SchedulerResult::measure(seed, disk, &of_2018, Polling::Events, seconds)?,
            littles_law_on_ticks: SchedulerResult::measure(seed, disk, &of_2018, TICK, seconds)?,
            ours: SchedulerResult::measure(seed, disk, &forebay, Polling::Events, seconds)?,
            ours_on_ticks: SchedulerResult::measure(seed, disk, &forebay, TICK, seconds)?,
        })
    }
}

/// Repeats the table.
fn run(Setting { scale, seed, .. }: Setting) -> Result<Report, String> {
    let seconds = scale.seconds(48, 120);
    let compared = Compared::measure(seed, &disk(seconds), seconds)?;
    let published: Published = scenario::published(include_str!("published.yaml"))?;
    let mut report = Report {
        figures: figures(&compared, &published),
        tables: vec![table(&compared, &published), with_pauses(seed, &compared, seconds)?],
        charts: vec![chart(&compared, &published)],
        ..Report::default()
    };
    report.parameter(
        "disk",
        "95,000 reads/s, 518 MB/s, from the article; each 2.4 s half as fast for 38 ms, to collect garbage",
    );
    report.parameter("writes", "99 of 128 KiB at a time, which take the published 24 ms");
    report.parameter("reads", "of 4 KiB, each 10 ms after the last");
    report.parameter("processor", "tasks of 0.2 ms, 1,500 per second at random times");
    report.parameter("shares", "100 each, on one shard");
    report.parameter("measured", format!("{seconds} s after 1 s"));
    report.parameter("2016", format!("{DEPTH_OF_2016} requests in the disk"));
    report.parameter("2018", "Little's law, goal 1.5 x 0.5 ms");
    report.parameter("forebay", "pace + window, latency goal 0.75 ms");
    Ok(report)
}

fn table(compared: &Compared, published: &Published) -> Table {
    let title = "Before and after; in the columns with ticks, dispatch each 0.5 ms alone";
    let columns = [
        "",
        "before, published",
        "2016",
        "after, published",
        "2018",
        "2018, ticks",
        "forebay",
        "forebay, ticks",
    ];
    let mut table = Table::new(title, &columns);
    for (name, unit, digits, of) in ROWS {
        let [before, after] = published.get(name).copied().unwrap_or_default();
        let cell = |figures| format!("{:.digits$}", of(figures));
        table.row([
            format!("{name} ({unit})"),
            before.to_string(),
            cell(&compared.old),
            after.to_string(),
            cell(&compared.littles_law),
            cell(&compared.littles_law_on_ticks),
            cell(&compared.ours),
            cell(&compared.ours_on_ticks),
        ]);
    }
    table
}

/// Both columns if the disk pauses instead.
fn with_pauses(seed: Seed, slow: &Compared, seconds: u64) -> Result<Table, String> {
    let disk = disk_with_pauses();
    let before =
        SchedulerResult::measure(seed, &disk, &of_2016(DEPTH_OF_2016), Polling::Events, seconds)?;
    let after = SchedulerResult::measure(seed, &disk, &of_2018(), TICK, seconds)?;
    let title = format!(
        "The same if the disk pauses after each {PAUSES_EACH} MB of writes, for {PAUSES_FOR} ms in \
         the mean, instead of being slow"
    );
    let columns = ["", "2016, slow", "2016, pauses", "2018, ticks, slow", "2018, ticks, pauses"];
    let mut table = Table::new(&title, &columns);
    for (name, unit, digits, of) in ROWS {
        let results = [&slow.old, &before, &slow.littles_law_on_ticks, &after];
        let mut row = vec![format!("{name} ({unit})")];
        row.extend(results.map(|result| format!("{:.digits$}", of(result))));
        table.rows.push(row);
    }
    Ok(table)
}

/// Each column of the article's table: before, under the scheduler of 2016, and after, under that
/// of 2018, both on ticks; of the writes and of the reads.
fn figures(compared: &Compared, published: &Published) -> Vec<Figure> {
    let mut figures = Vec::new();
    for (name, unit, _, of) in ROWS {
        let published = published.get(name).copied().unwrap_or_default().map(f64::from);
        let (job, metric) = name.split_once(": ").unwrap_or((name, "throughput"));
        let ours = [("2016", &compared.old), ("2018", &compared.littles_law_on_ticks)];
        for (at, (scheduler, ours)) in ours.into_iter().enumerate() {
            let range = PublishedRange::rounded(published[at]);
            let mut figure = Figure::new(format!("{scheduler}: {name}"), unit, range, of(ours))
                .at(metric, 2 * at + usize::from(job == "reads"), COLUMNS)
                .compared_with("no scheduler", of(&compared.open));
            if at == 1 {
                figure = figure.compared_with("as before", published[0]);
            }
            figures.push(figure);
        }
    }
    figures
}

fn chart(compared: &Compared, published: &Published) -> Chart {
    let points = |figures: &SchedulerResult| {
        let reads = &figures.reads.latency_us;
        let of = [(reads.p50, 50.0), (reads.p95, 95.0), (reads.p99, 99.0), (reads.p999, 99.9)];
        of.map(|(micros, percent)| (micros / 1e3, percent)).to_vec()
    };
    let published = |when: usize| {
        let of = [("95", 95.0), ("99", 99.0), ("99.9", 99.9)];
        let millis = |name: &str| published.get(&format!("reads: p{name}"));
        let point = |(name, percent)| Some((f64::from(millis(name)?[when]), percent));
        of.into_iter().filter_map(point).collect()
    };
    Chart::new(
        "4 KiB reads alongside deep 128 KiB writes",
        "ms",
        "% of the reads took at most that",
    )
    .with("2016, published", Mark::Dashed, published(0))
    .with("2016", Mark::Line, points(&compared.old))
    .with("2018, published", Mark::Dashed, published(1))
    .with("2018: Little's law", Mark::Line, points(&compared.littles_law))
    .with("forebay", Mark::Line, points(&compared.ours))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::seeds;

    fn mean_millis(figures: &SchedulerResult) -> f64 {
        figures.reads.latency_us.mean / 1e3
    }

    fn bandwidth(figures: &SchedulerResult) -> f64 {
        figures.writes.bandwidth_bytes_per_second as f64
    }

    #[test]
    fn reads_wait_eight_milliseconds_then_one_then_less() {
        for seed in seeds() {
            let compared = Compared::measure(seed, &disk(10), 10).unwrap();
            let Compared { old, littles_law, littles_law_on_ticks, ours, ours_on_ticks, .. } =
                &compared;
            // About 8 and about 1: the published figures are whole milliseconds.
            assert!((7.5..8.0).contains(&mean_millis(old)), "{}", mean_millis(old));
            let after = mean_millis(littles_law);
            assert!((0.6..1.1).contains(&after), "{after}");
            // once the disk was slow, what is paced at its rate keeps the window full
            for ours in [ours, ours_on_ticks, littles_law_on_ticks] {
                assert!(mean_millis(ours) < 0.25 * mean_millis(old), "{}", mean_millis(ours));
            }
            for figures in [littles_law, littles_law_on_ticks, ours, ours_on_ticks] {
                let part = bandwidth(figures) / bandwidth(old);
                assert!(part >= 0.995, "{part}");
            }
            for figures in [old, littles_law, ours] {
                let mean = figures.writes.latency_us.mean / 1e3;
                assert!((23.5..24.5).contains(&mean), "{mean}");
            }
            let of_disk = bandwidth(ours) / f64::from(518 << 20);
            assert!(of_disk >= 0.98, "{of_disk}");
        }
    }
}
