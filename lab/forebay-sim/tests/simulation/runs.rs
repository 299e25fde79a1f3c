//! What a run yields.

use std::time::Duration;

use forebay_core::{Policy, Time};
use forebay_sim::simulation::{
    Change, Outcome, Period, Polling, Simulation, SimulationError, Stalls, What,
};

use crate::fixture::{MILLI, TestDisk, config, jobs, reads, run};

#[test]
fn shares_are_kept_and_the_disk_is_used_up() {
    let text = reads("heavy", "all", 32, "4kB", 500) + &reads("light", "all", 32, "4kB", 100);
    let outcome = run(config(&text, 1, TestDisk::new(20_000, 500_000_000)));
    let [heavy, light] = outcome.result.classes.as_slice() else { panic!() };
    let ratio = heavy.iops / light.iops;
    assert!((ratio / 5.0 - 1.0).abs() < 0.005, "{ratio}");
    assert!(outcome.utilisation > 0.999 && outcome.utilisation < 1.001, "{}", outcome.utilisation);
    assert_eq!(outcome.result.backend, "simulated");
    assert_eq!(outcome.result.cpu_seconds, None);
    assert_eq!(outcome.result.properties.read_iops, Some(20_000));
    assert!((outcome.result.disk.unwrap().consumption_mean - 1.0).abs() < 0.001);
}

#[test]
fn one_seed_is_one_run() {
    let text = "
- {name: a, type: randread, shards: all, shard_info: {parallelism: 8, rps: 300, reqsize: 4kB},
   options: {pause_distribution: poisson}}
- {name: b, type: randwrite, shards: [1], shard_info: {parallelism: 3, reqsize: 1MB},
   options: {fsync_every: 3}}
- {name: c, type: cpu, shards: [0], shard_info: {parallelism: 1, execution_time: 300us,
   think_time: 5ms}}
- {name: d, type: unlink, shards: [2], files_count: 10, shard_info: {parallelism: 1, rps: 100}}
- {name: e, type: append, shards: [2], shard_info: {parallelism: 2, reqsize: 64kB}}
";
    let json = |seed| {
        let mut config = config(text, 3, TestDisk::new(20_000, 500_000_000));
        config.seed = seed;
        config.stalls =
            Some(Stalls { one_in: 50, length: Duration::from_millis(1), shards: vec![1] });
        serde_json::to_string(&run(config).result).unwrap()
    };
    assert_eq!(json(1), json(1));
    assert_ne!(json(1), json(2));
}

#[test]
fn observing_a_run_changes_nothing_and_matches_its_result() {
    let text = reads("heavy", "all", 32, "4kB", 500) + &reads("light", "all", 32, "4kB", 100);
    let config = || config(&text, 2, TestDisk::new(20_000, 500_000_000));
    let mut seen = Vec::new();
    let period = Duration::from_millis(10);
    let observed = Simulation::new(config()).unwrap();
    let observed = observed.run_observed(period, &mut |look| seen.push(look)).unwrap();
    let json = |outcome: &Outcome| serde_json::to_string(&outcome.result).unwrap();
    assert_eq!(json(&observed), json(&run(config())));
    assert_eq!(seen.len(), 109);
    let done = |at: usize| seen[at].classes.iter().map(|class| class.2.operations[0]).sum::<u64>();
    assert!(done(0) > 0 && done(0) < done(50) && done(50) < done(108));
    let last = &seen[108];
    assert_eq!((last.queues, last.totals.completed), (2, done(108)));
    assert_eq!((last.classes[0].0.as_str(), last.classes[0].1), ("heavy", 500));
}

#[test]
fn an_unscheduled_run_waits_in_the_disk_alone() {
    let mut config = config(&reads("a", "all", 64, "4kB", 100), 1, TestDisk::new(20_000, 1 << 30));
    config.scheduler.policy = Some(Policy::Unlimited);
    let outcome = run(config);
    let class = &outcome.result.classes[0];
    assert_eq!(class.queue_us.max, 0.0);
    assert!((class.disk_us.mean / (64.0 * 50.0 + 50.0) - 1.0).abs() < 0.02, "{class:?}");
    assert_eq!(outcome.result.disk, None);
}

