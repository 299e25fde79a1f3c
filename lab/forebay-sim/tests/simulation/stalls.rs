//! The verdicts on a disk that stalls, under any load.

use std::fmt::Write;
use std::time::Duration;

use forebay_config::Source;
use forebay_load::results::model::DiskResult;
use forebay_sim::simulation::SimulationConfig;
use forebay_sim::spec::DiskSpec;

use crate::fixture::{jobs, reads, run};

/// 20,000 requests per second within 200 us, 100 MB/s.
const FAST: &str = "kind: ideal\nchannels: 4\nread_latency: 200us\nwrite_latency: 200us\n\
                    bandwidth: 100000000\ncapacity: 64GB\n";
const HARD: &str = include_str!("../../presets/hdd-7200rpm.yaml");

fn hangs(spans_ms: &[(u64, u64)]) -> String {
    let mut faults = String::from("faults:\n");
    for (from, to) in spans_ms {
        writeln!(faults, "  - {{kind: hang, from: {from}ms, to: {to}ms}}").unwrap();
    }
    faults
}

/// Twenty seconds on such a disk, under a latency target.
fn disk_of(disk: &str, faults: &str, load: &str, shards: u32) -> DiskResult {
    let text = format!("{disk}{faults}");
    let disk = DiskSpec::parse(&Source::new("disk.yaml", &text)).unwrap().build(1);
    let mut config = SimulationConfig {
        warmup: Duration::ZERO,
        duration: Duration::from_secs(20),
        ..SimulationConfig::new(jobs(load, shards), disk)
    };
    config.scheduler.latency_target = Some("disk:p95=1500us".parse().unwrap());
    run(config).result.disk.unwrap()
}

/// More than the disk does, of random reads and of long writes.
fn backlog() -> String {
    let bulk = "- {name: bulk, type: seqwrite, shards: all, data_size: 256MB, \
                shard_info: {parallelism: 64, reqsize: 128kB, shares: 100}}\n";
    reads("queries", "all", 64, "4kB", 1000) + bulk
}

#[test]
fn time_in_which_a_loaded_disk_stands_still_is_waited_time_and_a_stall() {
    for shards in [1, 4] {
        let disk = disk_of(FAST, &hangs(&[(4_000, 10_000)]), &backlog(), shards);
        let seen = format!("{shards} shards: {disk:?}");
        let stalls = disk.stalls.unwrap();
        assert_eq!(stalls.count, 1, "{seen}");
        assert!((stalls.seconds - 6.0).abs() < 0.01, "{seen}");
        assert_eq!(stalls.longest_seconds, stalls.seconds, "{seen}");
        assert!(stalls.overdue > 100, "{seen}");
        assert!((disk.speed.unwrap() - 0.7).abs() < 0.03, "{seen}");
        assert!(disk.waited_seconds.unwrap() > 19.5, "{seen}");
        assert!((disk.running_speed(20.0).unwrap() - 1.0).abs() < 0.05, "{seen}");
        assert_eq!(disk.latency_target.unwrap().holds, Some(false), "{shards} shards");
    }
}

#[test]
fn each_of_several_stalls_is_counted_however_long_they_are() {
    for length_ms in [150, 300, 600, 1_500] {
        let spans = (0..9).map(|n| (1_000 + n * 2_000, 1_000 + n * 2_000 + length_ms));
        let spans: Vec<(u64, u64)> = spans.collect();
        let disk = disk_of(FAST, &hangs(&spans), &backlog(), 1);
        let seen = format!("{length_ms} ms: {disk:?}");
        let stalls = disk.stalls.unwrap();
        let all = (9 * length_ms) as f64 / 1e3;
        assert_eq!(stalls.count, 9, "{seen}");
        assert!((stalls.seconds - all).abs() < 0.05, "{seen}");
        assert!((stalls.longest_seconds - length_ms as f64 / 1e3).abs() < 0.02, "{seen}");
        assert!((disk.speed.unwrap() - (1.0 - all / 20.0)).abs() < 0.04, "{seen}");
        assert!(disk.waited_seconds.unwrap() > 19.0, "{seen}");
    }
}

#[test]
fn a_stall_that_lasts_when_the_run_ends_is_counted_until_then() {
    let disk = disk_of(FAST, &hangs(&[(15_000, 60_000)]), &backlog(), 2);
    let stalls = disk.stalls.unwrap();
    assert_eq!(stalls.count, 1);
    assert!((stalls.seconds - 5.0).abs() < 0.01, "{stalls:?}");
    assert!((disk.speed.unwrap() - 0.75).abs() < 0.03, "{disk:?}");
}

#[test]
fn a_stall_under_a_light_load_is_named_too() {
    let one = reads("one", "[0]", 1, "4kB", 100);
    for (disk, faults) in [(FAST, [(4_000, 10_000)]), (HARD, [(4_000, 10_000)])] {
        let disk = disk_of(disk, &hangs(&faults), &one, 2);
        let stalls = disk.stalls.unwrap();
        assert_eq!((stalls.count, stalls.overdue), (1, 1), "{disk:?}");
        assert!((stalls.seconds - 6.0).abs() < 0.03, "{disk:?}");
    }
}

#[test]
fn a_light_load_on_a_disk_that_answers_is_no_stall() {
    let loads = [
        reads("one", "[0]", 1, "4kB", 100),
        reads("one", "[0]", 1, "16MB", 100),
        reads("some", "all", 4, "4kB", 100),
        reads("many", "all", 64, "4kB", 100),
    ];
    for disk in [FAST, HARD] {
        for load in &loads {
            let disk = disk_of(disk, "", load, 2);
            assert_eq!(disk.stalls, None, "{load}: {disk:?}");
        }
    }
}

#[test]
fn a_stall_is_seen_in_the_samples_in_which_it_lasts() {
    let text = format!("{FAST}{}", hangs(&[(4_000, 10_000)]));
    let disk = DiskSpec::parse(&Source::new("disk.yaml", &text)).unwrap().build(1);
    let config = SimulationConfig {
        warmup: Duration::ZERO,
        duration: Duration::from_secs(20),
        series: true,
        ..SimulationConfig::new(jobs(&backlog(), 1), disk)
    };
    let series = run(config).result.series.unwrap();
    let samples = series.ends_seconds.iter().zip(&series.disk.stopped_seconds);
    let (during, outside): (Vec<_>, Vec<_>) =
        samples.partition(|(end, _)| (4.0..10.5).contains(*end));
    let stalled: f64 = during.iter().map(|(_, stalled)| **stalled).sum();
    assert!((stalled - 6.0).abs() < 0.01, "{during:?}");
    assert!(outside.iter().all(|(_, stalled)| **stalled == 0.0), "{outside:?}");
}
