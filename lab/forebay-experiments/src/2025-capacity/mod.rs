//! Commitlog, memtable and compaction together against the capacity of the array.

use forebay_core::{Policy, Time};
use forebay_report::{Chart, Mark, Table};
use forebay_sim::simulation::{Outcome, Period, Sample, SchedulerConfig};

use crate::articles::y2025;
use crate::articles::y2025::appends::{MISALIGNED, WriteVariant};
use crate::articles::y2025::placement::{ArrayLoad, Placement};
use crate::articles::y2025::traced_array::{CHUNK, MEMBERS, TracedArray};
use crate::experiment::{Experiment, Seed, Setting, experiment};
use crate::figure::Figure;
use crate::report::Report;
use crate::scenario::{jobs, pace_window, percent, run as simulate};

pub(crate) const EXPERIMENT: Experiment = experiment! {
    name: "2025-capacity",
    alias: "S3-4",
    title: "Throughput of the classes against the configured capacity",
    source: y2025::SOURCE,
};

const MEMBER: &str = include_str!("disk.yaml");
const CAPACITY_GB: f64 = 14.5;
const SHARDS: u32 = 16;
const SLICES: usize = 150;
const JOBS: &str = include_str!("load.yaml");
const CLASSES: [&str; 3] = ["commitlog", "memtable", "compaction"];

const VARIANTS: [WriteVariant; 3] = [
    WriteVariant { name: "no scheduler", off: 0, is_open: true },
    WriteVariant { name: "pace+window", off: 0, is_open: false },
    WriteVariant { name: "pace+window, 1 KiB off", off: MISALIGNED, is_open: false },
];

fn outcome(seed: Seed, variant: WriteVariant, half_seconds: u64) -> Result<Outcome, String> {
    let members = (0..MEMBERS).map(|_| seed.disk(MEMBER)).collect::<Result<Vec<_>, _>>()?;
    let starts = Placement::Random.starts(seed, ArrayLoad::published(3 * SHARDS));
    let starts = starts.into_iter().map(|start| start + variant.off).collect();
    let (array, _) = TracedArray::new(CHUNK, members, starts, 1_000_000)?;
    let array = Box::new(array);
    let policy = if variant.is_open { Policy::Unlimited } else { pace_window(&*array) };
    let mut config = seed.config(jobs(JOBS, SHARDS)?, array, 2 * half_seconds * 1000);
    config.scheduler = SchedulerConfig { policy: Some(policy), ..SchedulerConfig::by_figures() };
    let to = Some(Time::from_nanos(half_seconds * 1_000_000_000 + 100_000_000));
    let period = |job: &str| Period { job: job.to_owned(), from: Time::ZERO, to };
    config.schedule = vec![period("commitlog"), period("memtable")];
    config.trace_buckets = Some(SLICES);
    simulate(config)
}

/// GB/s of each class in each slice, by the index of the class.
fn throughput(outcome: &Outcome) -> Result<(f64, Vec<Vec<f64>>), String> {
    let trace = outcome.trace.as_ref().ok_or("the run was not traced")?;
    let seconds = trace.slice_nanos as f64 / 1e9;
    let rate = |sample: &Sample| sample.bytes as f64 / 1e9 / seconds;
    let classes = trace.classes.iter().map(|class| class.samples.iter().map(rate).collect());
    Ok((seconds, classes.collect()))
}

/// Slices of the first half and of the second, without the change between them.
const WITH_OTHERS: (usize, usize) = (15, 70);
const ALONE: (usize, usize) = (90, 145);

/// What one variant gave, in GB/s.
struct ClassBandwidths {
    others: f64,
    compaction: f64,
    /// The least sum of all classes in any slice.
    least: f64,
    compaction_alone: f64,
}

fn figures(classes: &[Vec<f64>]) -> ClassBandwidths {
    let slices = |rates: &[f64], (from, to): (usize, usize)| {
        rates.get(from..to).unwrap_or_default().to_vec()
    };
    let mean = |rates: &[f64], span| {
        let rates = slices(rates, span);
        rates.iter().sum::<f64>() / rates.len().max(1) as f64
    };
    let means = |span| classes.iter().map(|rates| mean(rates, span)).collect::<Vec<f64>>();
    let (with, alone) = (means(WITH_OTHERS), means(ALONE));
    let of = |means: &[f64], class: usize| means.get(class).copied().unwrap_or_default();
    ClassBandwidths {
        others: of(&with, 0) + of(&with, 1),
        compaction: of(&with, 2),
        least: slices(&sum(classes), WITH_OTHERS).into_iter().fold(f64::INFINITY, f64::min),
        compaction_alone: of(&alone, 2),
    }
}

/// The sum of all classes in each slice.
fn sum(classes: &[Vec<f64>]) -> Vec<f64> {
    let of = |at: usize| classes.iter().filter_map(|rates| rates.get(at)).sum();
    (0..SLICES).map(of).collect()
}

