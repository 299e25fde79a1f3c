//! Charts 2 and 3: reads alongside writes, and alongside what gives the written back again.

use core::time::Duration;

use forebay_core::Policy;
use forebay_load::job_file::JobKind;
use forebay_report::Table;
use forebay_sim::simulation::{SchedulerConfig, SimulationConfig};

use crate::articles::y2024::deletes::disk_spec;
use crate::articles::y2024::{DISK, SOURCE};
use crate::experiment::{Experiment, Scale, Seed, Setting};
use crate::report::Report;
use crate::scenario::{job, jobs, run as simulate, side_by_side};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "2024-trim-job",
    alias: "S4-5",
    title: "Reads alongside writes, with and without a trim job",
    source: SOURCE,
    about: include_str!("about.txt"),
    known: "",
    run,
};

const MB: u64 = 1_000_000;
/// MB/s of writes, and thousands of reads per second.
const WRITES: [u64; 5] = [0, 200, 400, 600, 720];
const READS: [u64; 5] = [50, 150, 250, 350, 390];
const WRITE: u64 = 128 << 10;
const TRIM: u64 = 32 << 20;
/// Of writes and of reads in the published chart.
const STEPS: u64 = 20;
/// How long a cell is measured.
const MILLIS: u64 = 100;
/// A cell is blank where reads or writes have less than this part of what was asked.
const ENOUGH: f64 = 0.97;

/// A cell of the chart: whether it is blank, and the 95th percentile of its reads in us.
#[derive(Clone, Copy, Debug)]
struct Cell {
    blank: bool,
    p95: f64,
}

fn cell(
    seed: Seed,
    megabytes: u64,
    kilo_reads: u64,
    trims: bool,
    millis: u64,
) -> Result<Cell, String> {
    let (reads, writes) = (kilo_reads * 1000, megabytes * MB / WRITE);
    let rate = |requests: u64| (requests / 100).max(1);
    let mut text = format!(
        "- {{name: reads, type: randread, shards: [0], data_size: 64GB, \
         options: {{pause_distribution: poisson}}, \
         shard_info: {{parallelism: 100, rps: {}, reqsize: 512}}}}\n",
        rate(reads)
    );
    if megabytes > 0 {
        let trim_rate = (megabytes * MB / TRIM).max(1);
        text.push_str(&format!(
            "- {{name: writes, type: overwrite, shards: [0], data_size: 16GB, \
             shard_info: {{parallelism: 100, rps: {}, reqsize: {WRITE}}}}}\n",
            rate(writes)
        ));
        if trims {
            text.push_str(&format!(
                "- {{name: trims, type: overwrite, shards: [0], data_size: 16GB, \
                 shard_info: {{parallelism: 1, rps: {trim_rate}, reqsize: {TRIM}}}}}\n"
            ));
        }
    }
    let mut jobs = jobs(&text, 1)?;
    for job in jobs.jobs.iter_mut().filter(|job| job.name == "trims") {
        job.kind = JobKind::Discard;
    }
    let mut config = SimulationConfig::new(jobs, disk_spec()?.build(seed.0));
    config.seed = seed.0;
    config.warmup = Duration::from_millis(100);
    config.duration = Duration::from_millis(millis);
    config.scheduler =
        SchedulerConfig { policy: Some(Policy::Unlimited), ..SchedulerConfig::by_figures() };
    let outcome = simulate(config)?;
    let enough = |name: &str, asked: u64| {
        let asked = (rate(asked) * 100) as f64;
        job(&outcome, name).map(|got| got.iops >= ENOUGH * asked)
    };
    let all = enough("reads", reads)? && (megabytes == 0 || enough("writes", writes)?);
    Ok(Cell { blank: !all, p95: job(&outcome, "reads")?.latency_us.p95 })
}

/// The loads of a chart: as many steps as published, or few.
fn loads(scale: Scale) -> Vec<(u64, u64)> {
    let few = || WRITES.iter().flat_map(|&writes| READS.map(|reads| (writes, reads))).collect();
    let all = || {
        (0..=STEPS)
            .flat_map(|w| (1..=STEPS).map(move |r| (720 * w / STEPS, 411 * r / STEPS)))
            .collect()
    };
    if scale == Scale::Short { few() } else { all() }
}

/// The cells of a chart, in the order of its loads.
fn chart(seed: Seed, loads: &[(u64, u64)], trims: bool) -> Result<Vec<Cell>, String> {
    side_by_side(loads, |&(writes, reads)| cell(seed, writes, reads, trims, MILLIS))
}

fn run(Setting { scale, seed, .. }: Setting) -> Result<Report, String> {
    let mut report = Report::default();
    report.parameter("disk", format!("{DISK}, without its file system"));
    report.parameter("load", "reads of 512 bytes; writes of 128 KiB; trims of 32 MB as fast");
    report.parameter("measured", format!("{MILLIS} ms for each cell"));
    report.parameter("blank", "less than 97 % of the reads or writes that were asked for");
    let columns = ["", "published", "blank cells", "of", "p95 of reads, median (us)"];
    let mut table = Table::new("Cells of the charts", &columns);
    let rows = [("writes", "fewer blank"), ("writes and trims", "more blank, no spikes seen")];
    let loads = loads(scale);
    let charts = [chart(seed, &loads, false)?, chart(seed, &loads, true)?];
    for (cells, (name, published)) in charts.iter().zip(rows) {
        let mut p95: Vec<f64> = cells.iter().filter(|c| !c.blank).map(|c| c.p95).collect();
        p95.sort_by(f64::total_cmp);
        table.row([
            name.to_owned(),
            published.to_owned(),
            cells.iter().filter(|cell| cell.blank).count().to_string(),
            cells.len().to_string(),
            format!("{:.0}", p95.get(p95.len() / 2).copied().unwrap_or_default()),
        ]);
    }
    let [without, with] = &charts;
    let both = || without.iter().zip(with).filter(|(a, b)| !a.blank && !b.blank);
    let higher = both().filter(|(without, with)| with.p95 > without.p95).count();
    report.parameter("p95 higher with trims", format!("in {higher} of {} cells", both().count()));
    report.tables.push(table);
    Ok(report)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::seeds;

    #[test]
    fn trims_at_the_rate_of_writes_make_no_spikes() {
        for seed in seeds() {
            let loads = loads(Scale::Short);
            let [without, with] = [false, true].map(|trims| chart(seed, &loads, trims).unwrap());
            let blank = |cells: &[Cell]| cells.iter().filter(|cell| cell.blank).count();
            assert!(blank(&with) >= blank(&without), "{} and {}", blank(&with), blank(&without));
            for (with, without) in with.iter().zip(&without).filter(|(a, b)| !a.blank && !b.blank) {
                assert!(with.p95 < 2.0 * without.p95, "{with:?} and {without:?}");
            }
        }
    }
}
