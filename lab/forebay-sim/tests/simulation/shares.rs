//! Classes get what their shares say across shards, and nothing of the disk is lost.

use std::time::Duration;

use forebay_core::{Policy, Time};
use forebay_sim::simulation::{Outcome, Polling, SchedulerConfig};

use crate::fixture::{MILLI, TestDisk, config, reads, run};

/// Disk time that each class got, as the scheduler sees it.
fn used(text: &str, shards: u32, disk: TestDisk) -> (Vec<f64>, f64) {
    let mut config = config(text, shards, disk);
    config.duration = Duration::from_secs(3);
    config.trace_buckets = Some(31);
    let outcome = run(config);
    (disk_times(&outcome), outcome.utilisation)
}

fn disk_times(outcome: &Outcome) -> Vec<f64> {
    let classes = &outcome.trace.as_ref().unwrap().classes;
    let of_class = |samples: &[forebay_sim::simulation::Sample]| {
        samples.iter().skip(1).map(|sample| sample.disk_time.units() as f64).sum()
    };
    classes.iter().map(|class| of_class(&class.samples)).collect()
}

/// How far `used` is from the proportions of `shares`, the worst of them.
fn share_error(used: &[f64], shares: &[u32]) -> f64 {
    let total: f64 = used.iter().sum();
    let weights: f64 = shares.iter().map(|&share| f64::from(share)).sum();
    let error =
        |(used, &share): (&f64, &u32)| (used / total / (f64::from(share) / weights) - 1.0).abs();
    used.iter().zip(shares).map(error).fold(0.0, f64::max)
}

fn assert_shares(name: &str, (used, utilisation): (Vec<f64>, f64), shares: &[u32]) {
    let error = share_error(&used, shares);
    println!("{name}: off by {:.2} %, {:.2} % used", error * 100.0, utilisation * 100.0);
    assert!(error < 0.03, "{name}: off by {error}");
    assert!(utilisation > 0.99, "{name}: {utilisation}");
}

#[test]
fn five_to_one_on_two_shards() {
    let text = reads("heavy", "[0]", 32, "4kB", 500) + &reads("light", "[1]", 32, "4kB", 100);
    assert_shares("5:1", used(&text, 2, TestDisk::new(20_000, 500_000_000)), &[5, 1]);
}

#[test]
fn ten_to_one_with_the_heavy_class_on_one_shard_of_eight() {
    let text = reads("heavy", "[3]", 256, "4kB", 1000)
        + &reads("light", "[0, 1, 2, 4, 5, 6, 7]", 64, "4kB", 100);
    assert_shares("10:1", used(&text, 8, TestDisk::new(100_000, 1_000_000_000)), &[10, 1]);
}

#[test]
fn short_requests_with_long_ones_on_four_shards() {
    // About 7 us and 217 us at these rates, then 7 us and 90 us.
    for (size, bandwidth) in [("128kB", 605_000_000), ("32kB", 605_000_000)] {
        let text = reads("short", "[0]", 64, "1kB", 100)
            + &reads("long1", "[1]", 64, size, 100)
            + &reads("long2", "[2]", 64, size, 100)
            + &reads("long3", "[3]", 64, size, 100);
        let used = used(&text, 4, TestDisk::new(134_608, bandwidth));
        assert_shares(&format!("1 KiB alongside {size}"), used, &[1; 4]);
    }
}

#[test]
fn a_shard_without_processor_time() {
    // Shard 0 looks at its queue between two pieces of work of 2 ms each.
    let text = reads("starved", "[0]", 64, "4kB", 100)
        + &reads("free", "[1]", 64, "4kB", 100)
        + "- {name: work, type: cpu, shards: [0], shard_info: {parallelism: 2, \
           execution_time: 2ms, think_time: 1ms}}\n";
    let (used, utilisation) = used(&text, 2, TestDisk::new(20_000, 500_000_000));
    let part = used[0] / (used[0] + used[1]) * 100.0;
    println!("a starved shard: {part:.1} % of half, {:.2} % used", utilisation * 100.0);
    assert!(utilisation > 0.99, "{utilisation}");
}

#[test]
fn a_heavy_class_at_depth_1() {
    let text = reads("heavy", "[0]", 1, "4kB", 500) + &reads("light", "[1]", 64, "4kB", 100);
    let (used, utilisation) = used(&text, 2, TestDisk::new(20_000, 500_000_000));
    println!("depth 1: {used:?}, {:.2} % used", utilisation * 100.0);
    assert!(utilisation > 0.99, "{utilisation}");
}

#[test]
fn a_rare_request_of_a_heavy_class_among_eight_busy_shards() {
    let text = String::from(
        "- {name: rare, type: randread, shards: [0], shard_info: {parallelism: 1, rps: 250, \
         reqsize: 4kB, shares: 1000}}\n",
    ) + &reads("background", "all", 64, "128kB", 100);
    for (polling, bound_us) in [(Polling::Events, 400.0), (Polling::Tick(500_000), 1500.0)] {
        let mut config = config(&text, 8, TestDisk::new(100_000, 1_000_000_000));
        config.duration = Duration::from_secs(4);
        config.polling = polling;
        let outcome = run(config);
        let rare = &outcome.result.classes[0];
        println!(
            "a rare request, {polling:?}: p99 {} us in the queue of {} requests, {:.2} % used",
            rare.queue_us.p99,
            rare.requests,
            outcome.utilisation * 100.0
        );
        assert!(rare.queue_us.p99 <= bound_us, "{polling:?}: {:?}", rare.queue_us);
        assert_eq!(outcome.ended, Time::from_nanos(4100 * MILLI));
    }
}

/// Requests of the last class of the file on each shard.
fn requests_by_shard(outcome: &Outcome) -> Vec<f64> {
    let shards = outcome.result.shards.iter();
    shards.map(|shard| shard.classes.last().map_or(0, |class| class.requests) as f64).collect()
}

#[test]
fn a_light_class_on_two_shards_with_a_heavy_one_on_one_of_them() {
    let text = reads("heavy", "[1]", 256, "4kB", 10_000)
        + "- {name: light, type: randread, shards: [0, 1], shard_info: {parallelism: 1, \
           rps: 1000, reqsize: 512, shares: 50}}\n";
    let mut config = config(&text, 2, TestDisk::new(120_000, 500_000_000));
    // how a class divides its part among shards is promised where the pace binds
    config.scheduler = SchedulerConfig::by_figures();
    // a lead of one goal, which is allowed, is worth some 30 requests
    config.duration = Duration::from_secs(5);
    let requests = requests_by_shard(&run(config));
    println!("requests of the light class by shard: {requests:?}");
    assert!(share_error(&requests, &[1, 1]) < 0.03, "{requests:?}");
}

#[test]
fn three_shards_of_a_disk_with_room_for_two_requests() {
    let mut disk = TestDisk::new(1600, 209_715_200);
    disk.latency = 5 * MILLI;
    let mut config = config(&reads("a", "all", 1, "512", 100), 3, disk);
    // A base latency that is far too short.
    config.scheduler.policy = Some(Policy::PaceWindow {
        latency_goal: Duration::from_micros(100),
        base_latency: Some(Duration::ZERO),
    });
    config.check_invariants = false;
    let requests = requests_by_shard(&run(config));
    println!("requests by shard: {requests:?}");
    assert!(share_error(&requests, &[1; 3]) < 0.03, "{requests:?}");
}