fn run(Setting { scale, seed, .. }: Setting) -> Result<Report, String> {
    let half_seconds = scale.seconds(1, 20);
    let mut report = Report::default();
    report.parameter(
        "disk",
        "RAID0 of 4, chunk 1 MB: preset nvme-2025 with 3.625 GB/s each (14.5 GB/s: published)",
    );
    report.parameter(
        "load",
        "16 shards, 128 KiB writes: commitlog and memtable 4.5 GB/s together (published), \
         compaction 64 deep per shard; files at random chunks",
    );
    report.parameter("shares", "commitlog 1000, memtable 1000, compaction 100");
    report.parameter(
        "measured",
        format!("{half_seconds} s with all classes, {half_seconds} s with compaction alone"),
    );
    let mut table = Table::new(
        "GB/s",
        &["", "commitlog + memtable", "compaction", "sum", "of capacity", "least", "then alone"],
    );
    let published = ["published, overloaded", "-", "-", "12.5", "86 %", "-", "-"];
    table.row(published.map(str::to_owned));
    let published = ["published, in the end", "4.5", "10", "14.5", "100 %", "-", "14.5"];
    table.row(published.map(str::to_owned));
    let mut all = Vec::new();
    for variant in VARIANTS {
        let (slice_seconds, classes) = throughput(&outcome(seed, variant, half_seconds)?)?;
        let figures = figures(&classes);
        let sum = figures.others + figures.compaction;
        table.row([
            variant.name.to_owned(),
            format!("{:.1}", figures.others),
            format!("{:.1}", figures.compaction),
            format!("{sum:.1}"),
            percent(sum / CAPACITY_GB),
            format!("{:.1}", figures.least),
            format!("{:.1}", figures.compaction_alone),
        ]);
        all.push(figures);
        report.charts.push(chart(variant.name, slice_seconds, &classes));
    }
    report.tables.push(table);
    if let [open, aligned, off] = &all[..] {
        report.figures = published_figures(open, aligned, off);
    }
    Ok(report)
}

/// Of writes to whole sectors, as in the end, and of such that are off, as before.
fn published_figures(
    open: &ClassBandwidths,
    aligned: &ClassBandwidths,
    off: &ClassBandwidths,
) -> Vec<Figure> {
    let none = "no scheduler";
    let of_all = |figures: &ClassBandwidths| figures.others + figures.compaction;
    let lost = |of_capacity: f64| (1.0 - of_capacity / CAPACITY_GB) * 100.0;
    vec![
        Figure::new("commitlog and memtable", "GB/s", 4.5, aligned.others)
            .compared_with(none, open.others)
            .compared_with("the rate offered", 4.5),
        Figure::new("compaction alongside them", "GB/s", 10.0, aligned.compaction)
            .compared_with(none, open.compaction),
        Figure::new("all", "GB/s", CAPACITY_GB, of_all(aligned)),
        Figure::new("compaction alone", "GB/s", CAPACITY_GB, aligned.compaction_alone)
            .compared_with(none, open.compaction_alone),
        Figure::new("lost to misalignment", "%", lost(12.5), lost(of_all(off)))
            .compared_with("as when aligned", lost(of_all(aligned))),
    ]
}

fn chart(name: &str, seconds: f64, classes: &[Vec<f64>]) -> Chart {
    let over_time = |rates: &[f64]| {
        rates.iter().enumerate().map(|(at, &rate)| (at as f64 * seconds, rate)).collect()
    };
    let mut chart = Chart::new(&format!("Throughput of the classes, {name}"), "s", "GB/s");
    for (class, rates) in CLASSES.iter().zip(classes) {
        chart = chart.with(class, Mark::Line, over_time(rates));
    }
    let end = SLICES as f64 * seconds;
    chart.with("sum", Mark::Line, over_time(&sum(classes))).with(
        "configured",
        Mark::Dashed,
        vec![(0.0, CAPACITY_GB), (end, CAPACITY_GB)],
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Seed;
    use crate::tests::seeds;

    fn at(seed: Seed, variant: usize) -> ClassBandwidths {
        figures(&throughput(&outcome(seed, VARIANTS[variant], 1).unwrap()).unwrap().1)
    }

    #[test]
    fn the_classes_use_the_capacity_and_compaction_what_is_left() {
        for seed in seeds() {
            let ClassBandwidths { others, compaction, least, compaction_alone } = at(seed, 1);
            assert!(least > 0.97 * CAPACITY_GB, "{least}");
            assert!((others / 4.5 - 1.0).abs() < 0.02, "{others}");
            assert!((compaction / 10.0 - 1.0).abs() < 0.01, "{compaction}");
            assert!(compaction_alone > 0.995 * CAPACITY_GB, "{compaction_alone}");
        }
    }

    #[test]
    fn without_a_scheduler_compaction_takes_from_the_others() {
        for seed in seeds() {
            let part = at(seed, 0).others / 4.5;
            assert!((0.75..0.78).contains(&part), "{part}");
        }
    }

    #[test]
    fn parts_of_sectors_take_capacity_away() {
        for seed in seeds() {
            let figures = at(seed, 2);
            let sum = figures.others + figures.compaction;
            // published are 86 %; the simulated members lose only what they read and rewrite
            assert!((0.93..0.945).contains(&(sum / CAPACITY_GB)), "{sum}");
        }
    }
}
