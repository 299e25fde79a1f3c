//! How many reads a hard disk still serves alongside a stream of writes.

use forebay_config::Source;
use forebay_core::Policy;
use forebay_report::{Chart, Mark, Table};
use forebay_sim::simulation::SchedulerConfig;
use forebay_sim::spec::DiskSpec;

use crate::articles::y2022;
use crate::articles::y2022::preset;
use crate::experiment::{Experiment, Seed, Setting, experiment};
use crate::figure::thousands;
use crate::figure::{Figure, PublishedRange};
use crate::report::Report;
use crate::scenario::{self, job, jobs, model, pace_window, run as simulate, side_by_side};

pub(crate) const EXPERIMENT: Experiment = experiment! {
    name: "2022-hard-disk",
    alias: "S2-4",
    title: "A hard disk: a straight line, then no reads at all",
    source: y2022::SOURCE,
};

/// A head and a platter.
const MECHANICS: &str = include_str!("disk.yaml");
/// The preset that is fitted to the published surface.
const SURFACE: &str = "hdd-toshiba-DT01ACA200";
/// Points of a published curve.
type Points = Vec<(f64, f64)>;

/// Bytes of either disk.
const CAPACITY: u64 = 1862 << 30;
/// Bytes of one write.
const WRITE: u64 = 131_072;
/// As many as diskplorer has under way.
const WRITE_FIBERS: u64 = 4;
/// All columns but the first are of each this many rows.
const COMPARED_EACH: usize = 2;
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

/// Columns: what is simulated; the second on the disk by its surface, the others on a head and a
/// platter.
const COLUMNS: [(&str, Scheduling); 4] = [
    ("mechanics", Scheduling::NoScheduler),
    ("its surface", Scheduling::NoScheduler),
    ("pace+window", Scheduling::Usual),
    ("writes priced by bytes", Scheduling::Sequential),
];

/// A rate counts as served if so much of it is, of reads as of writes: what waits at the end of a
/// run, for about a second, is not.
const SERVED: f64 = 0.9;

/// The most reads per second, of those tried, that are served alongside this many writes of each
/// fiber.
fn reads_during_writes(
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

/// Whether this many reads per second and this many writes of each fiber are served.
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

/// Writes per second of each fiber for this many MB/s.
fn writes_per_fiber(megabytes: f64) -> u64 {
    (megabytes * 1e6 / (WRITE * WRITE_FIBERS) as f64).round() as u64
}

fn published() -> Result<Points, String> {
    scenario::published(include_str!("published.yaml"))
}

fn mechanics() -> Result<DiskSpec, String> {
    DiskSpec::parse(&Source::new("disk", MECHANICS)).map_err(|error| error.to_string())
}

fn run(Setting { scale, seed, .. }: Setting) -> Result<Report, String> {
    let seconds = scale.seconds(20, 120);
    let mut report = Report::default();
    report.parameter(
        "disk",
        format!(
            "182 MB/s (published), seeks fitted to its random reads; preset {SURFACE}: fitted to \
             the published"
        ),
    );
    report.parameter(
        "load",
        "Poisson reads of 512 bytes, sequential 128 KiB writes at a fixed rate, at most four at a \
         time, as diskplorer has them",
    );
    report.parameter("served", "90 % of what is due, of reads and of writes");
    report.parameter("measured", format!("{seconds} s for each load"));
    let curve = published()?;
    let [mechanics, surface] = [mechanics()?, preset(SURFACE)?];
    let rows: Vec<(usize, f64)> = curve.iter().map(|row| row.0).enumerate().collect();
    let ours = side_by_side(&rows, |&(row, megabytes)| {
        let columns = if row % COMPARED_EACH == 0 { COLUMNS.len() } else { 1 };
        let served = COLUMNS.iter().take(columns).enumerate().map(|(at, &(_, scheduling))| {
            let disk = if at == 1 { &surface } else { &mechanics };
            reads_during_writes(seed, disk, scheduling, writes_per_fiber(megabytes), seconds)
        });
        served.collect::<Result<Vec<_>, _>>()
    })?;
    let mut table = Table::new("Most reads per second alongside writes", &["MB/s", "published"]);
    table.columns.extend(COLUMNS.map(|(name, _)| name.to_owned()));
    let mut points = [const { Vec::new() }; 4];
    for (&(row, megabytes), served) in rows.iter().zip(&ours) {
        let published = curve[row].1;
        // what was published comes in steps, and so does ours
        let range = PublishedRange::in_steps(published, READ_STEP as f64);
        let reads = served.first().copied().flatten().unwrap_or(0) as f64;
        let name = format!("alongside {megabytes:.0} MB/s of writes");
        let figure = Figure::new(name, "reads/s", range, reads);
        let figure = figure.at("reads", row, rows.len()).compared_with("no reads", 0.0);
        report.figures.push(figure);
        let mut cells = vec![thousands(megabytes), thousands(published)];
        for (points, reads) in points.iter_mut().zip(served) {
            points.push((megabytes, reads.unwrap_or(0) as f64));
            cells.push(reads.map_or_else(|| "none".to_owned(), |reads| reads.to_string()));
        }
        cells.resize(table.columns.len(), "-".to_owned());
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

    fn reads(disk: &DiskSpec, scheduling: Scheduling, megabytes: f64) -> f64 {
        let reads = reads_during_writes(SEED, disk, scheduling, writes_per_fiber(megabytes), 20);
        reads.unwrap().unwrap_or(0) as f64
    }

    #[test]
    fn the_fitted_surface_falls_and_is_then_cut_off() {
        let disk = preset(SURFACE).unwrap();
        let at = |megabytes| reads(&disk, Scheduling::NoScheduler, megabytes);
        assert!((104.0..=156.0).contains(&at(0.0)), "{}", at(0.0));
        assert!(at(18.2) > at(72.9), "{}", at(18.2));
        assert!([120.0, 150.0].iter().all(|&megabytes| at(megabytes) <= 13.0));
    }

    #[test]
    fn a_head_and_a_platter_alone_have_the_line_and_no_cut_off() {
        let disk = mechanics().unwrap();
        let at = |megabytes| reads(&disk, Scheduling::NoScheduler, megabytes);
        for (megabytes, published) in published().unwrap().iter().take(8) {
            let off = (at(*megabytes) - published).abs();
            assert!(off <= 3.0 * READ_STEP as f64, "{megabytes}: {off}");
        }
        assert!(at(110.0) > 0.0);
    }

    #[test]
    fn sequential_writes_are_not_random_ones() {
        let disk = mechanics().unwrap();
        assert_eq!(reads(&disk, Scheduling::Usual, 75.0), 0.0);
        assert!(reads(&disk, Scheduling::Sequential, 75.0) >= 13.0);
    }
}
