//! What is said of a disk under a latency target, and targets that change under load.

use std::time::Duration;

use forebay_core::{DiskModel, DiskRates, LatencyTarget, Policy, Time};
use forebay_load::results::model::{DiskResult, RunResult};
use forebay_sim::simulation::{Change, SimulationConfig, What};

use crate::fixture::{TestDisk, config, reads, run};

const IOPS: u64 = 100_000;
const BANDWIDTH: u64 = 1_000_000_000;

/// Four seconds of reads of 4 KiB, on a disk that is said to be `percent` as fast as it is.
fn set_up(jobs: &str, percent: u64, target: Option<LatencyTarget>) -> SimulationConfig {
    let mut disk = TestDisk::new(IOPS, BANDWIDTH);
    disk.latency = 50_000;
    let mut config: SimulationConfig = config(jobs, 2, disk);
    let said = |rate: u64| rate * percent / 100;
    let rates = DiskRates {
        read_iops: said(IOPS),
        write_iops: said(IOPS),
        read_bandwidth: said(BANDWIDTH),
        write_bandwidth: said(BANDWIDTH),
    };
    config.scheduler.model = Some(DiskModel::from_rates(&rates).unwrap());
    config.scheduler.policy = Some(Policy::PaceWindow {
        latency_goal: Duration::ZERO,
        base_latency: Some(Duration::from_micros(50)),
    });
    config.scheduler.latency_target = target;
    config.duration = Duration::from_secs(4);
    config
}

fn saturated() -> String {
    reads("a", "all", 64, "4kB", 100) + &reads("b", "all", 64, "4kB", 200)
}

fn disk_of(config: SimulationConfig) -> DiskResult {
    run(config).result.disk.unwrap()
}

#[test]
fn the_speed_is_what_the_disk_does_of_its_figures_with_a_target_and_without() {
    // more than the window of a model that is too fast holds
    let deep = reads("a", "all", 512, "4kB", 100);
    for percent in [50, 170] {
        for target in [None, Some("p95=1500us".parse().unwrap())] {
            let mut config = set_up(&deep, percent, target);
            config.duration = Duration::from_secs(8);
            let disk = disk_of(config);
            let truth = 100.0 / percent as f64;
            let speed = disk.speed.unwrap();
            assert!((speed / truth - 1.0).abs() < 0.06, "{percent} %, {target:?}: {speed}");
            assert!((disk.flow_ratio - 1.0).abs() < 0.01, "{}", disk.flow_ratio);
            assert_eq!(disk.latency_target.is_some(), target.is_some());
        }
    }
}

#[test]
fn a_target_is_measured_and_holds() {
    let target = "disk:p99=2ms".parse().unwrap();
    let of = disk_of(set_up(&saturated(), 200, Some(target))).latency_target.unwrap();
    assert_eq!((of.target.as_str(), of.latency_us), ("disk:p99=2ms", 2000.0));
    assert!(of.measured > 100_000 && of.over <= of.measured / 100, "{of:?}");
    assert!(of.holds == Some(true) && of.attainable, "{of:?}");
}

/// All that two classes ask for fits into a lenient target: in the disk it would have no order.
#[test]
fn classes_share_as_asked_where_a_lenient_target_would_let_all_of_it_in() {
    for percent in [120, 150, 190] {
        let mut config = set_up(&saturated(), percent, Some("p95=5ms".parse().unwrap()));
        config.warmup = Duration::from_secs(1);
        let result = run(config).result;
        let iops =
            |name: &str| result.classes.iter().find(|class| class.name == name).unwrap().iops;
        let [a, b] = [iops("a"), iops("b")];
        assert!((b / a / 2.0 - 1.0).abs() < 0.05, "{percent} %: {a} and {b}");
        assert!(a + b > 0.97 * IOPS as f64, "{percent} %: {a} and {b}");
    }
}

#[test]
fn a_light_load_sees_nothing_of_a_target_and_says_nothing_of_the_speed() {
    let light = "- {name: a, shards: all, type: randread, shard_info: {parallelism: 4, reqsize: 4kB, \
                 rps: 1250, shares: 100}, options: {pause_distribution: poisson}}\n";
    let result = |target| -> RunResult { run(set_up(light, 100, target)).result };
    let (without, mut with) = (result(None), result("p95=5ms".parse().ok()));
    let disk = with.disk.as_mut().unwrap();
    assert_eq!(disk.speed, None);
    assert!(disk.latency_target.take().is_some());
    assert_eq!(with, without);
}

#[test]
fn a_target_that_goes_takes_its_cap_with_it_and_one_that_comes_brings_it() {
    let target = Some("disk:p95=250us".parse().unwrap());
    // the 95th percentile in the disk before and after the change, in nanoseconds: the median of
    // slices of some 100 ms
    let in_disk = |first, then| {
        let mut config = set_up(&saturated(), 100, first);
        let at = Time::from_nanos(1_500_000_000);
        config.changes = vec![Change { at, what: What::Target { target: then } }];
        config.trace_buckets = Some(40);
        let trace = run(config).trace.unwrap();
        let slice = |millis: u64| (millis * 1_000_000 / trace.slice_nanos) as usize;
        [(300, 1400), (2000, 4000)].map(|(from, to)| {
            let slices = &trace.corrections[slice(from)..slice(to)];
            let mut nanos: Vec<_> = slices.iter().map(|slice| slice.percentile_nanos).collect();
            nanos.sort_unstable();
            nanos[nanos.len() / 2]
        })
    };
    let [goes, comes] = [in_disk(target, None), in_disk(None, target)];
    assert!(goes[0] <= 250_000 && goes[1] > 300_000, "{goes:?}");
    assert!(comes[0] > 300_000 && comes[1] <= 250_000, "{comes:?}");
}
