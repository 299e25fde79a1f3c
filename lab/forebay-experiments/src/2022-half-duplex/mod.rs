//! How many reads an NVMe disk serves alongside writes, and within which latency.

use core::time::Duration;
use std::collections::BTreeMap;

use forebay_config::Source;
use forebay_core::Policy;
use forebay_report::{Chart, Mark, Table};
use forebay_sim::simulation::SchedulerConfig;
use forebay_sim::spec::DiskSpec;

use crate::articles::y2022;
use crate::articles::y2022::{MEASURED, preset};
use crate::experiment::{Experiment, Seed, Setting, experiment};
use crate::figure::thousands;
use crate::figure::{Figure, PublishedRange};
use crate::report::Report;
use crate::scenario::{self, job, jobs, run as simulate, side_by_side};

pub(crate) const EXPERIMENT: Experiment = experiment! {
    name: "2022-half-duplex",
    alias: "S2-3",
    title: "NVMe disks are nearly half-duplex",
    source: y2022::SOURCE,
};

const DIES: &str = include_str!("disk-of-dies.yaml");
const READS_MAX: f64 = 412_614.0;
/// What the surface goes up to, in requests of 128 KiB of each of diskplorer's four at a time.
const WRITE_MB_MAX: f64 = 800.4;
const WRITE_FIBERS: u64 = 4;
const WRITE: f64 = 131_072.0;
const SHARDS: u32 = 4;
const READ_FIBERS: u64 = 100;
/// Read rates that are tried, up to the highest.
const STEPS: u64 = 20;
/// From one to the next.
const STEP: f64 = READS_MAX / STEPS as f64;
/// A load is carried if so much of what is due is done: diskplorer leaves other cells blank.
const CARRIED: f64 = 0.97;
/// The disk that is fitted to the whole surface is compared at each this many rows.
const COMPARED_EACH: usize = 10;

/// MB/s of writes, and the thousand reads per second at each of [`EDGES`].
type Published = Vec<(f64, [f64; 3])>;

fn published() -> Result<Published, String> {
    scenario::published(include_str!("published.yaml"))
}

/// The same edges, and bounds of the 95th percentile in microseconds.
const EDGES: [(&str, f64); 3] =
    [("carried", f64::INFINITY), ("within 5 ms", 5000.0), ("within 1 ms", 1000.0)];

fn dies() -> Result<DiskSpec, String> {
    DiskSpec::parse(&Source::new("disk", DIES)).map_err(|error| error.to_string())
}

/// The 95th percentile of the reads in microseconds under this load, if the disk carries it.
fn p95_us(
    seed: Seed,
    disk: &DiskSpec,
    reads_rps: u64,
    writes_mb: f64,
    millis: u64,
) -> Result<Option<f64>, String> {
    let writes_rps = (writes_mb * 1e6 / WRITE / WRITE_FIBERS as f64).round() as u64;
    let mut text = format!(
        "- {{name: reads, type: randread, shards: all, options: {{pause_distribution: poisson}},
   shard_info: {{parallelism: {READ_FIBERS}, rps: {reads_rps}, reqsize: 512}}}}\n"
    );
    if writes_mb > 0.0 {
        text.push_str(&format!(
            "- {{name: writes, type: append, shards: [0],
   shard_info: {{parallelism: {WRITE_FIBERS}, rps: {writes_rps}, reqsize: 128kB}}}}\n"
        ));
    }
    let mut config = seed.config(jobs(&text, SHARDS)?, disk.build(seed.0), millis);
    config.warmup = Duration::from_millis(20);
    config.scheduler =
        SchedulerConfig { policy: Some(Policy::Unlimited), ..SchedulerConfig::by_figures() };
    let outcome = simulate(config)?;
    let carried = |name| {
        let job = job(&outcome, name)?;
        let due = (job.requests + job.unfinished) as f64;
        Ok::<bool, String>(job.requests as f64 >= CARRIED * due)
    };
    let carries = (writes_mb == 0.0 || carried("writes")?) && carried("reads")?;
    Ok(if carries { Some(job(&outcome, "reads")?.latency_us.p95) } else { None })
}

/// For each of [`EDGES`] the most reads per second alongside this many MB/s of writes.
fn edges(seed: Seed, disk: &DiskSpec, writes_mb: f64, millis: u64) -> Result<[f64; 3], String> {
    let fibers = u64::from(SHARDS) * READ_FIBERS;
    let mut tried = BTreeMap::new();
    let mut most = [0.0; 3];
    // a tighter bound holds up to fewer reads
    let mut beyond = STEPS + 1;
    for (most, (_, bound)) in most.iter_mut().zip(EDGES) {
        let (mut kept, mut lost) = (0, beyond);
        while lost - kept > 1 {
            let step = u64::midpoint(kept, lost);
            let p95 = match tried.get(&step) {
                Some(&p95) => p95,
                None => {
                    p95_us(seed, disk, (STEP * step as f64) as u64 / fibers, writes_mb, millis)?
                }
            };
            tried.insert(step, p95);
            match p95 {
                Some(p95) if p95 <= bound => kept = step,
                _ => lost = step,
            }
        }
        *most = STEP * kept as f64;
        beyond = kept + 1;
    }
    Ok(most)
}

