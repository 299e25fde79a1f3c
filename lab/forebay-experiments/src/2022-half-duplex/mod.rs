//! How many reads an NVMe disk serves beside writes, and within which latency.

use core::time::Duration;

use forebay_config::Source;
use forebay_core::Policy;
use forebay_report::{Chart, Mark, Table};
use forebay_sim::simulation::SchedulerConfig;
use forebay_sim::spec::DiskSpec;

use crate::articles::y2022;
use crate::articles::y2022::{MEASURED, preset};
use crate::experiment::{Experiment, Seed, Setting};
use crate::figure::Figure;
use crate::figure::thousands;
use crate::report::Report;
use crate::scenario::{self, job, jobs, percent, run as simulate};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "2022-half-duplex",
    alias: "S2-3",
    title: "NVMe disks are nearly half-duplex",
    source: y2022::SOURCE,
    about: include_str!("about.txt"),
    run,
};

const DIES: &str = include_str!("disk-of-dies.yaml");
const READS_MAX: f64 = 413_000.0;
/// 4 shards x 10 fibers x 152 requests/s of 128 KiB, 797 MB/s.
const WRITE_RPS_MAX: u64 = 152;
const SHARDS: u32 = 4;
const READ_FIBERS: u64 = 100;
/// Read rates that are tried, up to the highest.
const STEPS: u64 = 20;
/// From one to the next.
const STEP: f64 = READS_MAX / STEPS as f64;
/// A load is carried if so much of what is due is done: diskplorer leaves other cells blank.
const CARRIED: f64 = 0.97;

/// A part of the writes, and the thousand reads per second at each of [`EDGES`].
type Published = Vec<(f64, [f64; 3])>;

fn published() -> Result<Published, String> {
    scenario::published(include_str!("published.yaml"))
}

/// The same edges, and bounds of the 95th percentile in microseconds.
const EDGES: [(&str, f64); 3] =
    [("carried", f64::INFINITY), ("within 5 ms", 5000.0), ("within 1 ms", WITHIN_1_MS)];

/// What a die programs at a time was chosen for these parts of the writes.
const CHOSEN_BY: [f64; 2] = [0.25, 0.5];
const WITHIN_1_MS: f64 = 1000.0;

fn dies() -> Result<DiskSpec, String> {
    DiskSpec::parse(&Source::new("disk", DIES)).map_err(|error| error.to_string())
}

/// The 95th percentile of the reads in microseconds under this load, if the disk carries it.
fn p95_us(
    seed: Seed,
    disk: &DiskSpec,
    reads_rps: u64,
    writes_rps: u64,
    millis: u64,
) -> Result<Option<f64>, String> {
    let mut text = format!(
        "- {{name: reads, type: randread, shards: all, options: {{pause_distribution: poisson}},
   shard_info: {{parallelism: {READ_FIBERS}, rps: {reads_rps}, reqsize: 512}}}}\n"
    );
    if writes_rps > 0 {
        text.push_str(&format!(
            "- {{name: writes, type: append, shards: all,
   shard_info: {{parallelism: 10, rps: {writes_rps}, reqsize: 128kB}}}}\n"
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
    let carries = (writes_rps == 0 || carried("writes")?) && carried("reads")?;
    Ok(if carries { Some(job(&outcome, "reads")?.latency_us.p95) } else { None })
}

/// For each of [`EDGES`] the most reads per second beside this part of the writes.
fn edges(seed: Seed, disk: &DiskSpec, part: f64, millis: u64) -> Result<[f64; 3], String> {
    let writes_rps = (WRITE_RPS_MAX as f64 * part).round() as u64;
    let mut most = [0.0; 3];
    for step in 1..=STEPS {
        let fibers = u64::from(SHARDS) * READ_FIBERS;
        let reads_rps = (STEP * step as f64) as u64 / fibers;
        let Some(p95) = p95_us(seed, disk, reads_rps, writes_rps, millis)? else { break };
        for (most, (_, bound)) in most.iter_mut().zip(EDGES) {
            if p95 <= bound {
                *most = STEP * step as f64;
            }
        }
    }
    Ok(most)
}

