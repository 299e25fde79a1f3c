//! Latency in the queue and in the disk.

use std::sync::Arc;

use forebay_load::recorder::Latencies;
use forebay_report::{Chart, Mark, Table};
use forebay_sim::simulation::Outcome;

use crate::articles::y2022;
use crate::articles::y2022::phases::{
    self, Disk, INGESTED, NO_SCHEDULER, SCHEDULERS, SchedulerVariant, class, over_time, report,
    seconds,
};
use crate::experiment::{Experiment, Setting, experiment};
use crate::figure::Figure;
use crate::figure::thousands;
use crate::report::Report;
use crate::scenario::{millis, percent};

pub(crate) const EXPERIMENT: Experiment = experiment! {
    name: "2022-latency",
    alias: "S2-13",
    title: "Latency in the queue and in the disk",
    source: y2022::SOURCE,
};

/// Published by scheduler: the mean in the disk of ingestion, and of queries.
const PUBLISHED: [[&str; 5]; 2] = [
    ["1.45 ms (4.6)", "0.44 ms (5.0)", "-", "-", "-"],
    ["100 % (4.6)", "about 50 % (5.0)", "-", "-", "-"],
];
/// Of the schedulers those that are drawn.
const DRAWN: [usize; 3] = [0, 2, 4];

/// One of the two loads of the article.
#[derive(Clone, Copy)]
enum Load {
    Ingestion,
    Queries,
}

impl Load {
    fn name(self) -> &'static str {
        match self {
            Self::Ingestion => "ingestion, all",
            Self::Queries => "queries",
        }
    }

    /// The classes with reported latencies, and the one that is drawn.
    fn classes(self) -> (&'static [&'static str], &'static str) {
        match self {
            Self::Ingestion => (&INGESTED, "memtable"),
            Self::Queries => (&["query"], "query"),
        }
    }

    fn run(
        self,
        disk: &Disk,
        scheduler: &SchedulerVariant,
        setting: Setting,
    ) -> Result<Arc<Outcome>, String> {
        let Setting { scale, seed, .. } = setting;
        let (run_seconds, phase_seconds) = seconds(scale);
        match self {
            Self::Ingestion => phases::ingestion(seed, disk, scheduler, run_seconds),
            Self::Queries => phases::queries(seed, disk, scheduler, phase_seconds),
        }
    }
}

/// Latencies of some classes together.
struct ClassLatencies {
    disk: Latencies,
    queue: Latencies,
}

fn latencies_of(outcome: &Outcome, classes: &[&str]) -> Result<ClassLatencies, String> {
    let latencies = || Latencies::new().map_err(|error| error.to_string());
    let mut all = ClassLatencies { disk: latencies()?, queue: latencies()? };
    for name in classes {
        let class = class(outcome, name)?;
        all.disk.merge(&class.disk);
        all.queue.merge(&class.queue);
    }
    Ok(all)
}

fn run(setting: Setting) -> Result<Report, String> {
    let mut report = report(setting.scale);
    let mut table = Table::new(
        "Mean latency",
        &["load", "disk", "scheduler", "published in disk", "in disk", "p99", "in queue", "p99"],
    );
    let disks = Disk::both()?;
    for (load, published) in [Load::Ingestion, Load::Queries].into_iter().zip(PUBLISHED) {
        for disk in &disks {
            let title = format!("Latency of {}, disk {}", load.name(), disk.name);
            let mut chart = Chart::new(&title, "s", "ms");
            let (classes, drawn) = load.classes();
            for (at, (scheduler, published)) in SCHEDULERS.iter().zip(published).enumerate() {
                let outcome = load.run(disk, scheduler, setting)?;
                let names = [load.name(), disk.name, scheduler.name, published];
                let latencies = latencies_of(&outcome, classes)?;
                table.row(row(names, &latencies));
                if DRAWN.contains(&at) {
                    chart = with_both(chart, scheduler.name, &outcome, drawn)?;
                }
            }
            report.charts.push(chart);
        }
    }
    report.figures = figures(setting)?;
    report.tables.push(table);
    let (table, chart, held) = sweep(&disks[1], setting)?;
    report.figures.extend(held);
    report.tables.push(table);
    report.charts.push(chart);
    Ok(report)
}

