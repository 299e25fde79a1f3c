//! Bandwidth and latency of an array as more and more is in flight.

use forebay_report::{Chart, Mark, Table};

use crate::articles::y2025;
use crate::articles::y2025::appends::{self, AppendFigures, MISALIGNED, WriteVariant};
use crate::articles::y2025::placement::{ArrayLoad, LOST, Placement};
use crate::experiment::{ArraySetting, Experiment, Seed, Setting, experiment};
use crate::figure::Figure;
use crate::figure::thousands;
use crate::report::Report;
use crate::scenario::{self, millis, percent};

pub(crate) const EXPERIMENT: Experiment = experiment! {
    name: "2025-parallelism",
    alias: "S3-12",
    title: "Bandwidth and latency as parallelism grows",
    source: y2025::WITH_ISSUE,
};

/// Shards, and fibers of each, that are measured unless others are set.
const STEPS: [(u32, u32); 10] =
    [(1, 1), (2, 1), (4, 1), (8, 1), (2, 8), (4, 8), (8, 8), (16, 8), (32, 8), (64, 8)];

const ALIGNED: WriteVariant = WriteVariant { name: "aligned", off: 0, is_open: true };
const OFF: WriteVariant = WriteVariant { name: "1 KiB off", off: MISALIGNED, is_open: true };
const PACED: WriteVariant = WriteVariant { name: "aligned, pace+window", off: 0, is_open: false };
const OFF_PACED: WriteVariant =
    WriteVariant { name: "1 KiB off, pace+window", off: MISALIGNED, is_open: false };
const VARIANTS: [WriteVariant; 4] = [ALIGNED, OFF, PACED, OFF_PACED];

/// What was written to, and the GB/s with 8 and with 64 shards.
type Published = Vec<(String, [f64; 2])>;

fn published() -> Result<Published, String> {
    scenario::published(include_str!("published.yaml"))
}

/// Where in [`STEPS`] those two are.
const COMPARED: [usize; 2] = [6, 9];

/// The loads to measure: those of [`STEPS`], or twice as many shards each time up to the one that is
/// set.
fn loads(setting: ArraySetting) -> Vec<ArrayLoad> {
    let most = ArrayLoad::published(64).with(setting);
    let of = |(shards, fibers)| ArrayLoad { shards, fibers, ..most };
    if (setting.shards, setting.fibers) == (None, None) {
        return STEPS.map(of).to_vec();
    }
    let doubled = (0..).map(|power| 1 << power).take_while(|&shards| shards < most.shards);
    doubled.chain([most.shards]).map(|shards| of((shards, most.fibers))).collect()
}

fn figures(
    seed: Seed,
    load: ArrayLoad,
    variant: WriteVariant,
    millis: u64,
) -> Result<AppendFigures, String> {
    let starts = Placement::Random.starts(seed, load);
    let starts = starts.into_iter().map(|start| start + variant.off).collect();
    appends::append(seed, load, starts, variant.is_open, millis)
}

/// The run with the highest bandwidth, and the part of that which the last one loses.
fn drop_of(runs: &[AppendFigures]) -> (usize, f64) {
    let rate = |at: usize| runs.get(at).map_or(0.0, |run| run.gb_per_second);
    let first_highest = |a: &usize, b: &usize| rate(*a).total_cmp(&rate(*b)).then(b.cmp(a));
    let highest = (0..runs.len()).max_by(first_highest).unwrap_or(0);
    (highest, 1.0 - rate(runs.len().saturating_sub(1)) / rate(highest).max(f64::MIN_POSITIVE))
}

fn run(Setting { scale, seed, array }: Setting) -> Result<Report, String> {
    let measured = scale.seconds(100, 2000);
    let loads = loads(array);
    let mut report = Report::default();
    report.parameter("disk", appends::array(ArrayLoad::published(64).with(array)));
    report.parameter("load", "128 KiB appends, files at random chunks, no scheduler unless said");
    report.parameter("measured", format!("{measured} ms after 100 ms"));
    let all = VARIANTS.map(|variant| {
        let of = |&load| figures(seed, load, variant, measured);
        loads.iter().map(of).collect::<Result<Vec<_>, _>>()
    });
    let [aligned, off, paced, off_paced] = all;
    let all = [aligned?, off?, paced?, off_paced?];
    let published = if array == ArraySetting::default() { published()? } else { Vec::new() };
    report.tables = vec![by_load(&loads, &all)];
    if !published.is_empty() {
        report.parameter("expected", "12.7 GB/s (published)");
        report.tables.push(comparison_with_published(&all, &published));
        report.figures = published_figures(&all, &published);
    }
    report.findings =
        VARIANTS.iter().zip(&all).map(|(variant, runs)| finding(*variant, &loads, runs)).collect();
    report.charts = charts(&loads, &all, &published);
    Ok(report)
}

