//! A stream that has the head of a hard disk keeps it for a while: what bulk writes and random
//! reads get together.

use std::time::Duration;

use forebay_core::{Control, Policy};
use forebay_load::results::model::ClassResult;
use forebay_sim::simulation::SimulationConfig;
use forebay_sim::spec::DiskSpec;

use crate::fixture::{jobs, run};

fn job(name: &str, kind: &str, fibers: u32, size: &str, rest: &str) -> String {
    format!(
        "- {{name: {name}, type: {kind}, shards: all, shard_info: {{parallelism: {fibers}, \
         reqsize: {size}, shares: 100{rest}}}\n"
    )
}

/// Reads and bulk writes of a minute on four shards.
fn minute(reads: &str, control: Control) -> [ClassResult; 2] {
    let spec = DiskSpec::resolve("hdd-7200rpm").unwrap();
    let disk = spec.build(1);
    let base_latency = Some(disk.base_latency());
    let text = reads.to_owned() + &job("bulk", "seqwrite", 16, "128kB", "}");
    let mut config = SimulationConfig {
        warmup: Duration::from_secs(2),
        duration: Duration::from_secs(60),
        check_invariants: true,
        capacity: Some(spec.capacity()),
        ..SimulationConfig::new(jobs(&text, 4), disk)
    };
    config.scheduler.policy =
        Some(Policy::PaceWindow { latency_goal: Duration::from_micros(750), base_latency });
    config.scheduler.control = control;
    let classes = run(config).result.classes;
    ["reads", "bulk"].map(|name| classes.iter().find(|class| class.name == name).unwrap().clone())
}

#[test]
fn few_reads_leave_a_hard_disk_to_a_stream_and_are_soon_served() {
    // a fifth of the 165 per second that the disk does
    let rest = ", rps: 2}, options: {pause_distribution: poisson}";
    let reads = job("reads", "randread", 4, "4kB", rest);
    for control in [Control::Rates, Control::Adaptive] {
        let [reads, bulk] = minute(&reads, control);
        let bandwidth = bulk.bandwidth_bytes_per_second as f64 / 1e6;
        let p99 = reads.latency_us.p99 / 1e3;
        assert!(bandwidth > 100.0, "{control:?}: {bandwidth} MB/s");
        assert!(p99 < 120.0, "{control:?}: {p99} ms");
    }
}

#[test]
fn a_stream_and_random_reads_share_what_a_hard_disk_does_of_both() {
    let [reads, bulk] = minute(&job("reads", "randread", 64, "4kB", "}"), Control::Adaptive);
    let bandwidth = bulk.bandwidth_bytes_per_second as f64 / 1e6;
    assert!(bandwidth > 34.0 && reads.iops > 260.0, "{bandwidth} MB/s, {} reads/s", reads.iops);
    // a request of either is charged the same
    let of_bulk = bulk.iops / (bulk.iops + reads.iops);
    assert!((0.48..0.52).contains(&of_bulk), "{of_bulk}");
}