/// The means in the disk of 4.6 and 5.0, in milliseconds, where it carries the old peak: alongside
/// those without a scheduler, and alongside no change.
fn figures(setting: Setting) -> Result<Vec<Figure>, String> {
    let disk = Disk::peak()?;
    let means = |load: Load| {
        let mean = |scheduler| {
            let outcome = load.run(&disk, scheduler, setting)?;
            let latencies = latencies_of(&outcome, load.classes().0)?;
            Ok::<_, String>(latencies.disk.mean_ns() / 1e6)
        };
        Ok::<_, String>([mean(&SCHEDULERS[0])?, mean(&SCHEDULERS[1])?, mean(&NO_SCHEDULER)?])
    };
    let [old, new, open] = means(Load::Ingestion)?;
    let [queries_old, queries_new, _] = means(Load::Queries)?;
    let (none, no_change) = ("no scheduler", "no change");
    Ok(vec![
        Figure::new("ingestion, 4.6: mean in the disk", "ms", 1.45, old).compared_with(none, open),
        Figure::new("ingestion, 5.0: mean in the disk", "ms", 0.443, new)
            .compared_with(none, open)
            .compared_with(no_change, 1.45),
        Figure::new("ingestion, 5.0 of 4.6", "%", 44.3 / 1.45, new / old * 100.0)
            .compared_with(no_change, 100.0),
        Figure::new("queries, 5.0 of 4.6", "%", 50.0, queries_new / queries_old * 100.0)
            .compared_with(no_change, 100.0),
    ])
}

/// The percentage by which the rates for pace and window are lower.
const LOWER: [i64; 6] = [0, 10, 20, 30, 40, 50];
/// Latency targets in the disk: one of reads, and some of writes.
const TARGETS: [&str; 5] = [
    "disk:p95=1ms",
    "disk:writes:p95=2ms",
    "disk:writes:p95=1ms",
    "disk:writes:p95=750us",
    "disk:writes:p95=500us",
];
/// What reads keep in the regions that are tried.
const REGION_GOALS: [&str; 5] = ["p95=1ms", "p95=2ms", "p95=2500us", "p95=3ms", "p95=4ms"];
/// Of the targets the one that leaves about the published latency.
const PUBLISHED_LEFT: usize = 2;
/// Published: MB/s and the mean in the disk, before and after.
const PUBLISHED_TRADE: [(f64, f64); 2] = [(800.0, 1.45), (710.0, 0.44)];

/// MB/s of all ingestion, and its mean in the disk in milliseconds.
fn trade(
    disk: &Disk,
    scheduler: &SchedulerVariant,
    setting: Setting,
) -> Result<(f64, f64), String> {
    let outcome = Load::Ingestion.run(disk, scheduler, setting)?;
    let classes = outcome.result.classes.iter();
    let bytes: u64 = classes.map(|class| class.bandwidth_bytes_per_second).sum();
    let mean_ns = latencies_of(&outcome, &INGESTED)?.disk.mean_ns();
    Ok((bytes as f64 / 1e6, mean_ns / 1e6))
}

