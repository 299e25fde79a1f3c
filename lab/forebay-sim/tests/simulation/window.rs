//! How much waits in a disk that is slower than its model, and what a stalling shard costs, for
//! each policy.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use forebay_core::{DiskModel, DiskRates, LATENCY_GOAL_DEFAULT, Policy};
use forebay_sim::simulation::{SchedulerConfig, SimulationConfig, Stalls};

use crate::fixture::{MILLI, TestDisk, config, reads, run};

const IOPS: u64 = 100_000;
const BANDWIDTH: u64 = 1_000_000_000;
/// The latency goal is longer than the base latency and than 128 KiB take.
const EFFECTIVE_GOAL_US: f64 = 750.0;

struct Observation {
    /// The longest time a request waited in the disk beyond its base latency, in effective goals.
    goals: f64,
    /// The part of the time in which the disk served something.
    busy: f64,
}

fn policies() -> [Policy; 3] {
    let latency_goal = LATENCY_GOAL_DEFAULT;
    [
        Policy::PaceWindow { latency_goal, base_latency: Some(Duration::from_micros(50)) },
        Policy::TwoLevelBucket { latency_goal },
        Policy::FlowRatio { latency_goal },
    ]
}

/// Two seconds of deep reads on a disk for which `set_up` makes things hard.
fn see(
    policy: Policy,
    too_fast_percent: u64,
    disk: TestDisk,
    shards: u32,
    stalls: bool,
) -> Observation {
    let busy = Arc::clone(&disk.busy);
    let base_us = disk.latency as f64 / 1e3;
    let text = reads("a", "all", 128, "4kB", 100) + &reads("b", "all", 64, "64kB", 100);
    let mut config: SimulationConfig = config(&text, shards, disk);
    config.scheduler = SchedulerConfig::by_figures();
    let faster = |rate: u64| rate * (100 + too_fast_percent) / 100;
    let rates = DiskRates {
        read_iops: faster(IOPS),
        write_iops: faster(IOPS),
        read_bandwidth: faster(BANDWIDTH),
        write_bandwidth: faster(BANDWIDTH),
    };
    config.scheduler.model = Some(DiskModel::from_rates(&rates).unwrap());
    config.scheduler.policy = Some(policy);
    config.warmup = Duration::ZERO;
    config.duration = Duration::from_secs(2);
    if stalls {
        config.stalls =
            Some(Stalls { one_in: 100, length: Duration::from_millis(10), shards: vec![0] });
    }
    let outcome = run(config);
    let longest = outcome.result.classes.iter().map(|class| class.disk_us.max);
    let goals = (longest.fold(0.0, f64::max) - base_us) / EFFECTIVE_GOAL_US;
    Observation { goals, busy: busy.load(Ordering::Relaxed) as f64 / 64.0 / 2e9 }
}

/// What each policy makes of it, printed; ours first.
fn compare(name: &str, case: impl Fn(Policy) -> Observation) -> Observation {
    let mut table = format!("{name:<34} {:>12} {:>8}\n", "wait, goals", "used, %");
    let mut ours = None;
    for policy in policies() {
        let seen = case(policy);
        let (name, used) = (policy.name(), seen.busy * 100.0);
        table += &format!("  {name:<32} {:>12.2} {used:>8.2}\n", seen.goals);
        ours.get_or_insert(seen);
    }
    println!("{table}");
    ours.unwrap()
}

#[test]
fn a_model_that_is_too_fast() {
    for percent in [5, 20] {
        let ours = compare(&format!("model {percent} % too fast"), |policy| {
            see(policy, percent, TestDisk::new(IOPS, BANDWIDTH), 1, false)
        });
        assert!(ours.goals < 3.0, "{percent} %: {}", ours.goals);
        assert!(ours.busy > 0.995, "{percent} %: {}", ours.busy);
    }
}

#[test]
fn a_disk_that_is_slow_for_200_ms() {
    let ours = compare("30 % speed for 200 ms", |policy| {
        let mut disk = TestDisk::new(IOPS, BANDWIDTH);
        disk.slow = Some((500 * MILLI, 700 * MILLI, 333));
        see(policy, 0, disk, 1, false)
    });
    assert!(ours.goals < 10.0, "{}", ours.goals);
    assert!(ours.busy > 0.995, "{}", ours.busy);
}

#[test]
fn a_shard_of_eight_that_stalls() {
    let ours = compare("one of 8 shards stalls, 1 % of polls", |policy| {
        see(policy, 0, TestDisk::new(IOPS, BANDWIDTH), 8, true)
    });
    assert!(ours.busy > 0.995, "{}", ours.busy);
}