/// Whether more load means less bandwidth.
fn finding(variant: WriteVariant, loads: &[ArrayLoad], runs: &[AppendFigures]) -> String {
    let (highest, lost) = drop_of(runs);
    let at = |at: usize| {
        let in_flight = loads.get(at).map_or(0, |load| load.shards * load.fibers);
        let rate = runs.get(at).map_or(0.0, |run| run.gb_per_second);
        format!("{rate:.2} GB/s with {in_flight} requests in flight")
    };
    let last = at(runs.len().saturating_sub(1));
    let name = variant.name;
    if lost < LOST {
        return format!("{name}: bandwidth does not fall as load grows; {last}.");
    }
    let (highest, lost) = (at(highest), percent(lost));
    format!("{name}: bandwidth falls as load grows, from {highest} to {last}: {lost} less.")
}

/// The raw array and blocks of 4 KiB are aligned, those of 1 KiB are not; with 8 and 64 shards.
fn published_figures(
    [aligned, off, ..]: &[Vec<AppendFigures>; 4],
    published: &Published,
) -> Vec<Figure> {
    let mut figures = Vec::new();
    for ((name, published), ours) in published.iter().zip([aligned, aligned, off]) {
        for (at, published) in COMPARED.into_iter().zip(published) {
            let (shards, _) = STEPS[at];
            let ours = ours.get(at).map_or(0.0, |run| run.gb_per_second);
            let figure = Figure::new(format!("{name}, {shards} shards"), "GB/s", *published, ours);
            figures.push(figure.compared_with("four times one disk", 4.0 * 3.22));
        }
    }
    figures
}

fn by_load(loads: &[ArrayLoad], [aligned, off, paced, _]: &[Vec<AppendFigures>; 4]) -> Table {
    let mut table = Table::new(
        "GB/s and mean latency",
        &[
            "shards x fibers",
            ALIGNED.name,
            "in disk",
            OFF.name,
            "in disk",
            "pace+window",
            "in disk",
            "in queue",
        ],
    );
    let each = loads.iter().zip(aligned).zip(off).zip(paced);
    for (((load, aligned), off), paced) in each {
        table.row([
            format!("{} x {}", load.shards, load.fibers),
            format!("{:.2}", aligned.gb_per_second),
            millis(aligned.disk_us),
            format!("{:.2}", off.gb_per_second),
            millis(off.disk_us),
            format!("{:.2}", paced.gb_per_second),
            millis(paced.disk_us),
            millis(paced.queue_us),
        ]);
    }
    table
}

fn comparison_with_published(all: &[Vec<AppendFigures>; 4], published: &Published) -> Table {
    let mut table = Table::new(
        "MB/s with 8 and with 64 shards, and whether more load means less bandwidth",
        &["", "8 shards", "64 shards", "lost under load"],
    );
    let mut row = |name: String, [few, many]: [f64; 2], lost: f64| {
        table.row([name, thousands(few * 1e3), thousands(many * 1e3), percent(lost.max(0.0))]);
    };
    for &(ref name, [few, many]) in published {
        row(format!("published: {name}"), [few, many], 1.0 - many / few);
    }
    for (variant, figures) in VARIANTS.iter().zip(all) {
        let both = COMPARED.map(|at| figures.get(at).map_or(0.0, |step| step.gb_per_second));
        row(format!("ours: {}", variant.name), both, drop_of(figures).1);
    }
    table
}

