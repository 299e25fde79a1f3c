//! Charts 2 and 3: reads beside writes, and beside what gives the written back again.

use core::time::Duration;

use forebay_core::Policy;
use forebay_load::job_file::JobKind;
use forebay_report::Table;
use forebay_sim::simulation::{SchedulerConfig, SimulationConfig};

use crate::articles::y2024::SOURCE;
use crate::articles::y2024::deletes::{disk_spec, side_by_side};
use crate::experiment::{Experiment, Scale};
use crate::report::Report;
use crate::scenario::{SEED, job, jobs, run as simulate};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "2024-trim-job",
    alias: "S4-5",
    title: "Reads beside writes, with and without a trim job",
    source: SOURCE,
    about: include_str!("about.txt"),
    run,
};

const MB: u64 = 1_000_000;
/// MB/s of writes, and thousands of reads per second.
const WRITES: [u64; 5] = [0, 200, 400, 600, 720];
const READS: [u64; 5] = [50, 150, 250, 350, 390];
const WRITE: u64 = 128 << 10;
const TRIM: u64 = 32 << 20;
/// A cell is blank where reads or writes have less than this part of what was asked.
const ENOUGH: f64 = 0.97;

/// A cell of the chart: whether it is blank, and the 95th percentile of its reads in us.
#[derive(Clone, Copy, Debug)]
struct Cell {
    blank: bool,
    p95: f64,
}

fn cell(megabytes: u64, kilo_reads: u64, trims: bool, millis: u64) -> Result<Cell, String> {
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
    let mut config = SimulationConfig::new(jobs, disk_spec()?.build(SEED));
    config.seed = SEED;
    config.warmup = Duration::from_millis(100);
    config.duration = Duration::from_millis(millis);
    config.scheduler =
        SchedulerConfig { policy: Some(Policy::Unlimited), ..SchedulerConfig::default() };
    let outcome = simulate(config)?;
    let enough = |name: &str, asked: u64| {
        let asked = (rate(asked) * 100) as f64;
        job(&outcome, name).map(|got| got.iops >= ENOUGH * asked)
    };
    let all = enough("reads", reads)? && (megabytes == 0 || enough("writes", writes)?);
    Ok(Cell { blank: !all, p95: job(&outcome, "reads")?.latency_us.p95 })
}

/// The cells of a chart, by writes and then by reads.
fn chart(trims: bool, millis: u64) -> Result<Vec<Cell>, String> {
    let loads: Vec<(u64, u64)> =
        WRITES.iter().flat_map(|&writes| READS.map(|reads| (writes, reads))).collect();
    side_by_side(&loads, |&(writes, reads)| cell(writes, reads, trims, millis))
}

fn run(scale: Scale) -> Result<Report, String> {
    let millis = scale.seconds(100, 2000);
    let mut report = Report::default();
    report.parameter("disk", "examples/i3-xfs.yaml, without its file system");
    report.parameter("load", "reads of 512 bytes; writes of 128 KiB; trims of 32 MB as fast");
    report.parameter("measured", format!("{millis} ms for each cell"));
    report.parameter("blank", "less than 97 % of the reads or writes that were asked for");
    let columns = ["", "published", "blank cells", "of", "p95 of reads, median (us)"];
    let mut table = Table::new("Cells of the charts", &columns);
    let rows = [("writes", "fewer blank"), ("writes and trims", "more blank, no spikes seen")];
    for (trims, (name, published)) in [false, true].into_iter().zip(rows) {
        let cells = chart(trims, millis)?;
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
    report.tables.push(table);
    Ok(report)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trims_at_the_rate_of_writes_make_no_spikes() {
        let [without, with] = [false, true].map(|trims| chart(trims, 100).unwrap());
        let blank = |cells: &[Cell]| cells.iter().filter(|cell| cell.blank).count();
        assert!(blank(&with) >= blank(&without), "{} and {}", blank(&with), blank(&without));
        for (with, without) in with.iter().zip(&without).filter(|(a, b)| !a.blank && !b.blank) {
            assert!(with.p95 < 3.0 * without.p95, "{with:?} and {without:?}");
        }
    }
}
