//! Mixes by the region that `explore` wrote, alongside the straight line.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::loop_mount::Lab;
use crate::process::{Ended, run};

const PRESETS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../lab/forebay-sim/presets");

/// Half of the disk time for small reads, half for large writes, more of both than it does.
const MIXED: &str = "
- name: reads
  type: randread
  shards: all
  shard_info: {parallelism: 64, reqsize: 4kB, shares: 100}
- name: writes
  type: randwrite
  shards: all
  shard_info: {parallelism: 16, reqsize: 128kB, shares: 100}
";

fn forebay(arguments: &[&str]) -> Ended {
    run(Command::new(env!("CARGO_BIN_EXE_forebay")).args(arguments))
}

/// A forebay.yaml of the disk with regions for p95 of 1 and 2 ms.
fn explored(lab: &Lab, disk: &str) -> PathBuf {
    let known = forebay(&["info", "--disk", disk, "--format", "properties"]);
    let file = lab.file(&format!("{disk}.yaml"), &known.stdout);
    let surface = format!("{PRESETS}/{disk}.csv");
    let goals = ["--goal", "p95=1ms", "--goal", "p95=2ms"];
    let files = ["explore", "--from", &surface, "-o", file.to_str().unwrap()];
    let ended = forebay(&[&files[..], &goals[..]].concat());
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    file
}

fn simulated(lab: &Lab, disk: &str, properties: &Path, jobs: &str, options: &[&str]) -> Value {
    let jobs = lab.file("jobs.yaml", jobs);
    let (jobs, properties) = (jobs.to_str().unwrap(), properties.to_str().unwrap());
    let files = ["sim", "run", jobs, "--disk", disk, "--properties", properties];
    let times = ["--duration", "1s", "--warmup", "500ms", "--format", "json"];
    forebay(&[&files[..], &times[..], options].concat()).results()
}

/// Reads per second and the p95 of their latency in the disk, in microseconds.
fn reads(results: &Value) -> (f64, f64) {
    let reads = &results["classes"][0];
    (reads["iops"].as_f64().unwrap(), reads["disk_us"]["p95"].as_f64().unwrap())
}

#[test]
fn a_mix_keeps_its_goal_where_the_line_breaks_it_and_gets_more_where_the_line_wastes() {
    let lab = Lab::new();
    // the region alone, which the pace heeds
    let off = ["--control", "rates", "--latency-target", "off"];
    let goal = ["--region-goal", "p95=1ms"];
    let mut seen = Vec::new();
    for disk in ["i3.2xlarge", "i3en.3xlarge", "gcp-pd-SSD-2TB"] {
        let file = explored(&lab, disk);
        let line = simulated(&lab, disk, &file, MIXED, &[&["--no-region"], &off[..]].concat());
        let region = simulated(&lab, disk, &file, MIXED, &[&goal[..], &off].concat());
        assert_eq!(line["properties"]["region"], Value::Null);
        assert_eq!(region["properties"]["region"]["latency_us"], 1000.0);
        println!("{disk}: line {:?}, region {:?}", reads(&line), reads(&region));
        seen.push((reads(&line), reads(&region)));
    }
    let [(i3_line, i3), (i3en_line, i3en), (cloud_line, cloud)] = seen[..] else { panic!() };
    assert!(i3_line.1 > 3000.0 && i3.1 < 1100.0, "{i3_line:?}, {i3:?}");
    assert!(i3.0 > 1.3 * i3_line.0, "{i3_line:?}, {i3:?}");
    assert!(i3en.0 > 1.1 * i3en_line.0 && i3en.1 < 1000.0, "{i3en_line:?}, {i3en:?}");
    assert!(cloud.0 > 0.97 * cloud_line.0 && cloud.1 < 1000.0, "{cloud_line:?}, {cloud:?}");
}

#[test]
fn reads_alone_and_writes_alone_go_as_by_the_line() {
    let lab = Lab::new();
    let file = explored(&lab, "i3.2xlarge");
    let jobs: Vec<&str> = MIXED.split("- name").collect();
    for job in [jobs[1], jobs[2]] {
        let job = format!("- name{job}");
        let of = |option: &[&str]| {
            let mut results = simulated(&lab, "i3.2xlarge", &file, &job, option);
            results.as_object_mut().unwrap().remove("properties");
            results
        };
        assert_eq!(of(&["--no-region"]), of(&[]));
    }
}

#[test]
fn the_region_in_use_is_named() {
    let lab = Lab::new();
    let file = explored(&lab, "i3.2xlarge");
    let file = file.to_str().unwrap();
    let info = |options: &[&str]| {
        let ended = forebay(&[&["info", "--properties", file], options].concat());
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        ended.stdout
    };
    assert!(info(&[]).contains("p95 of reads within 2.000 ms"), "{}", info(&[]));
    assert!(info(&["--region-goal", "p99=500us"]).contains("within 1.000 ms"));
    assert!(info(&["--latency-target", "p95=0.9ms"]).contains("within 1.000 ms"));
    assert!(info(&["--latency-goal", "0.5ms"]).contains("within 1.000 ms"));
    assert!(!info(&["--no-region"]).contains("mixes"));
    forebay(&["info", "--properties", file, "--region-goal", "fast"]).complains(2, &["p95=1ms"]);
    let jobs = lab.file("short.yaml", MIXED);
    let run = ["sim", "run", jobs.to_str().unwrap(), "--disk", "i3.2xlarge", "--properties", file];
    let times = ["--duration", "10ms", "--warmup", "0s", "--compare", "off"];
    let text = forebay(&[&run[..], &times[..]].concat()).stdout;
    assert!(text.contains("the region that keeps p95 of reads within 2.000 ms"), "{text}");
}
