//! The four models of a disk that came one after the other, on one load.

use forebay_core::{CostCurve, DiskModel, DiskRates};
use forebay_load::results::model::ClassResult;
use forebay_report::{Chart, Mark, Table};
use forebay_sim::simulation::SchedulerConfig;

use crate::articles::y2022;
use crate::experiment::{Experiment, Seed, Setting};
use crate::figure::thousands;
use crate::report::Report;
use crate::scenario::{self, job, jobs, millis, pace_window, percent, run as simulate};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "2022-stages",
    alias: "S2-1",
    title: "What each stage of the model sees",
    source: y2022::SOURCE,
    about: include_str!("about.txt"),
    known: "",
    run,
};

const DISK: &str = include_str!("../articles/y2022/disk-by-rates.yaml");
const JOBS: &str = include_str!("load.yaml");
const SHARDS: u32 = 4;

/// What it is called, what requests cost by it, and between how many shards the disk is divided.
type Stage = (&'static str, fn(&DiskRates) -> Result<DiskModel, String>, u32);
const STAGES: [Stage; 4] = [
    ("1: operations", operations, SHARDS),
    ("2: and bytes", and_bytes, SHARDS),
    ("3: shared by the shards", and_bytes, 1),
    ("4: reads and writes apart", scenario::model, 1),
];

/// Every request is an operation of a read.
fn operations(rates: &DiskRates) -> Result<DiskModel, String> {
    // of which no request on this disk comes near
    let bytes = 1_000_000_000_000;
    let any = CostCurve::sum(rates.read_iops, bytes).map_err(|error| error.to_string())?;
    Ok(DiskModel::new(any.clone(), any))
}

/// Every request is an operation and the bytes of a read.
fn and_bytes(rates: &DiskRates) -> Result<DiskModel, String> {
    let any = CostCurve::sum(rates.read_iops, rates.read_bandwidth);
    let any = any.map_err(|error| error.to_string())?;
    Ok(DiskModel::new(any.clone(), any))
}

/// What one stage gave.
struct StageResult {
    reads: ClassResult,
    writes: ClassResult,
    of_disk: f64,
}

fn measure(seed: Seed, stage: Stage, millis: u64) -> Result<StageResult, String> {
    let (_, model, parts) = stage;
    let disk = seed.disk(DISK)?;
    let rates = disk.rates();
    let part = |rate: u64| rate / u64::from(parts);
    let stated = DiskRates {
        read_iops: part(rates.read_iops),
        write_iops: part(rates.write_iops),
        read_bandwidth: part(rates.read_bandwidth),
        write_bandwidth: part(rates.write_bandwidth),
    };
    let scheduler = SchedulerConfig {
        policy: Some(pace_window(&*disk)),
        model: Some(model(&stated)?),
        ..SchedulerConfig::by_figures()
    };
    let mut config = seed.config(jobs(JOBS, SHARDS)?, disk, millis);
    config.scheduler = scheduler;
    let outcome = simulate(config)?;
    let (reads, writes) = (job(&outcome, "reads")?.clone(), job(&outcome, "writes")?.clone());
    let of_disk = writes.bandwidth_bytes_per_second as f64 / rates.write_bandwidth as f64;
    Ok(StageResult { reads, writes, of_disk })
}

fn run(Setting { scale, seed, .. }: Setting) -> Result<Report, String> {
    let measured = scale.seconds(1_000, 20_000);
    let mut report = Report::default();
    report.parameter(
        "disk",
        "an i3.2xlarge in ScyllaDB's table: 411,200 reads/s, 181,500 writes/s, 2,015 MB/s of reads, \
         809 MB/s of writes",
    );
    report.parameter(
        "load",
        "all on one of 4 shards: 64 writes of 128 KiB at a time, 2,000 Poisson reads/s of 4 KiB; \
         shares 100 and 1000",
    );
    report.parameter("policy", "pace + window in all stages");
    report.parameter("measured", format!("{measured} ms after 100 ms"));
    let columns = ["model", "writes, MB/s", "of the disk", "reads, mean", "p99", "in the disk"];
    let mut table = Table::new("One load by each model", &columns);
    let mut points = Vec::new();
    for stage in STAGES {
        let StageResult { reads, writes, of_disk } = measure(seed, stage, measured)?;
        table.row([
            stage.0.to_owned(),
            thousands(writes.bandwidth_bytes_per_second as f64 / 1e6),
            percent(of_disk),
            millis(reads.latency_us.mean),
            millis(reads.latency_us.p99),
            millis(reads.disk_us.mean),
        ]);
        points.push((stage.0, (of_disk * 100.0, reads.latency_us.p99 / 1e3)));
    }
    report.tables.push(table);
    let chart =
        Chart::new("What each model leaves of both", "% of the disk's writes", "p99 of reads, ms");
    let with = |chart: Chart, (name, point)| chart.with(name, Mark::Dots, vec![point]);
    report.charts.push(points.into_iter().fold(chart, with));
    Ok(report)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::seeds;

    #[test]
    fn only_the_last_model_fills_the_disk_and_keeps_reads_short() {
        for seed in seeds() {
            let [operations, bytes, shared, apart] =
                STAGES.map(|stage| measure(seed, stage, 500).unwrap());
            let wait = |stage: &StageResult| stage.reads.latency_us.mean;
            for overfull in [&operations, &shared] {
                assert!(overfull.of_disk > 0.98, "{}", overfull.of_disk);
                assert!(wait(overfull) > 1.5 * wait(&apart), "{}", wait(overfull));
            }
            assert!(bytes.of_disk < 0.7, "{}", bytes.of_disk);
            assert!(apart.of_disk > 0.95, "{}", apart.of_disk);
        }
    }
}
