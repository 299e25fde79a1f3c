//! What the program prints.

use std::fs::File;
use std::process::{Command, Output, Stdio};

use forebay::engine::{BackendChoice, Engine, EngineConfig};
use serde_json::Value;
use tempfile::TempDir;

use crate::loop_mount::{Lab, MIXED, REMOVALS};
use crate::process::{Ended, run};
use crate::system::skipped;

const LATENCIES: [&str; 6] = ["mean", "p50", "p95", "p99", "p999", "max"];

fn json(lab: &Lab, jobs: &str, arguments: &[&str]) -> Value {
    run(lab.bench(jobs).args(["--format", "json"]).args(arguments)).results()
}

fn assert_has_keys(object: &Value, keys: &[&str]) {
    for key in keys {
        assert!(object.get(key).is_some(), "`{key}` is missing in {object}");
    }
}

/// `run` has all the fields that were agreed on, and its jobs did something without errors.
fn assert_is_run(run: &Value, jobs: &[&str]) {
    assert_has_keys(run, &["version", "duration_seconds", "backend", "policy", "properties"]);
    assert_has_keys(run, &["scheduler", "seed", "classes", "shards", "disk", "cpu_seconds"]);
    let classes = run["classes"].as_array().unwrap();
    let names: Vec<&str> = classes.iter().map(|class| class["name"].as_str().unwrap()).collect();
    assert_eq!(names, jobs);
    for class in classes {
        assert_has_keys(class, &["class", "shares", "iops", "bandwidth_bytes_per_second"]);
        for latency in ["latency_us", "service_us", "queue_us", "disk_us"] {
            assert_has_keys(&class[latency], &LATENCIES);
        }
        assert_eq!(class["errors"], 0, "{class}");
        assert!(class["requests"].as_u64().unwrap() > 0, "{class}");
    }
    let shards = run["shards"].as_array().unwrap();
    let of_shards: u64 = shards
        .iter()
        .flat_map(|shard| shard["classes"].as_array().unwrap())
        .map(|class| class["requests"].as_u64().unwrap())
        .sum();
    let of_all: u64 = classes.iter().map(|class| class["requests"].as_u64().unwrap()).sum();
    assert_eq!(of_shards, of_all);
}

#[test]
fn json_is_one_object_of_the_agreed_shape() {
    let lab = Lab::new();
    let linux_aio = EngineConfig { backend: BackendChoice::LinuxAio, ..EngineConfig::default() };
    let linux_aio = Engine::new(&linux_aio).is_ok().then_some("linux-aio");
    for backend in ["auto", "threads"].into_iter().chain(linux_aio) {
        let run = json(&lab, MIXED, &["--shards", "2", "--backend", backend]);
        assert_is_run(&run, &["reads", "bulk"]);
        assert_eq!(run["scheduler"], "pace+window");
        assert_eq!(run["properties"]["source"], "file");
        assert_eq!(run["properties"]["read_iops"], 5000);
        assert_eq!(run["shards"][1]["shard"], 1);
        let disk = &run["disk"];
        assert_has_keys(disk, &["consumption_mean", "consumption_max", "flow_ratio"]);
        assert!(disk["in_flight_max"].as_u64().unwrap() > 0);
        let blocked = &disk["dispatch_blocked"];
        assert_has_keys(
            blocked,
            &["empty", "pace", "window", "class_limit", "ahead", "pace_disk_idle"],
        );
        if backend != "auto" {
            assert_eq!(run["backend"], backend);
        }
    }
}

