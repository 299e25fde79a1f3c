//! The counter of wake-ups agrees with the threads that the simulation woke.

use core::time::Duration;

use forebay_sim::simulation::{Outcome, SimulationConfig};
use forebay_sim::spec::DiskSpec;

use crate::fixture::{TestDisk, config, reads, run};

const SECONDS: u64 = 1;

/// A run of which all is measured, so that what is counted is all that happened.
fn measured(text: &str, shards: u32, wake_up_latency: Duration) -> Outcome {
    let disk = TestDisk::new(100_000, 1_000_000_000);
    run(SimulationConfig {
        warmup: Duration::ZERO,
        duration: Duration::from_secs(SECONDS),
        wake_up_latency,
        ..config(text, shards, disk)
    })
}

/// Few reads with a due time each, and writes without bound.
fn reads_and_writes(depth: u32) -> String {
    format!(
        "- {{name: reads, type: randread, shards: all, data_size: 1GB, shard_info: {{parallelism: 4, \
         rps: 50, reqsize: 4kB, shares: 100}}, options: {{pause_distribution: poisson}}}}\n\
         - {{name: bulk, type: seqwrite, shards: all, data_size: 1GB, shard_info: {{parallelism: \
         {depth}, reqsize: 128kB, shares: 100}}}}\n"
    )
}

fn loads() -> [(&'static str, String); 3] {
    [
        ("one at a time", reads("reads", "all", 1, "4kB", 100)),
        ("a backlog", reads("reads", "all", 32, "4kB", 100)),
        ("reads and writes", reads_and_writes(16)),
    ]
}

#[test]
fn counted_wake_ups_are_those_that_happened() {
    let mut all = 0;
    for (name, text) in loads() {
        for shards in [1, 2, 16] {
            for late in [0, 5] {
                let outcome = measured(&text, shards, Duration::from_micros(late));
                let counted = outcome.result.disk.unwrap().wake_ups;
                println!("{name}, {shards} shards, {late} us late: {counted:?}");
                assert_eq!(counted, Some(outcome.wake_ups), "{name}, {shards} shards, {late} us");
                all += outcome.wake_ups;
            }
        }
    }
    assert!(all > 1_000, "{all}");
}

/// The window of this disk holds few requests, so that room is scarce and soon used up.
#[test]
fn on_a_small_window_a_request_wakes_few_of_many_shards() {
    for shards in [16, 64] {
        let text = reads_and_writes(16);
        let disk = TestDisk::new(100_000, 1_000_000_000);
        let outcome = run(SimulationConfig {
            disk: DiskSpec::resolve("gp3").unwrap().build(1),
            duration: Duration::from_secs(3),
            ..config(&text, shards, disk)
        });
        let wake_ups = outcome.result.disk.unwrap().wake_ups.unwrap();
        let requests: u64 = outcome.result.classes.iter().map(|class| class.requests).sum();
        println!("{shards} shards: {wake_ups} wake-ups for {requests} requests");
        assert!(requests > 3_000, "{shards} shards: {requests}");
        let most = 3 * requests + 20 * 3 * u64::from(shards);
        assert!(wake_ups <= most, "{shards} shards: {wake_ups} for {requests}");
    }
}