#[test]
fn processor_work_holds_its_shard_up() {
    let text = String::from(
        "- {name: cpu, type: cpu, shards: all, shard_info: {parallelism: 1, execution_time: 1ms}}\n",
    ) + &reads("a", "all", 1, "4kB", 100);
    let outcome = run(config(&text, 1, TestDisk::new(20_000, 1 << 30)));
    let [cpu, read] = outcome.result.classes.as_slice() else { panic!() };
    assert!((999..=1001).contains(&cpu.requests), "{cpu:?}");
    // A completion and the next request each millisecond.
    assert!((999..=1001).contains(&read.requests), "{read:?}");
}

#[test]
fn unfinished_requests_are_reported_at_the_end() {
    let text = "
- {name: a, type: randread, shards: all, shard_info: {parallelism: 1, rps: 100, batch: 10}}
";
    // Ten requests a second, of 1000 asked for.
    let outcome = run(config(text, 1, TestDisk::new(10, 1 << 30)));
    let class = &outcome.result.classes[0];
    assert_eq!(class.requests + class.unfinished, 1100);
    assert_eq!(class.requests, 10);
    assert_eq!(class.latency_us.max, 1e6);
}

#[test]
fn a_run_ends_when_all_limits_are_reached() {
    let text = "
- {name: a, type: randread, shards: all, shard_info: {parallelism: 4, limit: 10000}}
";
    let outcome = run(config(text, 1, TestDisk::new(20_000, 1 << 30)));
    assert_eq!(outcome.requests, 10_000);
    assert!(outcome.ended < Time::from_nanos(900 * MILLI), "{:?}", outcome.ended);
    assert_eq!(outcome.result.classes[0].unfinished, 0);
}

#[test]
fn jobs_come_and_go_and_shares_change() {
    let text = reads("a", "all", 32, "4kB", 100) + &reads("b", "all", 32, "4kB", 100);
    let mut config = config(&text, 2, TestDisk::new(20_000, 1 << 30));
    config.warmup = Duration::ZERO;
    config.trace_buckets = Some(10);
    let at = |millis: u64| Time::from_nanos(millis * MILLI);
    config.schedule = vec![Period { job: "b".into(), from: at(200), to: Some(at(800)) }];
    let what = What::Shares { class: "a".into(), shares: 300 };
    config.changes = vec![Change { at: at(500), what }];
    let outcome = run(config);
    let trace = outcome.trace.unwrap();
    assert_eq!(trace.slice_nanos, 100 * MILLI);
    let part = |slice: usize| {
        let [a, b] = [0, 1].map(|class| trace.classes[class].samples[slice].operations as f64);
        a / (a + b)
    };
    for (slice, expected) in [(0, 1.0), (3, 0.5), (6, 0.75), (9, 1.0)] {
        assert!((part(slice) - expected).abs() < 0.01, "{slice}: {}", part(slice));
    }
    assert!(trace.classes.iter().all(|class| class.samples.len() == 10));
}

#[test]
fn files_lie_one_after_the_other() {
    let text = reads("a", "all", 1, "4kB", 100) + &reads("b", "all", 1, "4kB", 100);
    let mut config = config(&text, 2, TestDisk::new(20_000, 1 << 30));
    config.capacity = Some(1 << 30);
    let error = Simulation::new(config).err().unwrap();
    let expected =
        SimulationError::Capacity { job: "b".into(), needed: 3 << 29, capacity: 1 << 30 };
    assert_eq!(error, expected);
}

#[test]
fn dispatch_on_the_tick_alone() {
    let mut config = config(&reads("a", "all", 1, "4kB", 100), 2, TestDisk::new(20_000, 1 << 30));
    config.polling = Polling::Tick(500_000);
    let outcome = run(config);
    // One request per tick and shard.
    assert!((3990..=4000).contains(&outcome.result.classes[0].requests));
}

#[test]
fn slips_are_named() {
    let mut slip = config(&reads("a", "all", 1, "4kB", 100), 1, TestDisk::new(20_000, 1 << 30));
    slip.schedule = vec![Period { job: "b".into(), from: Time::ZERO, to: None }];
    let error = Simulation::new(slip).err().unwrap();
    assert_eq!(error, SimulationError::Period { job: "b".into() });
    let mut slip = config(&reads("a", "all", 1, "4kB", 100), 1, TestDisk::new(20_000, 1 << 30));
    slip.polling = Polling::Tick(0);
    assert!(matches!(Simulation::new(slip).err(), Some(SimulationError::Zero(_))));
    assert_eq!(jobs(&reads("a", "all", 1, "4kB", 100), 1).jobs.len(), 1);
}
