//! `tune --diff` and `tune --history` as gates: what they end with.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

const DISK: &str = "kind: ideal\nchannels: 4\nread_latency: 500us\nwrite_latency: 250us\n\
                    bandwidth: 300000000\n";

/// `forebay tune` on a simulated disk of this many bytes per second, with its files in `dir`.
fn tune(dir: &Path, bandwidth: u64, more: &[&str]) -> Output {
    let disk = dir.join("disk.yaml");
    std::fs::write(&disk, DISK.replace("300000000", &bandwidth.to_string())).unwrap();
    Command::new(env!("CARGO_BIN_EXE_forebay"))
        .current_dir(dir)
        .args(["tune", "--budget", "quick", "--simulate", "disk.yaml", "--out", "out"])
        .args(more)
        .output()
        .unwrap()
}

fn ended(output: &Output, code: i32, words: &str) {
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{said}");
    assert!(said.contains(words), "`{words}` is not in: {said}");
}

#[test]
fn a_measurement_is_compared_with_a_file() {
    let dir = TempDir::new().unwrap();
    ended(&tune(dir.path(), 300_000_000, &[]), 0, "write bandwidth");
    let old = dir.path().join("old.json");
    std::fs::rename(dir.path().join("out/tune.json"), &old).unwrap();
    let diff = ["--diff", "old.json"];
    let same = tune(dir.path(), 300_000_000, &[&diff[..], &["--seed", "2"]].concat());
    ended(&same, 0, "Nothing changed by more than chance.");
    let slower = tune(dir.path(), 270_000_000, &diff);
    ended(&slower, 1, "error: lost: read bandwidth -");
    ended(&slower, 1, "; write bandwidth -");
    ended(&slower, 1, "LOST");
    let allowed = tune(dir.path(), 270_000_000, &[&diff[..], &["--fail-below", "15%"]].concat());
    ended(&allowed, 0, "LOST");
    let json = tune(dir.path(), 270_000_000, &[&diff[..], &["--format", "json"]].concat());
    let disks: Value = serde_json::from_slice(&json.stdout).unwrap();
    let figure = &disks[0]["figures"][2];
    assert_eq!((json.status.code(), &figure["name"]), (Some(1), &Value::from("read bandwidth")));
    assert!((figure["change"].as_f64().unwrap() + 0.1).abs() < 0.01, "{figure}");
}

#[test]
fn incomparable_runs_are_neither_a_loss_nor_fine() {
    let dir = TempDir::new().unwrap();
    ended(&tune(dir.path(), 300_000_000, &[]), 0, "");
    let old = dir.path().join("old.json");
    std::fs::rename(dir.path().join("out/tune.json"), &old).unwrap();
    let text = std::fs::read_to_string(&old).unwrap();
    let edited = |name: &str, from: &str, to: &str| {
        assert!(text.contains(from), "{from}");
        std::fs::write(dir.path().join(name), text.replace(from, to)).unwrap();
    };
    edited("disk.json", "\"places\":[\"disk.yaml\"]", "\"places\":[\"other.yaml\"]");
    edited("budget.json", "\"budget\":\"quick\"", "\"budget\":\"standard\"");
    edited("part.json", "\"complete\":true", "\"complete\":false");
    edited("version.json", "[{\"version\":", "[{\"version\":9");
    for (file, words) in [
        ("disk.json", "the disk was"),
        ("budget.json", "the budget was"),
        ("part.json", "was interrupted"),
        ("version.json", "version"),
        ("missing.json", "cannot be read"),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_forebay"));
        let command = command.current_dir(dir.path()).args(["tune", "--diff", file, "old.json"]);
        ended(&command.output().unwrap(), 2, words);
    }
    for (file, words) in [
        ("budget.json", "add --budget standard"),
        ("disk.json", "not comparable: the disk was"),
        ("part.json", "not comparable: a run was interrupted"),
    ] {
        let early = tune(dir.path(), 300_000_000, &["--diff", file]);
        ended(&early, 2, words);
        assert!(early.stdout.is_empty(), "{file}: nothing is measured for nothing");
        assert!(!dir.path().join("out/tune.json").exists(), "{file}");
    }
    let two = tune(dir.path(), 300_000_000, &["--diff", "old.json", "old.json"]);
    ended(&two, 2, "leave out the directory");
}

#[test]
fn a_run_without_phases_is_no_clean_bill() {
    let dir = TempDir::new().unwrap();
    ended(&tune(dir.path(), 300_000_000, &[]), 0, "");
    let new = dir.path().join("out/tune.json");
    let mut runs: Value = serde_json::from_slice(&std::fs::read(&new).unwrap()).unwrap();
    runs[0]["phases"] = Value::Array(Vec::new());
    let old = dir.path().join("old.json");
    std::fs::write(&old, runs.to_string()).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_forebay"));
    let output = command.args(["tune", "--diff"]).args([&old, &new]).output().unwrap();
    ended(&output, 2, "not comparable: the run before has no figures of the disk");
    assert!(output.stdout.is_empty());
}

#[test]
fn a_comparison_of_what_may_be_a_burst_says_so() {
    let dir = TempDir::new().unwrap();
    let cloud = "kind: cloud\niops: 3000\nbandwidth: 131072000\nlatency: 353us\njitter: 120us\n";
    std::fs::write(dir.path().join("disk.yaml"), cloud).unwrap();
    let forebay = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_forebay"));
        command.current_dir(dir.path()).arg("tune").args(args).output().unwrap()
    };
    let measured = ["--budget", "quick", "--simulate", "disk.yaml", "--out", "out"];
    ended(&forebay(&measured), 0, "");
    let compared = forebay(&["--diff", "out/tune.json", "out/tune.json"]);
    ended(&compared, 0, "May be bursts: random reads (in both)");
    let text = String::from_utf8_lossy(&compared.stdout).into_owned();
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}

#[test]
fn a_history_names_when_a_disk_became_slower() {
    let dir = TempDir::new().unwrap();
    let kept = |bandwidth, seed: u64| {
        let seed = seed.to_string();
        tune(dir.path(), bandwidth, &["--history", "runs", "--seed", &seed])
    };
    ended(&kept(300_000_000, 1), 0, "the first run of this kind");
    for seed in 2..=5 {
        ended(&kept(300_000_000, seed), 0, "There are no new losses.");
    }
    let lost = kept(264_000_000, 6);
    ended(&lost, 1, "LOST write bandwidth -1");
    ended(&lost, 1, "from the run of 20");
    // it is told once
    ended(&kept(264_000_000, 7), 0, "(5 before, 2 since)");
    let runs = dir.path().join("runs");
    let json =
        |entry: &std::fs::DirEntry| entry.path().extension().is_some_and(|end| end == "json");
    let entries = std::fs::read_dir(&runs).unwrap();
    assert_eq!(entries.map(Result::unwrap).filter(json).count(), 7);
    let page = std::fs::read_to_string(runs.join("history.html")).unwrap();
    assert!(page.matches("<svg").count() == 5 && page.contains(" %"));
    // one on another disk does not belong to it, and a damaged one is left out
    std::fs::write(runs.join("0.json"), "{").unwrap();
    ended(&kept(264_000_000, 8), 0, "left out: runs/0.json: not a run");
}
