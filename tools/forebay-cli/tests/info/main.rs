//! `forebay info`, from outside.
#![expect(clippy::unwrap_used, reason = "also outside of test functions")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn forebay(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_forebay")).args(arguments).output().unwrap()
}

fn json(arguments: &[&str]) -> Value {
    let output = forebay(&[arguments, &["--format", "json"]].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Now and then a small read of the heaviest class, on one shard, alongside all the work of the
/// others that there can be.
const JOBS: &str = "
- name: urgent
  type: randread
  shards: [0]
  data_size: 1GB
  shard_info: {parallelism: 1, reqsize: 4kB, shares: 1000, rps: 20}
- name: writes
  type: overwrite
  shards: all
  data_size: 4GB
  shard_info: {parallelism: 16, reqsize: 512kB, shares: 10}
- name: reads
  type: seqread
  shards: all
  data_size: 4GB
  shard_info: {parallelism: 16, reqsize: 1MB, shares: 10}
";

#[test]
fn no_urgent_request_waits_longer_than_it_says() {
    let dir = tempfile::tempdir().unwrap();
    let jobs = dir.path().join("jobs.yaml");
    fs::write(&jobs, JOBS).unwrap();
    for disk in ["i4i.2xlarge", "gp3", "samsung-850-pro"] {
        let said = json(&["info", "--disk", disk]);
        let wait = said["disks"][0]["budget"]["longest_wait_us"].as_f64().unwrap();
        let load = ["--shards", "4", "--duration", "5s", "--compare", "off"];
        let name = jobs.to_str().unwrap();
        let run = json(&[&["sim", "run", name, "--disk", disk][..], &load].concat());
        let classes = run["classes"].as_array().unwrap();
        let urgent = classes.iter().find(|class| class["name"] == "urgent").unwrap();
        assert!(urgent["requests"].as_u64().unwrap() > 50);
        let longest = urgent["latency_us"]["max"].as_f64().unwrap();
        assert!(longest <= wait, "{disk}: {longest} us, not {wait}");
    }
}

#[test]
fn written_properties_of_a_disk_are_read_back() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("io_properties.yaml");
    let store = ["--mountpoint", "/data/store"];
    let written =
        forebay(&[&["info", "--disk", "gp3", "--format", "properties"][..], &store].concat());
    fs::write(&file, &written.stdout).unwrap();
    let read = json(&["info", "--properties", file.to_str().unwrap()]);
    let preset = json(&["info", "--disk", "gp3"]);
    assert_eq!(read["disks"][0]["name"], "/data/store");
    for figure in ["read_iops", "read_bandwidth", "write_iops", "write_bandwidth"] {
        assert_eq!(read["disks"][0]["figures"][figure], preset["disks"][0]["figures"][figure]);
    }
}

/// The content of the file at `path`, of those that `--format io.cost` prints.
fn section(printed: &str, path: &str) -> String {
    let mut sections = printed.split("\n## ");
    let section = sections.find_map(|section| section.strip_prefix(path)).unwrap();
    format!("{}\n", section.trim())
}

fn io_cost() -> String {
    String::from_utf8(forebay(&["info", "--disk", "gp3", "--format", "io.cost"]).stdout).unwrap()
}

#[test]
fn the_hardware_database_knows_what_it_prints() {
    if Command::new("systemd-hwdb").arg("--version").output().is_err() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let entries = dir.path().join("etc/udev/hwdb.d");
    fs::create_dir_all(&entries).unwrap();
    let printed = io_cost();
    let entry = section(&printed, "/etc/udev/hwdb.d/90-forebay-io-cost.hwdb");
    fs::write(entries.join("90-forebay-io-cost.hwdb"), entry).unwrap();
    let root = format!("--root={}", dir.path().display());
    let hwdb = |arguments: &[&str]| {
        let output = Command::new("systemd-hwdb").arg(&root).args(arguments).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    hwdb(&["update"]);
    let known = hwdb(&["query", "block::name:MODEL:fwrev:7:"]);
    for (key, path, before) in [
        ("MODEL", "/sys/fs/cgroup/io.cost.model", "$DEV ctrl=user model=linear "),
        ("QOS", "/sys/fs/cgroup/io.cost.qos", "$DEV enable=1 ctrl=user "),
    ] {
        let line = section(&printed, path);
        let line = line.trim().strip_prefix(before).unwrap();
        assert!(known.contains(&format!("IOCOST_{key}_FOREBAY={line}\n")), "{known}");
    }
    assert!(known.contains("IOCOST_SOLUTIONS=forebay\n"), "{known}");
}

#[test]
fn systemd_accepts_the_units_that_it_prints() {
    if Command::new("systemd-analyze").arg("--version").output().is_err() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let printed = io_cost();
    let names = ["forebay-io-cost.service", "foreground.slice", "background.slice"];
    let files = names.map(|name| {
        let file = dir.path().join(name);
        fs::write(&file, section(&printed, &format!("/etc/systemd/system/{name}"))).unwrap();
        file
    });
    let verify = ["verify", "--man=no"];
    let output = Command::new("systemd-analyze").args(verify).args(&files).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.is_empty(), "{said}");
}

#[test]
fn bad_input_is_explained() {
    let dir = tempfile::tempdir().unwrap();
    let bad = dir.path().join("bad.yaml");
    fs::write(&bad, "disks: [{mountpoint: /a, read_iosp: 5}]").unwrap();
    let missing = dir.path().join("missing.yaml");
    let path = |path: &Path| path.to_str().unwrap().to_owned();
    for (arguments, words) in [
        (vec!["--properties".into(), path(&missing)], "missing.yaml"),
        (vec!["--properties".into(), path(&bad)], "read_iops"),
        (vec!["--disk".into(), "gp4".into()], "no such disk"),
        (vec!["--format".into(), "properties".into()], "no figures to write"),
        (vec!["--format".into(), "io.cost".into()], "no figures for io.cost"),
        (vec!["--shards".into(), "0".into()], "--shards"),
        (vec!["--mountpoint".into(), "/a".into()], "--disk"),
    ] {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let output = forebay(&[&["info"][..], &arguments].concat());
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains(words), "`{words}` is not in: {said}");
    }
}
