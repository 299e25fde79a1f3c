//! What a latency target costs where the disk, or who asks for it, stands still now and then,
//! and once that is over.

use std::time::Duration;

use forebay_core::{Policy, Time};
use forebay_load::results::model::RunResult;
use forebay_sim::simulation::{Period, SimulationConfig, Stalls};

use crate::fixture::{MILLI, TestDisk, config, reads, run};

const TARGETS: [&str; 2] = ["p95=1500us", "disk:p95=1500us"];

/// Four seconds on a disk of 100,000 IOPS that says `disk`'s figures.
fn set_up(jobs: &str, shards: u32, mut disk: TestDisk, target: Option<&str>) -> SimulationConfig {
    disk.latency = 80_000;
    let mut config =
        SimulationConfig { duration: Duration::from_secs(4), ..config(jobs, shards, disk) };
    config.scheduler.policy = Some(Policy::PaceWindow {
        latency_goal: Duration::ZERO,
        base_latency: Some(Duration::from_micros(80)),
    });
    config.scheduler.latency_target = target.map(|target| target.parse().unwrap());
    config
}

fn fast() -> TestDisk {
    TestDisk::new(100_000, 1_000_000_000)
}

fn both() -> String {
    reads("a", "all", 64, "4kB", 100) + &reads("b", "all", 64, "4kB", 300)
}

fn rate(result: &RunResult) -> f64 {
    result.classes.iter().map(|class| class.iops).sum()
}

/// What both classes get together with a target since enqueueing and with one in the disk, as parts
/// of what they get without.
fn parts(mut set_up: impl FnMut(Option<&str>) -> SimulationConfig) -> [f64; 2] {
    let without = rate(&run(set_up(None)).result);
    TARGETS.map(|target| rate(&run(set_up(Some(target))).result) / without)
}

#[test]
fn a_disk_that_stands_still_now_and_then_keeps_its_rate_under_a_target() {
    for (still, each) in [(2, 50), (8, 100), (8, 500), (50, 1000)] {
        let parts = parts(|target| {
            let mut disk = fast();
            disk.stops = Some((still * MILLI, each * MILLI));
            set_up(&both(), 2, disk, target)
        });
        assert!(parts.iter().all(|&part| part > 0.8), "{still} ms in {each} ms: {parts:.3?}");
    }
}

#[test]
fn a_shard_that_turns_late_costs_the_others_little_under_a_target() {
    for millis in [10, 100] {
        let parts = parts(|target| {
            let length = Duration::from_millis(millis);
            let stalls = Some(Stalls { one_in: 20, length, shards: vec![0] });
            SimulationConfig { stalls, ..set_up(&both(), 8, fast(), target) }
        });
        assert!(parts.iter().all(|&part| part > 0.9), "{millis} ms: {parts:.3?}");
    }
}

#[test]
fn threads_that_are_all_away_now_and_then_cost_little_under_a_target() {
    for (one_in, millis) in [(50, 10), (20, 2), (200, 50)] {
        for shards in [1, 2, 8] {
            let parts = parts(|target| {
                let length = Duration::from_millis(millis);
                let stalls = Some(Stalls { one_in, length, shards: (0..shards).collect() });
                SimulationConfig { stalls, ..set_up(&both(), shards, fast(), target) }
            });
            let away = format!("{shards} shards, one turn in {one_in}, {millis} ms");
            assert!(parts.iter().all(|&part| part > 0.6), "{away}: {parts:.3?}");
        }
    }
}

#[test]
fn owners_that_hold_permits_over_computation_are_not_slowed_for_it() {
    let parts = parts(|target| {
        let holders = vec!["a".to_owned()];
        SimulationConfig { holders, ..set_up(&both(), 2, fast(), target) }
    });
    assert!(parts.iter().all(|&part| part > 0.85), "{parts:.3?}");
}

#[test]
fn others_get_their_rate_back_when_those_with_a_target_are_gone() {
    let writes = reads("w", "all", 64, "4kB", 100).replace("randread", "randwrite");
    let rates = [None, Some("p95=100us")].map(|target| {
        let mut config = set_up(&(reads("r", "all", 64, "4kB", 100) + &writes), 2, fast(), target);
        let until = Some(Time::from_nanos(2000 * MILLI));
        config.schedule = vec![Period { job: "r".into(), from: Time::ZERO, to: until }];
        config.warmup = Duration::from_millis(3500);
        config.duration = Duration::from_secs(1);
        rate(&run(config).result)
    });
    assert!(rates[1] > 0.97 * rates[0], "{rates:?}");
}

#[test]
fn a_load_that_begins_after_trouble_and_a_rest_is_served_as_if_nothing_had_been() {
    let light = reads("l", "all", 20, "4kB", 100).replace("shares: 100", "shares: 100, rps: 1000");
    let p95 = |target: Option<&str>| {
        let mut disk = fast();
        disk.slow = Some((0, 1000 * MILLI, 1000));
        let mut config = set_up(&(both() + &light), 2, disk, target);
        let at = |millis: u64| Time::from_nanos(millis * MILLI);
        let early = |job: &str| Period { job: job.into(), from: Time::ZERO, to: Some(at(1000)) };
        config.schedule =
            vec![early("a"), early("b"), Period { job: "l".into(), from: at(2500), to: None }];
        config.warmup = Duration::from_millis(2500);
        config.duration = Duration::from_secs(1);
        let result = run(config).result;
        let class = result.classes.iter().find(|class| class.name == "l").unwrap();
        class.service_us.p99
    };
    let without = p95(None);
    for target in TARGETS {
        assert!(p95(Some(target)) <= 1.05 * without, "{target}: {} {without}", p95(Some(target)));
    }
}
