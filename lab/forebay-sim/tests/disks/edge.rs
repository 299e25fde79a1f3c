//! A surface disk at work: the same by its seed, and beyond its edge.

use std::time::Duration;

use forebay_config::Source;
use forebay_core::{Control, LATENCY_GOAL_DEFAULT, Policy};
use forebay_load::job_file::JobFile;
use forebay_sim::simulation::{Simulation, SimulationConfig};
use forebay_sim::spec::DiskSpec;

use crate::{SURFACES, load};

#[test]
fn a_seed_gives_one_run_and_another_seed_another() {
    for (name, _) in SURFACES {
        let disk = DiskSpec::resolve(name).unwrap();
        let rates = disk.build(1).rates();
        let (write, read) = (rates.write_bandwidth as f64 * 0.2, rates.read_iops as f64 * 0.3);
        let run = |seed| load::percentiles(&mut *disk.build(seed), write, read);
        assert_eq!(run(1), run(1), "{name}");
        assert_ne!(run(1), run(2), "{name}");
    }
}

/// The reads that wait after `seconds`, at this many times what the disk does.
fn waiting(disk: &DiskSpec, times: f64, seconds: f64) -> u64 {
    let rates = disk.build(1).rates();
    let read_iops = rates.read_iops as f64 * times;
    load::reads_under_way(&mut *disk.build(1), read_iops, seconds)
}

#[test]
fn beyond_the_edge_the_queue_grows_by_what_is_too_much() {
    for (name, _) in SURFACES {
        let disk = DiskSpec::resolve(name).unwrap();
        let rate = disk.build(1).rates().read_iops as f64;
        // long enough for 20,000 reads
        let seconds = 20_000.0 / rate;
        let inside = [1.0, 2.0].map(|times| waiting(&disk, 0.7, seconds * times));
        assert!(inside.iter().all(|&reads| reads < 500), "{name}: {inside:?}");
        let [once, twice] = [1.0, 2.0].map(|times| waiting(&disk, 1.5, seconds * times));
        let grown = (twice - once) as f64 / 10_000.0;
        assert!((0.95..1.05).contains(&grown), "{name}: {once}, then {twice}");
    }
}

/// The median and the 99th percentile of what reads take in an i3, in milliseconds, alongside this
/// many writes that wait at any time.
fn in_disk_ms(policy: Policy, writes: u32) -> [f64; 2] {
    let disk = DiskSpec::resolve("i3.2xlarge").unwrap().build(1);
    let job = |name: &str, kind: &str, parallelism: u32, size: &str| {
        format!(
            "- name: {name}\n  type: {kind}\n  shards: all\n  data_size: 1GB\n  shard_info: \
             {{parallelism: {parallelism}, reqsize: {size}, shares: 100}}\n"
        )
    };
    let text = job("query", "randread", 16, "4kB") + &job("backup", "seqwrite", writes, "128kB");
    let jobs = JobFile::parse(&Source::new("jobs.yaml", &text), None, 1).unwrap();
    let mut config = SimulationConfig::new(jobs, disk);
    config.warmup = Duration::from_millis(500);
    config.duration = Duration::from_secs(1);
    config.scheduler.policy = Some(policy);
    config.scheduler.control = Control::Rates;
    let outcome = Simulation::new(config).and_then(Simulation::run).unwrap();
    let took = &outcome.result.classes[0].disk_us;
    [took.p50 / 1e3, took.p99 / 1e3]
}

#[test]
fn a_window_bounds_the_latency_beyond_the_edge() {
    let ours = Policy::PaceWindow { latency_goal: LATENCY_GOAL_DEFAULT, base_latency: None };
    let open = [64, 512].map(|writes| in_disk_ms(Policy::Unlimited, writes));
    let window = [64, 512].map(|writes| in_disk_ms(ours, writes));
    println!(
        "p50 and p99 in the disk alongside 64 and 512 writes: {open:?} ms, windowed {window:?} ms"
    );
    assert!(open[1][0] > 4.0 * open[0][0], "{open:?}");
    // a window of two goals, at the price of the mix, and a few program operations
    assert!(window.iter().all(|&[p50, p99]| p50 < 3.0 && p99 < 10.0), "{window:?}");
    assert!(window[1][0] < 1.1 * window[0][0], "{window:?}");
}
