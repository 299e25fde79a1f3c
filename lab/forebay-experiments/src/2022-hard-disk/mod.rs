//! How many reads a hard disk still serves beside a stream of writes.

use forebay_core::Policy;
use forebay_report::{Chart, Mark, Table};
use forebay_sim::simulation::SchedulerConfig;
use forebay_sim::spec::DiskSpec;

use crate::articles::y2022;
use crate::articles::y2022::preset;
use crate::experiment::{Experiment, Seed, Setting};
use crate::figure::Figure;
use crate::figure::thousands;
use crate::report::Report;
use crate::scenario::{self, job, jobs, model, pace_window, run as simulate};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "2022-hard-disk",
    alias: "S2-4",
    title: "A hard disk: a straight line, then no reads at all",
    source: y2022::SOURCE,
    about: include_str!("about.txt"),
    run,
};

/// The preset of a head and a platter.
const MECHANICS: &str = "hdd-7200rpm";
/// The preset that is fitted to the published surface.
const SURFACE: &str = "hdd-toshiba-DT01ACA200";
/// Points of a published curve.
type Points = Vec<(f64, f64)>;

/// Bytes of either disk.
const CAPACITY: u64 = 1862 << 30;
/// Bytes of one write.
const WRITE: u64 = 131_072;
const WRITE_FIBERS: u64 = 36;
/// Writes per second of a fiber that are tried: up to 151 MB/s in all.
const WRITE_RATES: [u64; 9] = [0, 4, 8, 12, 16, 20, 24, 28, 32];
/// Read rates that are tried are multiples of this, up to the highest.
const READ_STEP: u64 = 13;
const READS_MAX: u64 = 260;

/// How requests are let into the disk.
#[derive(Clone, Copy, Debug)]
enum Scheduling {
    NoScheduler,
    /// Pace and window, told the four rates.
    Usual,
    /// Told that writes are sequential: small ones as fast as their bytes.
    Sequential,
}

/// Columns: what is simulated, on which preset.
const COLUMNS: [(&str, &str, Scheduling); 4] = [
    ("its surface", SURFACE, Scheduling::NoScheduler),
    ("mechanics", MECHANICS, Scheduling::NoScheduler),
    ("pace+window", MECHANICS, Scheduling::Usual),
    ("writes priced by bytes", MECHANICS, Scheduling::Sequential),
];

/// A rate counts as served if so much of it is, of reads as of writes: what waits at the end of a
/// run, for about a second, is not.
const SERVED: f64 = 0.9;

/// The most reads per second, of those tried, that are served beside so many writes of each
/// fiber.
fn reads_beside(
    seed: Seed,
    disk: &DiskSpec,
    scheduling: Scheduling,
    writes: u64,
    seconds: u64,
) -> Result<Option<u64>, String> {
    let mut most = None;
    for reads in (READ_STEP..=READS_MAX).step_by(READ_STEP as usize) {
        if !serves(seed, disk, scheduling, reads, writes, seconds)? {
            break;
        }
        most = Some(reads);
    }
    Ok(most)
}

/// Whether so many reads per second and so many writes of each fiber are served.
fn serves(
    seed: Seed,
    spec: &DiskSpec,
    scheduling: Scheduling,
    reads: u64,
    writes: u64,
    seconds: u64,
) -> Result<bool, String> {
    let mut text = String::new();
    if reads > 0 {
        text.push_str(&format!(
            "- {{name: reads, type: randread, shards: all, data_size: 1800GB,
   options: {{pause_distribution: poisson}},
   shard_info: {{parallelism: {reads}, rps: 1, reqsize: 512, shares: 1000}}}}\n"
        ));
    }
    if writes > 0 {
        text.push_str(&format!(
            "- {{name: writes, type: append, shards: all,
   shard_info: {{parallelism: {WRITE_FIBERS}, rps: {writes}, reqsize: 128kB, shares: 100}}}}\n"
        ));
    }
    let disk = spec.build(seed.0);
    let mut rates = disk.rates();
    if matches!(scheduling, Scheduling::Sequential) {
        rates.write_iops = rates.write_bandwidth / 4096;
    }
    let policy = match scheduling {
        Scheduling::NoScheduler => Policy::Unlimited,
        Scheduling::Usual | Scheduling::Sequential => pace_window(&*disk),
    };
    let model = Some(model(&rates)?);
    let mut config = seed.config(jobs(&text, 1)?, disk, seconds * 1000);
    config.capacity = Some(CAPACITY);
    config.scheduler =
        SchedulerConfig { policy: Some(policy), model, ..SchedulerConfig::by_figures() };
    let outcome = simulate(config)?;
    let served = |name| {
        let job = job(&outcome, name)?;
        let due = (job.requests + job.unfinished) as f64;
        Ok::<bool, String>(job.requests as f64 >= SERVED * due)
    };
    Ok((writes == 0 || served("writes")?) && (reads == 0 || served("reads")?))
}

