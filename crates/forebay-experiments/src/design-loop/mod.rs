//! What a latency target makes of disks that are no straight line.

use core::time::Duration;

use forebay_core::{LATENCY_GOAL_DEFAULT, LatencyTarget, Op, Policy};
use forebay_report::Table;
use forebay_sim::simulation::{Outcome, SchedulerConfig};

use crate::experiment::{Experiment, Scale, Seed, Setting};
use crate::report::Report;
use crate::scenario::{job, jobs, millis, model, off_by, run as simulate};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "design-loop",
    alias: "D5-loop",
    title: "A latency target: the pace and the window that a disk needs",
    source: "ARCHITECTURE.md",
    about: include_str!("about.txt"),
    run,
};

const LOAD: &str = include_str!("load.yaml");
const SHARDS: u32 = 2;
const TARGET: Duration = Duration::from_millis(1);

/// Presets, and what the best constant speed delivers of a second.
const DISKS: [(&str, &str); 8] = [
    ("i3.2xlarge", "0.40"),
    ("i3en.3xlarge", "1.25"),
    ("gcp-pd-SSD-2TB", "0.95"),
    ("samsung-970-pro", "1.15"),
    ("samsung-850-pro", "1.15"),
    ("nvme-2018", "1.04"),
    ("nvme-2022", "1.05"),
    ("four-channels", "1.55"),
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
    Start { name: "target, model 2 x too fast", has_target: true, off_percent: 100, ..WITHOUT },
    Start {
        name: "target, model 2 x too slow",
        has_target: true,
        off_percent: -50,
        warmup: Duration::from_secs(5),
    },
];

fn outcome(seed: Seed, disk: &str, start: Start, measured_millis: u64) -> Result<Outcome, String> {
    let disk = seed.preset(disk)?;
    let latency_target = LatencyTarget::new(Op::Read, 950, TARGET).map_err(|e| e.to_string())?;
    let scheduler = SchedulerConfig {
        policy: Some(Policy::PaceWindow {
            latency_goal: LATENCY_GOAL_DEFAULT,
            base_latency: Some(disk.base_latency()),
        }),
        model: Some(model(&off_by(&disk.rates(), start.off_percent))?),
        latency_target: start.has_target.then_some(latency_target),
        ..SchedulerConfig::by_figures()
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
fn run(Setting { scale, seed }: Setting) -> Result<Report, String> {
    let measured_millis = scale.seconds(1, 4) * 1000;
    let starts = match scale {
        Scale::Short => &STARTS[..2],
        Scale::Full => &STARTS,
    };
    let mut report = Report::default();
    report.parameter("load", "4 KiB reads, 64 in flight per shard; 128 KiB writes, 16; 2 shards");
    report.parameter("latency target", "of reads 95 in 100 within 1 ms in the disk");
    report.parameter("latency goal", "0.75 ms (window 1.5 ms)");
    report.parameter("measured", format!("{} s", measured_millis / 1000));
    let mut table = Table::new(
        "Reads and writes that both want all, at equal shares",
        &["disk", "", "reads/s", "writes MB/s", "p50", "p95", "p99", "disk time", "best constant"],
    );
    for (disk, best) in DISKS {
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
                if index == 0 { best.to_owned() } else { String::new() },
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
    fn the_target_holds_at_the_disk_time_of_the_best_constant_speed() {
        for seed in seeds() {
            for (disk, best) in DISKS {
                let best: f64 = best.parse().unwrap();
                let outcome = outcome(seed, disk, STARTS[1], 2000).unwrap();
                let [_, p95, p99] = read_latencies(&outcome).unwrap();
                assert!(p95 <= 1_030.0 && p99 <= 2_700.0, "{disk}: p95 {p95} us, p99 {p99} us");
                let used = outcome.utilisation;
                assert!(used >= 0.935 * best, "{disk}: {used} of {best}");
                let [reads, writes] = ["reads", "writes"].map(|name| job(&outcome, name).unwrap());
                let rates = seed.preset(disk).unwrap().rates();
                let share = reads.iops / rates.read_iops as f64;
                let written =
                    writes.bandwidth_bytes_per_second as f64 / rates.write_bandwidth as f64;
                assert!((share / written - 1.0).abs() <= 0.015, "{disk}: {share} to {written}");
            }
        }
    }

    #[test]
    fn without_a_target_a_disk_that_is_no_line_keeps_its_reads_for_four_milliseconds() {
        for seed in seeds() {
            let [_, p95, _] =
                read_latencies(&outcome(seed, "i3.2xlarge", WITHOUT, 1000).unwrap()).unwrap();
            assert!(p95 > 3_000.0, "{p95}");
        }
    }
}