/// What latency in the disk costs in throughput, all steps that were tried.
fn sweep(disk: &Disk, setting: Setting) -> Result<(Table, Chart, [Figure; 2]), String> {
    let title = format!("Ingestion, disk {}: throughput against latency", disk.name);
    let mut table =
        Table::new(&title, &["scheduler", "MB/s", "less than 2018", "in disk", "of 2018"]);
    let old = trade(disk, &SCHEDULERS[0], setting)?;
    let mut row = |name: String, (old, new): ((f64, f64), (f64, f64))| {
        let (lost, left) = (percent(1.0 - new.0 / old.0), percent(new.1 / old.1));
        table.row([name, thousands(new.0), lost, millis(new.1 * 1e3), left]);
    };
    row("published: 4.6 to 5.0".to_owned(), (PUBLISHED_TRADE[0], PUBLISHED_TRADE[1]));
    row(SCHEDULERS[0].name.to_owned(), (old, old));
    let mut tried = |variants: Vec<(String, SchedulerVariant)>| {
        let each = variants.into_iter().map(|(name, scheduler)| {
            let new = trade(disk, &scheduler, setting)?;
            row(format!("pace+window, {name}"), (old, new));
            Ok(new)
        });
        each.collect::<Result<Vec<_>, String>>()
    };
    let lower = LOWER.map(|percent| (format!("rates -{percent} %"), phases::lower(percent)));
    let points = tried(lower.to_vec())?;
    let held = tried(targets()?)?;
    let regions = REGION_GOALS.map(|goal| (format!("region {goal}"), phases::in_region(goal)));
    let priced = tried(regions.to_vec())?;
    let figures = held_figures(old, held[PUBLISHED_LEFT]);
    let chart = Chart::new(&title, "MB/s", "mean in the disk, ms")
        .with("published", Mark::Dots, PUBLISHED_TRADE.to_vec())
        .with(SCHEDULERS[0].name, Mark::Dots, vec![old])
        .with("pace+window, rates 0 to 50 % lower", Mark::Line, points)
        .with("pace+window, latency targets", Mark::Dots, held)
        .with("pace+window, regions", Mark::Dots, priced);
    Ok((table, chart, figures))
}

fn targets() -> Result<Vec<(String, SchedulerVariant)>, String> {
    let target = |target: &str| {
        let parsed = target.parse().map_err(|error| format!("{target}: {error}"))?;
        Ok((format!("target {target}"), phases::held(parsed)))
    };
    TARGETS.into_iter().map(target).collect()
}

/// What forebay leaves in the disk, and gives up for it, where a target holds it.
fn held_figures(old: (f64, f64), held: (f64, f64)) -> [Figure; 2] {
    let [before, after] = PUBLISHED_TRADE;
    let lost = |before: f64, after: f64| (1.0 - after / before) * 100.0;
    let name = |what: &str| format!("forebay, {}: {what}", TARGETS[PUBLISHED_LEFT]);
    [
        // the target was chosen by it
        Figure::new(name("mean in the disk"), "ms", ..=after.1, held.1)
            .compared_with("no change", before.1),
        Figure::new(
            name("throughput given up"),
            "%",
            ..=lost(before.0, after.0),
            lost(old.0, held.0),
        )
        .compared_with("nothing given up", 0.0),
    ]
}

/// The chart with the mean latencies of a class in the disk and in the queue.
fn with_both(chart: Chart, name: &str, outcome: &Outcome, class: &str) -> Result<Chart, String> {
    let disk = over_time(outcome, class, |sample, _| sample.disk.mean / 1e6)?;
    let queue = over_time(outcome, class, |sample, _| sample.queue.mean / 1e6)?;
    let chart = chart.with(&format!("{name}: disk"), Mark::Line, disk);
    Ok(chart.with(&format!("{name}: queue"), Mark::Dashed, queue))
}

