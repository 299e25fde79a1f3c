//! Bandwidth and latency of an array as more and more is in flight.

use forebay_core::Policy;
use forebay_report::{Chart, Mark, Table};
use forebay_sim::simulation::SchedulerConfig;
use forebay_sim::spec::DiskSpec;

use crate::articles::y2025;
use crate::articles::y2025::placement::Placement;
use crate::articles::y2025::traced_array::{MEMBERS, TracedArray};
use crate::experiment::{Experiment, Seed, Setting};
use crate::figure::Figure;
use crate::figure::thousands;
use crate::report::Report;
use crate::scenario::{self, job, jobs, millis, pace_window, percent, run as simulate};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "2025-parallelism",
    alias: "S3-12",
    title: "Bandwidth and latency as parallelism grows",
    source: y2025::WITH_ISSUE,
    about: include_str!("about.txt"),
    run,
};

const MEMBER: &str = "nvme-2025";
/// Shards, and fibers of each.
const STEPS: [(u32, u32); 10] =
    [(1, 1), (1, 2), (1, 4), (1, 8), (2, 8), (4, 8), (8, 8), (16, 8), (32, 8), (64, 8)];
/// Requests that begin so far off the physical sectors, as on a filesystem of 1 KiB blocks.
const MISALIGNED: u64 = 1024;

/// How is written: how far off the sectors, and whether without a scheduler.
#[derive(Clone, Copy, Debug)]
struct WriteVariant {
    name: &'static str,
    off: u64,
    is_open: bool,
}

const ALIGNED: WriteVariant = WriteVariant { name: "aligned", off: 0, is_open: true };
const OFF: WriteVariant = WriteVariant { name: "1 KiB off", off: MISALIGNED, is_open: true };
const PACED: WriteVariant = WriteVariant { name: "aligned, pace+window", off: 0, is_open: false };
const VARIANTS: [WriteVariant; 3] = [ALIGNED, OFF, PACED];

/// What was written to, and the GB/s with 8 and with 64 shards.
type Published = Vec<(String, [f64; 2])>;

fn published() -> Result<Published, String> {
    scenario::published(include_str!("published.yaml"))
}

/// Where in [`STEPS`] those two are.
const COMPARED: [usize; 2] = [6, 9];

/// What one run gave.
#[derive(Clone, Copy, Debug)]
struct RunFigures {
    gb_per_second: f64,
    disk_us: f64,
    queue_us: f64,
}

/// A run of so many shards of so many fibers.
fn figures(
    seed: Seed,
    shards: u32,
    fibers: u32,
    variant: WriteVariant,
    millis: u64,
) -> Result<RunFigures, String> {
    let text = format!(
        "- {{name: load, type: append, shards: all,
   shard_info: {{parallelism: {fibers}, reqsize: 128kB}}}}\n"
    );
    let member = DiskSpec::resolve(MEMBER).map_err(|error| error.to_string())?;
    let members = (0..MEMBERS).map(|index| member.build(seed.0 + index as u64)).collect();
    let starts = Placement::Random.starts(seed, shards);
    let starts = starts.into_iter().map(|start| start + variant.off).collect();
    let (array, _) = TracedArray::new(members, starts, 1_000_000)?;
    let array = Box::new(array);
    let policy = if variant.is_open { Policy::Unlimited } else { pace_window(&*array) };
    let mut config = seed.config(jobs(&text, shards)?, array, millis);
    config.scheduler = SchedulerConfig { policy: Some(policy), ..Default::default() };
    let outcome = simulate(config)?;
    let load = job(&outcome, "load")?;
    Ok(RunFigures {
        gb_per_second: load.bandwidth_bytes_per_second as f64 / 1e9,
        disk_us: load.disk_us.mean,
        queue_us: load.queue_us.mean,
    })
}

/// By which part the bandwidth falls from its highest to the last load.
fn drop_of(runs: &[RunFigures]) -> f64 {
    let highest = runs.iter().map(|figures| figures.gb_per_second).fold(0.0, f64::max);
    runs.last().map_or(0.0, |last| 1.0 - last.gb_per_second / highest)
}

fn run(Setting { scale, seed }: Setting) -> Result<Report, String> {
    let measured = scale.seconds(100, 2000);
    let mut report = Report::default();
    report.parameter(
        "disk",
        "RAID0 of 4 presets nvme-2025 (3.22 GB/s each, sectors of 4 KiB: published), chunk 1 MB",
    );
    report.parameter("load", "128 KiB appends, files at random chunks, no scheduler unless said");
    report.parameter("expected", "12.7 GB/s (published)");
    report.parameter("measured", format!("{measured} ms after 100 ms"));
    let all = VARIANTS.map(|variant| {
        STEPS
            .iter()
            .map(|&(shards, fibers)| figures(seed, shards, fibers, variant, measured))
            .collect::<Result<Vec<_>, _>>()
    });
    let [aligned, off, paced] = all;
    let all = [aligned?, off?, paced?];
    let published = published()?;
    report.tables = vec![by_load(&all), beside_published(&all, &published)];
    report.figures = published_figures(&all, &published);
    report.charts = charts(&all, &published);
    Ok(report)
}