fn run(Setting { scale, seed }: Setting) -> Result<Report, String> {
    let millis = scale.seconds(150, 1000);
    let mut report = Report::default();
    report.parameter(
        "disk of dies",
        "flash: 41 dies, from 413 k reads/s of 0.1 ms; they program 14 KiB at a time at 1.9 GB/s; \
         each 12 MB of writes a pause of 4.7 ms to collect garbage",
    );
    report.parameter("disk by its surface", format!("preset {MEASURED}: fitted to all of it"));
    report.parameter(
        "load",
        "Poisson reads of 512 bytes, and 128 KiB writes, at most four at a time, as \
         diskplorer has them; no scheduler",
    );
    report.parameter("carried", "97 % of what is due, of reads and of writes");
    report.parameter("measured", format!("{millis} ms for each load, after 20 ms"));
    let all = published()?;
    let of_dies = {
        let disk = dies()?;
        side_by_side(&all, |&(writes, _)| edges(seed, &disk, writes, millis))?
    };
    let compared: Vec<f64> = all.iter().step_by(COMPARED_EACH).map(|row| row.0).collect();
    let surface = preset(MEASURED)?;
    let of_surface = side_by_side(&compared, |&writes| edges(seed, &surface, writes, millis))?;
    report.figures = figures(&all, &of_dies);
    report.tables.push(table(&all, &of_dies, &of_surface));
    report.charts.push(chart(&all, &of_dies, &compared, &of_surface));
    Ok(report)
}

fn figures(all: &Published, ours: &[[f64; 3]]) -> Vec<Figure> {
    let mut figures = Vec::new();
    for (row, ((writes, published), ours)) in all.iter().zip(ours).enumerate() {
        for (&(edge, _), (published, ours)) in EDGES.iter().zip(published.iter().zip(ours)) {
            // what was published comes in steps too
            let range = PublishedRange::in_steps(*published, STEP / 1e3);
            let name = format!("alongside {writes:.0} MB/s of writes, {edge}");
            let figure = Figure::new(name, "thousand reads/s", range, ours / 1e3);
            figures.push(figure.at(edge, row, all.len()));
        }
    }
    figures
}

fn table(all: &Published, of_dies: &[[f64; 3]], of_surface: &[[f64; 3]]) -> Table {
    let mut table = Table::new(
        "Most thousand reads/s: published / disk of dies / disk by its surface (steps of 5 %)",
        &["MB/s of writes", "line", "carried", "p95 within 5 ms", "p95 within 1 ms"],
    );
    let reads = |reads: f64| if reads > 0.0 { thousands(reads) } else { "none".to_owned() };
    for (row, ((writes, published), of_dies)) in all.iter().zip(of_dies).enumerate() {
        let of_surface =
            if row % COMPARED_EACH == 0 { of_surface.get(row / COMPARED_EACH) } else { None };
        let cell = |at: usize| {
            let surface = of_surface.map_or_else(|| "-".to_owned(), |edges| reads(edges[at] / 1e3));
            format!("{} / {} / {surface}", reads(published[at]), reads(of_dies[at] / 1e3))
        };
        let line = thousands(READS_MAX / 1e3 * (1.0 - writes / WRITE_MB_MAX));
        table.row([thousands(*writes), line, cell(0), cell(1), cell(2)]);
    }
    table
}

fn chart(
    all: &Published,
    of_dies: &[[f64; 3]],
    compared: &[f64],
    of_surface: &[[f64; 3]],
) -> Chart {
    let mut chart = Chart::new("Most reads alongside writes", "MB/s of writes", "thousand reads/s");
    for (at, (name, _)) in EDGES.into_iter().enumerate() {
        let points = all.iter().map(|&(writes, reads)| (writes, reads[at]));
        chart = chart.with(&format!("published, {name}"), Mark::Dots, points.collect());
        let points = all.iter().zip(of_dies).map(|(&(writes, _), ours)| (writes, ours[at] / 1e3));
        chart = chart.with(&format!("disk of dies, {name}"), Mark::Line, points.collect());
    }
    let points = compared.iter().zip(of_surface).map(|(&writes, ours)| (writes, ours[0] / 1e3));
    chart = chart.with("disk by its surface, carried", Mark::Line, points.collect());
    let line = vec![(0.0, READS_MAX / 1e3), (WRITE_MB_MAX, 0.0)];
    chart.with("line", Mark::Dashed, line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::seeds;

    /// This many steps, and what published figures are rounded by.
    fn steps(count: f64) -> f64 {
        (count + 0.01) * STEP
    }

    #[test]
    fn twice_the_reads_are_less_than_half_the_writes() {
        let disk = dies().unwrap();
        for (seed, part) in seeds().flat_map(|seed| [0.25, 0.5, 0.75].map(|part| (seed, part))) {
            let [carried, within_5_ms, within_1_ms] =
                edges(seed, &disk, part * WRITE_MB_MAX, 200).unwrap();
            let line = READS_MAX * (1.0 - part);
            assert!((carried - line).abs() <= steps(4.0), "{part}: {carried}");
            // mixes are dearer than the line within a bound on latency
            assert!(within_5_ms <= carried && within_1_ms < carried, "{part}: {within_5_ms}");
        }
    }

    #[test]
    fn the_fitted_surface_carries_less_between_the_extremes() {
        let disk = preset(MEASURED).unwrap();
        for (writes, published) in published().unwrap().iter().skip(5).step_by(5).take(3) {
            for seed in seeds() {
                let carried = edges(seed, &disk, *writes, 100).unwrap()[0] / 1e3;
                let less = published[0] - carried;
                assert!((0.0..=steps(8.0)).contains(&(less * 1e3)), "{writes}: {carried}");
            }
        }
    }
}