#[test]
fn a_comparison_holds_both_runs() {
    let lab = Lab::new();
    let comparison = json(&lab, MIXED, &["--shards", "1", "--compare", "none"]);
    let runs = comparison["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 2);
    for (run, scheduler) in runs.iter().zip(["none", "pace+window"]) {
        assert_is_run(run, &["reads", "bulk"]);
        assert_eq!(run["scheduler"], scheduler);
        assert_eq!(run["policy"], "pace+window");
    }
    assert!(runs[0]["disk"].is_null());
}

#[test]
fn yaml_says_the_same_as_json() {
    let lab = Lab::new();
    let ended = run(lab.bench(MIXED).args(["--format", "yaml", "--shards", "1"]));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let run: Value = serde_saphyr::from_str(&ended.stdout).unwrap();
    assert_is_run(&run, &["reads", "bulk"]);
}

#[test]
fn text_is_a_table_with_both_runs_and_a_verdict() {
    let lab = Lab::new();
    let Ended { code, stdout, stderr } = run(lab.bench(MIXED).args(["--shards", "1"]));
    assert_eq!(code, Some(0), "{stderr}");
    for words in ["reads (100)", "bulk (10)", "unscheduled", "scheduled", "change", "total"] {
        assert!(stdout.contains(words), "`{words}` is not in: {stdout}");
    }
    assert!(stdout.lines().all(|line| line.chars().count() <= 110), "{stdout}");
    let alone = run(lab.bench(MIXED).args(["--shards", "1", "--compare", "off"])).stdout;
    assert!(alone.contains("reads") && !alone.contains("unscheduled"), "{alone}");
}

#[test]
fn every_policy_runs() {
    let lab = Lab::new();
    for policy in [
        "none",
        "concurrency",
        "littles-law",
        "token-bucket",
        "two-level-bucket",
        "flow-ratio",
        "pace+window",
    ] {
        let run = json(&lab, MIXED, &["--shards", "1", "--policy", policy]);
        assert_is_run(&run, &["reads", "bulk"]);
        assert_eq!(run["scheduler"], policy);
    }
}

/// All types and options of jobs, on two shards.
const EVERYTHING: &str = "
- name: sequential
  type: seqread
  shards: all
  data_size: 3MB
  shard_info: {parallelism: 2, reqsize: 384kB, shares: 100}
- name: vectored
  type: randwrite
  shards: [0]
  data_size: 2MB
  shard_info: {parallelism: 2, reqsize: 64kB, shares: 50, vectorized: true, iov_count: 4}
  options: {dsync: true, fsync_every: 3}
- name: many-segments
  type: randread
  shards: [1]
  data_size: 2MB
  shard_info: {parallelism: 2, reqsize: 1MB, class: sequential, vectorized: true, iov_count: 128}
- name: log
  type: append
  shards: all
  shard_info: {parallelism: 2, reqsize: 16kB, shares: 50, think_time: 1ms, bandwidth: 10MB}
  options: {sloppy_size_hint: 1MB, fallocate: true}
- name: flushes
  type: fsync
  shards: [1]
  shard_info: {parallelism: 1, rps: 50}
- name: removals
  type: unlink
  shards: [0]
  data_size: 16MB
  files_count: 16
  shard_info: {parallelism: 1, rps: 40}
- name: busy
  type: cpu
  shards: [0]
  shard_info: {parallelism: 2, execution_time: 100us, rps: 50}
- name: large
  type: overwrite
  shards: [1]
  data_size: 8MB
  shard_info: {parallelism: 1, reqsize: 4MB, class: query}
  options: {extent_allocation_size_hint: 4MB, fallocate: true}
- name: arrivals
  type: randread
  shards: all
  data_size: 2MB
  shard_info: {parallelism: 4, rps: 50, batch: 2, reqsize: 512, class: query}
  options: {pause_distribution: poisson}
";

const GROUPS: &str = "
- {name: query, shares: 1000, parent: front}
- {name: front, shares: 500}
";

const EVERY_JOB: [&str; 9] = [
    "sequential",
    "vectored",
    "many-segments",
    "log",
    "flushes",
    "removals",
    "busy",
    "large",
    "arrivals",
];

#[test]
fn every_type_and_option_of_a_job_runs() {
    let lab = Lab::new();
    let groups = lab.file("groups.yaml", GROUPS);
    for backend in ["auto", "threads"] {
        let mut command = lab.bench(EVERYTHING);
        // Each is to end something on a busy machine, too: some wait behind megabytes.
        command.args(["--duration", "1s", "--shards", "2"]);
        command.args(["--format", "json", "--backend", backend]);
        let ended = run(command.arg("--sched-groups").arg(&groups));
        assert_is_run(&ended.results(), &EVERY_JOB);
    }
}

/// Without a disk, with and without a rate to keep to.
#[test]
fn dev_null_takes_every_job_and_makes_no_file() {
    let lab = Lab::new();
    let groups = lab.file("groups.yaml", GROUPS);
    for properties in [false, true] {
        let mut command = lab.bare_bench(EVERYTHING);
        command.args(["--dir", "/dev/null", "--shards", "2", "--format", "json"]);
        command.arg("--sched-groups").arg(&groups);
        if properties {
            command.arg("--properties").arg(lab.properties());
        }
        let run = run(&mut command).results();
        assert_is_run(&run, &EVERY_JOB);
        assert_eq!(run["backend"], "null");
        assert_eq!(run["scheduler"], if properties { "pace+window" } else { "none" });
    }
}

#[test]
fn a_filesystem_in_memory_is_measured_and_said_to_be_one() {
    let shm = std::path::Path::new("/dev/shm");
    if !shm.is_dir() {
        skipped("there is no /dev/shm");
        return;
    }
    let lab = Lab::within(shm);
    let ended = run(lab.bench(MIXED).args(["--shards", "1", "--format", "json"]));
    assert_is_run(&ended.results(), &["reads", "bulk"]);
    assert!(ended.stderr.contains("in memory"), "{}", ended.stderr);
}

#[test]
fn a_disk_without_properties_is_probed() {
    let lab = Lab::new();
    let mut command = lab.bare_bench(MIXED);
    let ended =
        run(command.args(["--shards", "1", "--format", "json", "--dir"]).arg(lab.dir.path()));
    let run = ended.results();
    assert_eq!(run["properties"]["source"], "probe");
    assert!(run["properties"]["read_iops"].as_u64().unwrap() > 0);
    assert!(ended.stderr.contains("disks:") && ended.stderr.contains("probe"), "{}", ended.stderr);
}

#[test]
fn two_directions_have_a_budget_each_where_the_disk_is_duplex() {
    let lab = Lab::new();
    let duplex =
        std::fs::read_to_string(lab.properties()).unwrap().replace("}]", ", duplex: true}]");
    let properties = lab.file("duplex.yaml", &duplex);
    let mut command = lab.bare_bench(MIXED);
    command.args(["--shards", "2", "--format", "json", "--dir"]).arg(lab.dir.path());
    assert_is_run(&run(command.arg("--properties").arg(properties)).results(), &["reads", "bulk"]);
}

/// A job that is done early ends the run, and what it did counts for the time it took.
#[test]
fn a_load_with_a_limit_ends_when_it_is_reached() {
    let lab = Lab::new();
    let jobs = MIXED.replace("parallelism: 2", "parallelism: 2, limit: 10");
    let mut command = lab.bench(&jobs);
    command.args(["--format", "json", "--shards", "1", "--duration", "1h", "--warmup", "0s"]);
    let run = run(&mut command).results();
    assert_eq!(run["classes"][0]["requests"], 10);
    assert!(run["duration_seconds"].as_f64().unwrap() < 60.0);
}

#[test]
fn removals_count_and_happen_in_both_runs() {
    let lab = Lab::new();
    let comparison = json(&lab, REMOVALS, &["--shards", "1", "--compare", "none"]);
    for run in comparison["runs"].as_array().unwrap() {
        assert_is_run(run, &["removals"]);
    }
}

/// `reproduce`, with its results going to `stdout`.
fn reproduce(arguments: &[&str], stdout: Stdio) -> Output {
    forebay(&[&["reproduce"], arguments].concat(), stdout)
}

fn forebay(arguments: &[&str], stdout: Stdio) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_forebay"));
    command.args(arguments).stdout(stdout).stderr(Stdio::piped());
    command.spawn().unwrap().wait_with_output().unwrap()
}

