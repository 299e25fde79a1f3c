//! Flushes on a disk that seeks: they take a turn of the platter, the scheduler knows that, and
//! their latencies are apart.

use std::time::Duration;

use forebay_core::{Control, Policy};
use forebay_load::results::model::{ClassResult, FlushResult};
use forebay_sim::simulation::SimulationConfig;
use forebay_sim::spec::DiskSpec;

use crate::fixture::{jobs, run};

/// What the jobs get on a hard disk.
fn on_a_hard_disk(text: &str, shards: u32, policy: Option<Policy>) -> Vec<ClassResult> {
    let disk = DiskSpec::resolve("hdd-7200rpm").unwrap().build(1);
    let mut config = SimulationConfig {
        warmup: Duration::from_secs(1),
        duration: Duration::from_secs(20),
        check_invariants: true,
        capacity: Some(1862 << 30),
        ..SimulationConfig::new(jobs(text, shards), disk)
    };
    config.scheduler.policy = policy;
    config.scheduler.control = Control::Rates;
    run(config).result.classes
}

/// Jobs that append requests of this many bytes, and flush after this many writes.
fn loggers(count: u32, shards: u32, size: &str, every: u32) -> String {
    let logger = |n: u32| {
        format!(
            "- {{name: log{n}, type: append, shards: [{}], shard_info: {{parallelism: 1, reqsize: \
             {size}, shares: 100}}, options: {{fsync_every: {every}}}}}\n",
            n % shards
        )
    };
    (0..count).map(logger).collect()
}

fn flushes(classes: &[ClassResult]) -> Vec<FlushResult> {
    classes.iter().filter_map(|class| class.flushes).collect()
}

fn per_second(classes: &[ClassResult]) -> f64 {
    flushes(classes).iter().map(|flushes| flushes.iops).sum()
}

#[test]
fn a_scheduled_logger_flushes_a_hard_disk_as_often_as_an_unscheduled_one() {
    for (count, shards) in [(1, 1), (4, 1), (4, 4)] {
        for (size, every) in [("4kB", 1), ("4kB", 8), ("128kB", 1)] {
            let text = loggers(count, shards, size, every);
            let free = per_second(&on_a_hard_disk(&text, shards, Some(Policy::Unlimited)));
            let held = per_second(&on_a_hard_disk(&text, shards, None));
            println!("{count} loggers on {shards}, {size}, every {every}: {free:.0} and {held:.0}");
            assert!(held >= free * 0.95, "{held} of {free} flushes per second");
            assert!(count > 1 || (60.0..200.0).contains(&free), "{free}");
        }
    }
}

#[test]
fn flushes_have_latencies_of_their_own_and_writes_keep_theirs() {
    for policy in [Some(Policy::Unlimited), None] {
        let classes = on_a_hard_disk(&loggers(1, 1, "4kB", 4), 1, policy);
        let [flushes] = flushes(&classes)[..] else { panic!("{classes:?}") };
        let turn_us = 8333.0..9000.0;
        assert!(turn_us.contains(&flushes.latency_us.p50), "{flushes:?}");
        assert!(classes[0].latency_us.p50 < 100.0, "{:?}", classes[0].latency_us);
        assert_eq!(classes[0].requests / 5, flushes.requests);
    }
}

#[test]
fn the_latencies_of_a_job_of_flushes_are_those_of_its_requests() {
    let text = loggers(1, 1, "4kB", 1000)
        + "- {name: sync, type: fsync, shards: [0], shard_info: {parallelism: 1, think_time: 20ms}}\n";
    let classes = on_a_hard_disk(&text, 1, None);
    assert_eq!(classes[1].flushes, None);
    assert!(classes[1].latency_us.p50 > 4000.0, "{:?}", classes[1].latency_us);
}

#[test]
fn a_logger_during_random_reads_flushes_as_often_as_without_a_scheduler() {
    let reads = "- {name: reads, type: randread, shards: [0], data_size: 500GB, shard_info: \
                 {parallelism: 8, reqsize: 4kB, shares: 100}}\n";
    let text = loggers(1, 1, "4kB", 1) + reads;
    let free = per_second(&on_a_hard_disk(&text, 1, Some(Policy::Unlimited)));
    let held = per_second(&on_a_hard_disk(&text, 1, None));
    println!("{free} and {held}");
    assert!(held >= free * 0.95, "{held} of {free}");
}