/// MB/s of so many writes per second of each fiber.
fn megabytes(writes: u64) -> f64 {
    (writes * WRITE_FIBERS * WRITE) as f64 / 1e6
}

fn published() -> Result<Points, String> {
    scenario::published(include_str!("published.yaml"))
}

/// What is published for the nearest rate of writes up to this one.
fn published_beside(published: &Points, megabytes: f64) -> f64 {
    published
        .iter()
        .rfind(|(writes, _)| *writes <= megabytes + 0.5)
        .map_or(0.0, |(_, reads)| *reads)
}

/// What is tried and what is published both come in steps.
fn figure(megabytes: f64, published: f64, reads: Option<u64>) -> Figure {
    let step = READ_STEP as f64;
    let published = (published - step).max(0.0)..=published + step;
    let name = format!("beside {megabytes:.0} MB/s of writes");
    Figure::new(name, "reads/s", published, reads.unwrap_or(0) as f64).within(1.0)
}

fn run(Setting { scale, seed }: Setting) -> Result<Report, String> {
    let seconds = scale.seconds(20, 120);
    let mut report = Report::default();
    report.parameter(
        "disk",
        format!(
            "preset {MECHANICS}: 182 MB/s (published), seeks chosen for its random reads; preset \
             {SURFACE}: fitted to the published"
        ),
    );
    report
        .parameter("load", "Poisson reads of 512 bytes, sequential 128 KiB writes at a fixed rate");
    report.parameter("served", "90 % of what is due, of reads and of writes");
    report.parameter("measured", format!("{seconds} s for each load"));
    let mut table = Table::new("Most reads per second beside writes", &["MB/s", "published"]);
    table.columns.extend(COLUMNS.map(|(name, ..)| name.to_owned()));
    let disks = [preset(COLUMNS[0].1)?, preset(COLUMNS[1].1)?];
    let disk_of = |column: usize| &disks[column.min(1)];
    let mut points = [const { Vec::new() }; 4];
    let curve = published()?;
    for writes in WRITE_RATES {
        let megabytes = megabytes(writes);
        let published = published_beside(&curve, megabytes);
        let mut cells = vec![thousands(megabytes), thousands(published)];
        for (at, (points, (.., scheduling))) in points.iter_mut().zip(COLUMNS).enumerate() {
            let reads = reads_beside(seed, disk_of(at), scheduling, writes, seconds)?;
            points.push((megabytes, reads.unwrap_or(0) as f64));
            if at == 0 {
                report.figures.push(figure(megabytes, published, reads));
            }
            cells.push(reads.map_or_else(|| "none".to_owned(), |reads| reads.to_string()));
        }
        table.rows.push(cells);
    }
    report.tables.push(table);
    let mut chart = Chart::new("A hard disk: most reads per second", "MB/s of writes", "reads/s")
        .with("published", Mark::Dots, curve)
        .with("line to 100 MB/s", Mark::Dashed, vec![(0.0, 130.0), (100.0, 0.0)]);
    for ((name, ..), points) in COLUMNS.iter().zip(points) {
        chart = chart.with(name, Mark::Line, points);
    }
    report.charts.push(chart);
    Ok(report)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::SEED;

    #[test]
    fn reads_fall_on_a_straight_line_and_are_then_cut_off() {
        let (disk, published) = (preset(SURFACE).unwrap(), published().unwrap());
        for rate in WRITE_RATES {
            let reads =
                reads_beside(SEED, &disk, Scheduling::NoScheduler, rate, 20).unwrap().unwrap_or(0);
            let published = published_beside(&published, megabytes(rate));
            let near = (reads as f64 - published).abs() <= 1.6 * READ_STEP as f64;
            assert!(near, "{rate}: {reads} {published}");
        }
    }

    #[test]
    fn a_head_and_a_platter_alone_have_the_line_and_no_cut_off() {
        let disk = preset(MECHANICS).unwrap();
        let reads = |rate| {
            reads_beside(SEED, &disk, Scheduling::NoScheduler, rate, 20).unwrap().unwrap_or(0)
                as f64
        };
        let (few, many) = (4, 28);
        let (from, to) = (reads(few), reads(many));
        assert!(from > 4.0 * to && to > 0.0, "{from} {to}");
        for rate in [8, 16, 24] {
            let progress = (rate - few) as f64 / (many - few) as f64;
            let line = from + (to - from) * progress;
            assert!((reads(rate) - line).abs() < 1.5 * READ_STEP as f64, "{rate}: {line}");
        }
    }

    #[test]
    fn sequential_writes_are_not_random_ones() {
        let (disk, many) = (preset(MECHANICS).unwrap(), 16);
        assert_eq!(reads_beside(SEED, &disk, Scheduling::Usual, many, 10).unwrap(), None);
        let sequential = reads_beside(SEED, &disk, Scheduling::Sequential, many, 10).unwrap();
        assert!(sequential >= Some(2 * READ_STEP), "{sequential:?}");
    }
}