#[test]
fn a_help_that_cannot_be_written_is_a_failure_and_one_that_nobody_reads_on_is_none() {
    for arguments in [&["--help"][..], &["--version"], &["tune", "--help"]] {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let ended = forebay(arguments, full.into());
        let said = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(1), "{arguments:?}: {said}");
        assert!(said.contains("error: cannot write the help"), "{said}");
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let ended = forebay(arguments, writer.into());
        assert_eq!(ended.status.code(), Some(0), "{arguments:?}");
    }
    let ended = forebay(&["--no-such-option"], Stdio::piped());
    assert_eq!(ended.status.code(), Some(2));
}

#[test]
fn a_reader_of_experiments_that_has_had_enough_is_no_failure() {
    let out = TempDir::new().unwrap();
    let dir = out.path().to_str().unwrap();
    for arguments in [&["--list"][..], &["--out", dir, "S1-9"]] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let ended = reproduce(arguments, writer.into());
        let said = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(0), "{arguments:?}: {said}");
        assert!(!said.contains("panicked") && !said.contains("error"), "{said}");
    }
    assert!(out.path().join("index.html").exists());
}

#[test]
fn experiments_that_cannot_be_printed_are_a_failure_with_its_cause() {
    let out = TempDir::new().unwrap();
    let dir = out.path().to_str().unwrap();
    for arguments in [&["--list"][..], &["--out", dir, "S1-9"]] {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let ended = reproduce(arguments, full.into());
        let said = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(1), "{arguments:?}: {said}");
        assert!(said.contains("error: cannot write the results") && !said.contains("panicked"));
    }
}