fn row(names: [&str; 4], figures: &ClassLatencies) -> [String; 8] {
    let ClassLatencies { disk, queue } = figures;
    let mean = |latencies: &Latencies| millis(latencies.mean_ns() / 1e3);
    let p99 = |latencies: &Latencies| millis(latencies.quantile_ns(0.99) as f64 / 1e3);
    let [load, on, scheduler, published] = names.map(str::to_owned);
    [load, on, scheduler, published, mean(disk), p99(disk), mean(queue), p99(queue)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::{ArraySetting, Scale, Seed};
    use crate::tests::seeds;

    fn short(seed: Seed) -> Setting {
        Setting { scale: Scale::Short, seed, array: ArraySetting::default() }
    }

    /// The mean in the disk by scheduler, in milliseconds.
    fn in_disk(seed: Seed, load: Load, disk: &Disk) -> [f64; 5] {
        [0, 1, 2, 3, 4].map(|scheduler| {
            let outcome = load.run(disk, &SCHEDULERS[scheduler], short(seed)).unwrap();
            latencies_of(&outcome, load.classes().0).unwrap().disk.mean_ns() / 1e6
        })
    }

    #[test]
    fn on_the_line_only_what_is_paced_below_the_disk_waits_as_published() {
        for seed in seeds() {
            let [little, bucket, paced, summed, lower] =
                in_disk(seed, Load::Ingestion, &Disk::line().unwrap());
            assert!((0.78..0.83).contains(&little), "{little}");
            assert!(bucket < 0.25, "{bucket}");
            assert!(summed < 0.25 && lower < 0.22, "{summed} {lower}");
            // the target is 0.44 ms: paced at exactly the disk's rate, a standing queue stays
            assert!((0.75..0.85).contains(&paced), "{paced}");
        }
    }

    #[test]
    fn on_the_measured_surface_latency_falls_less_than_published() {
        for seed in seeds() {
            let disk = Disk::surface().unwrap();
            let [little, _, paced, _, lower] = in_disk(seed, Load::Ingestion, &disk);
            assert!((0.92..0.98).contains(&little), "{little}");
            // the target is 0.44 ms at 11 % less throughput: at that loss the window still fills at
            // times, since the line misprices this mix
            assert!(lower < 0.85, "{lower}");
            // the target is 0.44 ms, or at least less than in 2018: the window holds two goals, and
            // the line allows more than this disk carries
            assert!(paced < 1.8, "{paced}");
        }
    }

    #[test]
    fn the_published_latency_costs_more_throughput_than_published() {
        for seed in seeds() {
            let disk = Disk::surface().unwrap();
            let old = trade(&disk, &SCHEDULERS[0], short(seed)).unwrap();
            let [fifth, two_fifths] =
                [20, 40].map(|percent| trade(&disk, &phases::lower(percent), short(seed)).unwrap());
            assert!((0.08..0.108).contains(&(1.0 - fifth.0 / old.0)), "{old:?} {fifth:?}");
            assert!(two_fifths.1 < 0.38, "{two_fifths:?}");
            // the target is a loss of 11 %
            assert!(two_fifths.0 > 0.66 * old.0, "{old:?} {two_fifths:?}");
        }
    }

    #[test]
    fn a_latency_target_leaves_the_published_latency_in_the_disk() {
        for seed in seeds() {
            let disk = Disk::surface().unwrap();
            let old = trade(&disk, &SCHEDULERS[0], short(seed)).unwrap();
            for (target, most, most_lost) in
                [("disk:p95=1ms", 0.66, 0.25), ("disk:writes:p95=1ms", 0.65, 0.14)]
            {
                let new =
                    trade(&disk, &phases::held(target.parse().unwrap()), short(seed)).unwrap();
                assert!(new.1 <= most, "{target}: {new:?}");
                // the target is a loss of 11 %
                assert!(new.0 > (1.0 - most_lost) * old.0, "{target}: {old:?} {new:?}");
            }
        }
    }

    #[test]
    fn a_region_leaves_less_than_published_in_the_disk_for_a_third_of_the_throughput() {
        for seed in seeds() {
            let disk = Disk::surface().unwrap();
            let old = trade(&disk, &SCHEDULERS[0], short(seed)).unwrap();
            let new = trade(&disk, &phases::in_region("p95=2ms"), short(seed)).unwrap();
            assert!(new.1 < 0.39, "{new:?}");
            assert!((0.29..0.33).contains(&(1.0 - new.0 / old.0)), "{old:?} {new:?}");
        }
    }

    #[test]
    fn queries_wait_half_as_long_in_the_disk() {
        for seed in seeds() {
            let [little, _, paced, summed, lower] =
                in_disk(seed, Load::Queries, &Disk::line().unwrap());
            assert!(paced < 0.36 * little, "{paced} {little}");
            assert!(summed < 0.2 * little && lower < 0.2 * little, "{summed} {lower} {little}");
        }
    }
}