fn charts(loads: &[ArrayLoad], all: &[Vec<AppendFigures>; 4], published: &Published) -> Vec<Chart> {
    let mut of_bandwidth = Chart::new("Bandwidth", "requests in flight", "GB/s");
    let mut of_latency = Chart::new("Mean latency in the disk", "requests in flight", "ms");
    let in_flight = |load: &ArrayLoad| f64::from(load.shards * load.fibers);
    for (variant, figures) in VARIANTS.iter().zip(all) {
        let points = |figure: fn(&AppendFigures) -> f64| {
            loads.iter().zip(figures).map(|(load, run)| (in_flight(load), figure(run))).collect()
        };
        of_bandwidth = of_bandwidth.with(variant.name, Mark::Line, points(|run| run.gb_per_second));
        of_latency = of_latency.with(variant.name, Mark::Line, points(|run| run.disk_us / 1e3));
    }
    for (name, published) in published {
        let compared = COMPARED.iter().filter_map(|&at| loads.get(at));
        let points = compared.map(in_flight).zip(*published);
        of_bandwidth =
            of_bandwidth.with(&format!("published: {name}"), Mark::Dots, points.collect());
    }
    vec![of_bandwidth, of_latency]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::seeds;

    fn at(seed: Seed, (shards, fibers): (u32, u32), variant: WriteVariant) -> AppendFigures {
        let load = ArrayLoad { fibers, ..ArrayLoad::published(shards) };
        figures(seed, load, variant, 100).unwrap()
    }

    #[test]
    fn latency_is_level_and_then_grows_with_the_load() {
        for seed in seeds() {
            // where two files are on two members
            let alone = |shards| {
                let load = ArrayLoad { fibers: 1, ..ArrayLoad::published(shards) };
                let starts = Placement::InTurn.starts(seed, load);
                appends::append(seed, load, starts, true, 100).unwrap()
            };
            let [one, two] = [1, 2].map(alone);
            let [half, full] = [(32, 8), (64, 8)].map(|step| at(seed, step, ALIGNED));
            assert!(two.gb_per_second > 1.99 * one.gb_per_second, "{one:?} {two:?}");
            assert!(two.disk_us < 1.01 * one.disk_us, "{one:?} {two:?}");
            let gained = full.gb_per_second / half.gb_per_second - 1.0;
            assert!(gained.abs() < 0.001, "{half:?} {full:?}");
            assert!((full.disk_us / half.disk_us - 2.0).abs() < 0.03, "{half:?} {full:?}");
        }
    }

    #[test]
    fn the_raw_array_is_as_published() {
        for seed in seeds() {
            let both = [(8, 8), (64, 8)].map(|step| at(seed, step, ALIGNED));
            for (ours, published) in both.iter().zip(published().unwrap()[0].1) {
                let off = (ours.gb_per_second / published - 1.0).abs();
                assert!(off < 0.005, "{ours:?} {published}");
            }
            assert!(drop_of(&both).1 < 0.001);
        }
    }

    #[test]
    fn parts_of_sectors_cost_bandwidth_once_much_is_in_flight() {
        let published = published().unwrap()[2].1;
        for seed in seeds() {
            let [few, many] = COMPARED.map(|step| at(seed, STEPS[step], OFF).gb_per_second);
            // published is a loss of 3 % already, where here all parts meet in the buffer
            assert!((1.0..1.05).contains(&(few / published[0])), "{few}");
            assert!((many / published[1] - 1.0).abs() < 0.18, "{many}");
        }
    }

    #[test]
    fn the_scheduler_keeps_the_waiting_out_of_the_disk() {
        for seed in seeds() {
            let [open, paced] = [ALIGNED, PACED].map(|variant| at(seed, (64, 8), variant));
            assert!(paced.disk_us < open.disk_us / 50.0, "{open:?} {paced:?}");
            assert!(paced.gb_per_second > 0.995 * open.gb_per_second, "{open:?} {paced:?}");
        }
    }

    #[test]
    fn a_loss_under_load_is_seen() {
        let run = |gb_per_second| AppendFigures { gb_per_second, disk_us: 0.0, queue_us: 0.0 };
        let (highest, lost) = drop_of(&[run(6.0), run(12.443), run(9.640)]);
        assert!(highest == 1 && (lost - 0.225).abs() < 0.001, "{highest} {lost}");
    }

    #[test]
    fn loads_that_are_set_double_up_to_the_most_shards() {
        let set = ArraySetting { shards: Some(12), fibers: Some(3), ..ArraySetting::default() };
        let loads: Vec<_> = loads(set).iter().map(|load| (load.shards, load.fibers)).collect();
        assert_eq!(loads, [(1, 3), (2, 3), (4, 3), (8, 3), (12, 3)]);
    }

    #[test]
    fn an_array_that_is_set_is_not_compared_with_the_published_one() {
        let set = ArraySetting { members: Some(2), fibers: Some(8), ..ArraySetting::default() };
        let setting = Setting { scale: crate::Scale::Short, seed: Seed(1), array: set };
        let report = EXPERIMENT.repeat(setting).unwrap();
        assert!(report.figures.is_empty());
        let falls = "1 KiB off: bandwidth falls as load grows, from 6.44 GB/s with ";
        assert!(report.findings[1].starts_with(falls), "{:?}", report.findings);
        assert!(report.findings[0].contains("does not fall"), "{:?}", report.findings);
    }
}