fn run(Setting { scale, seed }: Setting) -> Result<Report, String> {
    let millis = scale.seconds(100, 500);
    let mut report = Report::default();
    report.parameter(
        "disk of dies",
        "flash with the published edges of an i3.2xlarge: 413 k reads/s, 800 MB/s; 41 dies, which \
         program 18 KiB at a time (chosen), 0.94 ms, for which reads wait",
    );
    report.parameter("disk by its surface", format!("preset {MEASURED}: fitted to the published"));
    report.parameter(
        "load",
        "Poisson reads of 512 bytes, 128 KiB writes at a fixed rate, no scheduler",
    );
    report.parameter("carried", "97 % of what is due, of reads and of writes");
    report.parameter("measured", format!("{millis} ms for each load, after 20 ms"));
    let mut table = Table::new(
        "Most thousand reads/s: published / disk of dies / disk by its surface (steps of 5 %)",
        &["writes", "line", "carried", "p95 within 5 ms", "p95 within 1 ms"],
    );
    let disks = [dies()?, preset(MEASURED)?];
    let mut simulated = [const { Vec::new() }; 2];
    let all = published()?;
    for &(part, published) in &all {
        let [of_dies, of_surface] =
            [edges(seed, &disks[0], part, millis)?, edges(seed, &disks[1], part, millis)?];
        simulated[0].push((part * 800.0, of_dies[0] / 1e3));
        simulated[1].push((part * 800.0, of_surface[0] / 1e3));
        let cell = |index: usize| {
            let all = [published[index], of_dies[index] / 1e3, of_surface[index] / 1e3];
            all.map(|reads| if reads > 0.0 { thousands(reads) } else { "none".to_owned() })
                .join(" / ")
        };
        for (&(name, bound), (published, ours)) in EDGES.iter().zip(published.iter().zip(of_dies)) {
            // what was published comes in these steps too, and rounded
            let step = 1.01 * STEP / 1e3;
            let published = (published - step).max(0.0)..=published + step;
            let name = format!("beside {:.0} % of writes, {name}", part * 100.0);
            let figure = Figure::new(name, "thousand reads/s", published, ours / 1e3);
            let figure = figure.within(1.0);
            let is_input = bound == WITHIN_1_MS && CHOSEN_BY.contains(&part);
            report.figures.push(if is_input { figure.input() } else { figure });
        }
        let line = thousands(READS_MAX / 1e3 * (1.0 - part));
        table.row([percent(part), line, cell(0), cell(1), cell(2)]);
    }
    report.tables.push(table);
    let mut chart = Chart::new("Most reads beside writes", "MB/s of writes", "thousand reads/s");
    for (index, (name, _)) in EDGES.into_iter().enumerate() {
        let points = all.iter().map(|&(part, reads)| (part * 800.0, reads[index]));
        chart = chart.with(&format!("published, {name}"), Mark::Dots, points.collect());
    }
    let line = vec![(0.0, READS_MAX / 1e3), (800.0, 0.0)];
    let [of_dies, of_surface] = simulated;
    chart = chart.with("disk of dies, carried", Mark::Line, of_dies);
    chart = chart.with("disk by its surface, carried", Mark::Line, of_surface);
    report.charts.push(chart.with("line", Mark::Dashed, line));
    Ok(report)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::seeds;

    /// So many steps, and what published figures are rounded by.
    fn steps(count: f64) -> f64 {
        (count + 0.01) * STEP
    }

    #[test]
    fn twice_the_reads_are_half_the_writes() {
        let disk = dies().unwrap();
        for (seed, part) in seeds().flat_map(|seed| [0.25, 0.5, 0.75].map(|part| (seed, part))) {
            let [carried, ..] = edges(seed, &disk, part, 100).unwrap();
            let line = READS_MAX * (1.0 - part);
            assert!((carried - line).abs() <= steps(2.0), "{part}: {carried}");
        }
    }

    #[test]
    fn within_a_millisecond_mixes_are_dearer_than_the_line_as_published() {
        let disk = dies().unwrap();
        for (part, published) in &published().unwrap() {
            for seed in seeds() {
                let within_1_ms = edges(seed, &disk, *part, 100).unwrap()[2] / 1e3;
                let off = (within_1_ms - published[2]).abs() * 1e3;
                // reads alone wait for each other where the measured ones hardly do
                let most = if *part == 0.0 { 4.0 } else { 2.0 };
                assert!(off <= steps(most), "{part}: {within_1_ms}");
            }
        }
    }

    #[test]
    fn the_fitted_surface_carries_a_third_to_a_half_less_between_the_extremes() {
        let disk = preset(MEASURED).unwrap();
        for (part, published) in &published().unwrap()[1..4] {
            for seed in seeds() {
                let carried = edges(seed, &disk, *part, 100).unwrap()[0] / 1e3;
                let less = published[0] - carried;
                assert!((1.9 * STEP..=steps(8.0)).contains(&(less * 1e3)), "{part}: {carried}");
            }
        }
    }
}
