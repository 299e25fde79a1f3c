//! What a latency target in the disk does on eight disks.

use core::time::Duration;

use forebay_core::{LatencyTarget, Op, Policy};
use forebay_report::Table;
use forebay_sim::simulation::{Outcome, SchedulerConfig};

use crate::experiment::{Experiment, Scale, Seed, Setting};
use crate::report::Report;
use crate::scenario::{job, jobs, millis, model, off_by, run as simulate};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "design-target",
    alias: "D5-target",
    title: "A latency target: how large a window keeps it",
    source: "docs/decisions/0008-latency-target-cap.md",
    about: include_str!("about.txt"),
    known: "",
    run,
};

const LOAD: &str = include_str!("load.yaml");
const SHARDS: u32 = 2;
const TARGET: Duration = Duration::from_millis(1);

const DISKS: [&str; 8] = [
    "i3.2xlarge",
    "i3en.3xlarge",
    "gcp-pd-SSD-2TB",
    "samsung-970-pro",
    "samsung-850-pro",
    "nvme-2018",
    "nvme-2022",
    "four-channels",
];

/// How a run begins: whether there is a target, and by how many percent the model is off.
#[derive(Clone, Copy, Debug)]
struct Start {
    name: &'static str,
    has_target: bool,
    off_percent: i64,
    warmup: Duration,
}

const WITHOUT: Start = Start {
    name: "no target",
    has_target: false,
    off_percent: 0,
    warmup: Duration::from_millis(1500),
};
const STARTS: [Start; 4] = [
    WITHOUT,
    Start { name: "target", has_target: true, ..WITHOUT },
    Start { name: "target, figures 2 x too high", has_target: true, off_percent: 100, ..WITHOUT },
    Start { name: "target, figures 2 x too low", has_target: true, off_percent: -50, ..WITHOUT },
];

fn outcome(seed: Seed, disk: &str, start: Start, measured_millis: u64) -> Result<Outcome, String> {
    let disk = seed.preset(disk)?;
    let target = LatencyTarget::new(Op::Read, 950, TARGET).map_err(|error| error.to_string())?;
    let scheduler = SchedulerConfig {
        policy: Some(Policy::PaceWindow {
            latency_goal: Duration::ZERO,
            base_latency: Some(disk.base_latency()),
        }),
        model: Some(model(&off_by(&disk.rates(), start.off_percent))?),
        latency_target: start.has_target.then(|| target.in_disk()),
        ..SchedulerConfig::default()
    };
    let mut config = seed.config(jobs(LOAD, SHARDS)?, disk, measured_millis);
    config.warmup = start.warmup;
    config.scheduler = scheduler;
    config.trace_buckets = Some(1);
    simulate(config)
}

/// Percentiles of reads in the disk, in microseconds.
fn read_latencies(outcome: &Outcome) -> Result<[f64; 3], String> {
    let trace = outcome.trace.as_ref().ok_or("the run was not traced")?;
    let reads = trace.classes.iter().find(|class| class.name == "reads");
    let disk = &reads.ok_or("there are no reads")?.disk;
    Ok([0.5, 0.95, 0.99].map(|quantile| disk.quantile_ns(quantile) as f64 / 1e3))
}

/// Runs all disks from all starts.
fn run(Setting { scale, seed, .. }: Setting) -> Result<Report, String> {
    let measured_millis = scale.seconds(1, 4) * 1000;
    let starts = match scale {
        Scale::Short => &STARTS[..2],
        Scale::Full => &STARTS,
    };
    let mut report = Report::default();
    report.parameter("load", "4 KiB reads, 64 in flight per shard; 128 KiB writes, 16; 2 shards");
    report.parameter("latency target", "of reads 95 in 100 within 1 ms in the disk");
    report.parameter("measured", format!("{} s", measured_millis / 1000));
    let mut table = Table::new(
        "Reads and writes that both want all, at equal shares",
        &["disk", "", "reads/s", "writes MB/s", "p50", "p95", "p99", "disk time"],
    );
    for disk in DISKS {
        for (index, &start) in starts.iter().enumerate() {
            let outcome = outcome(seed, disk, start, measured_millis)?;
            let [p50, p95, p99] = read_latencies(&outcome)?;
            table.row([
                if index == 0 { disk.to_owned() } else { String::new() },
                start.name.to_owned(),
                format!("{:.0}", job(&outcome, "reads")?.iops),
                format!("{:.0}", job(&outcome, "writes")?.bandwidth_bytes_per_second as f64 / 1e6),
                millis(p50),
                millis(p95),
                millis(p99),
                format!("{:.2}", outcome.utilisation),
            ]);
        }
    }
    report.tables.push(table);
    Ok(report)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::seeds;

    #[test]
    fn the_target_holds_and_shares_stay() {
        let mut missed = Vec::new();
        for seed in seeds() {
            for disk in DISKS {
                let [without, with] =
                    [WITHOUT, STARTS[1]].map(|start| outcome(seed, disk, start, 4000).unwrap());
                let [_, p95, _] = read_latencies(&with).unwrap();
                let used = with.utilisation / without.utilisation;
                println!("{disk}: p95 {p95} us, {used:.3} of the disk time");
                let rates = seed.preset(disk).unwrap().rates();
                let [before, after] = [&without, &with].map(|outcome| {
                    let [reads, writes] =
                        ["reads", "writes"].map(|name| job(outcome, name).unwrap());
                    let read = reads.iops / rates.read_iops as f64;
                    read * rates.write_bandwidth as f64 / writes.bandwidth_bytes_per_second as f64
                });
                println!("{disk}: shares {before} {after}");
                // no cap keeps it there, and it is given up
                if disk == "i3.2xlarge" {
                    assert!(used >= 0.85, "{used}");
                    continue;
                }
                assert!(p95 <= 1_600.0 && used >= 0.85, "{disk}: p95 {p95} us, {used}");
                if p95 > 1_030.0 {
                    missed.push((disk, p95));
                }
                let is_kept = [before, after].iter().all(|share| (share - 1.0).abs() <= 0.015);
                assert!(is_kept, "{disk}: {before} and {after}");
            }
        }
        // where lower caps seem to make it worse there is none for a while
        assert!(missed.len() <= 1, "{missed:?}");
    }
}