/// The raw array and blocks of 4 KiB are aligned, those of 1 KiB are not; with 8 and 64 shards.
fn published_figures(
    [aligned, off, _]: &[Vec<RunFigures>; 3],
    published: &Published,
) -> Vec<Figure> {
    let mut figures = Vec::new();
    for ((name, published), ours) in published.iter().zip([aligned, aligned, off]) {
        for (at, published) in COMPARED.into_iter().zip(published) {
            let (shards, _) = STEPS[at];
            let ours = ours.get(at).map_or(0.0, |run| run.gb_per_second);
            figures.push(Figure::new(format!("{name}, {shards} shards"), "GB/s", *published, ours));
        }
    }
    figures
}

fn by_load([aligned, off, paced]: &[Vec<RunFigures>; 3]) -> Table {
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
    let each = STEPS.iter().zip(aligned).zip(off).zip(paced);
    for ((((shards, fibers), aligned), off), paced) in each {
        table.row([
            format!("{shards} x {fibers}"),
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

fn beside_published(all: &[Vec<RunFigures>; 3], published: &Published) -> Table {
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
        row(format!("ours: {}", variant.name), both, drop_of(figures));
    }
    table
}

fn charts(all: &[Vec<RunFigures>; 3], published: &Published) -> Vec<Chart> {
    let mut of_bandwidth = Chart::new("Bandwidth", "requests in flight", "GB/s");
    let mut of_latency = Chart::new("Mean latency in the disk", "requests in flight", "ms");
    let in_flight = |(shards, fibers): (u32, u32)| f64::from(shards * fibers);
    for (variant, figures) in VARIANTS.iter().zip(all) {
        let points = |figure: fn(&RunFigures) -> f64| {
            STEPS.iter().zip(figures).map(|(&step, run)| (in_flight(step), figure(run))).collect()
        };
        of_bandwidth = of_bandwidth.with(variant.name, Mark::Line, points(|run| run.gb_per_second));
        of_latency = of_latency.with(variant.name, Mark::Line, points(|run| run.disk_us / 1e3));
    }
    for (name, published) in published {
        let points = COMPARED.map(|at| in_flight(STEPS[at])).into_iter().zip(*published);
        of_bandwidth =
            of_bandwidth.with(&format!("published: {name}"), Mark::Dots, points.collect());
    }
    vec![of_bandwidth, of_latency]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::SEED;

    fn at(step: (u32, u32), variant: WriteVariant) -> RunFigures {
        figures(SEED, step.0, step.1, variant, 100).unwrap()
    }

    #[test]
    fn latency_is_level_and_then_grows_with_the_load() {
        let [one, four] = [(1, 1), (1, 4)].map(|step| at(step, OFF));
        assert!(four.gb_per_second > 3.0 * one.gb_per_second, "{one:?} {four:?}");
        assert!(four.disk_us < 1.2 * one.disk_us, "{one:?} {four:?}");
        let [half, full] = [(32, 8), (64, 8)].map(|step| at(step, ALIGNED));
        assert!((full.gb_per_second / half.gb_per_second - 1.0).abs() < 0.01, "{half:?} {full:?}");
        assert!((full.disk_us / half.disk_us - 2.0).abs() < 0.1, "{half:?} {full:?}");
    }

    #[test]
    fn the_raw_array_is_as_published() {
        let [few, many] = [(8, 8), (64, 8)].map(|step| at(step, ALIGNED));
        for (ours, published) in [few, many].iter().zip(published().unwrap()[0].1) {
            assert!((ours.gb_per_second / published - 1.0).abs() < 0.01, "{ours:?} {published}");
        }
        assert!(drop_of(&[few, many]) < 0.01);
    }

    #[test]
    fn parts_of_sectors_cost_bandwidth() {
        let [off, aligned] = [OFF, ALIGNED].map(|variant| at((64, 8), variant).gb_per_second);
        // published is 0.75; what the simulated disk loses is only what it reads and rewrites
        assert!(off < 0.95 * aligned, "{off} {aligned}");
    }

    #[test]
    fn the_scheduler_keeps_the_waiting_out_of_the_disk() {
        let [open, paced] = [ALIGNED, PACED].map(|variant| at((64, 8), variant));
        assert!(paced.disk_us < open.disk_us / 10.0, "{open:?} {paced:?}");
        assert!(paced.gb_per_second > 0.99 * open.gb_per_second, "{open:?} {paced:?}");
    }

    #[test]
    fn a_loss_under_load_is_seen() {
        let run = |gb_per_second| RunFigures { gb_per_second, disk_us: 0.0, queue_us: 0.0 };
        let lost = drop_of(&[run(6.0), run(12.443), run(9.640)]);
        assert!((lost - 0.225).abs() < 0.001, "{lost}");
    }
}
