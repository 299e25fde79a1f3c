//! `forebay bench --diff`: results compared, and what that ends with.

use std::path::PathBuf;
use std::process::Command;

use crate::lab::Lab;
use crate::process::{Ended, run};

const JOBS: &str = "
- name: reads
  type: randread
  shards: all
  data_size: 64MB
  shard_info: {parallelism: 4, rps: 200, reqsize: 4kB, shares: 1000}
  options: {pause_distribution: poisson}
- name: bulk
  type: overwrite
  shards: all
  data_size: 64MB
  shard_info: {parallelism: 8, reqsize: 128kB, shares: 100}
";

fn forebay() -> Command {
    Command::new(env!("CARGO_BIN_EXE_forebay"))
}

/// The results of some seconds on a simulated disk of so many bytes per second.
fn results(lab: &Lab, name: &str, bandwidth: u64, seed: &str) -> PathBuf {
    let disk = format!(
        "kind: ideal\nchannels: 4\nread_latency: 500us\nwrite_latency: 250us\nbandwidth: {bandwidth}\n"
    );
    let disk = lab.file("disk.yaml", &disk);
    let mut command = forebay();
    command.args(["sim", "run"]).arg(lab.file("jobs.yaml", JOBS)).arg("--disk").arg(disk);
    command.args(["--duration", "4s", "--format", "json", "--compare", "off", "--seed", seed]);
    let Ended { code, stdout, stderr } = run(&mut command);
    assert_eq!(code, Some(0), "{stderr}");
    lab.file(name, &stdout)
}

fn diff(files: &[&PathBuf], more: &[&str]) -> Ended {
    run(forebay().args(["bench", "--diff"]).args(files).args(more))
}

#[test]
fn results_of_simulated_runs_are_compared() {
    let lab = Lab::new();
    let old = results(&lab, "old.json", 300_000_000, "1");
    let same = diff(&[&old, &results(&lab, "same.json", 300_000_000, "2")], &[]);
    assert_eq!(same.code, Some(0), "{}{}", same.stdout, same.stderr);
    assert!(same.stdout.contains("Nothing changed by more than chance."), "{}", same.stdout);
    let slower = results(&lab, "slower.json", 260_000_000, "3");
    let lost = diff(&[&old, &slower], &[]);
    assert_eq!(lost.code, Some(1), "{}{}", lost.stdout, lost.stderr);
    assert!(lost.stderr.contains("error: lost: bulk MB/s -1"), "{}", lost.stderr);
    for text in [&same.stdout, &lost.stdout] {
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }
    let allowed = diff(&[&old, &slower], &["--fail-below", "60%"]);
    assert_eq!(allowed.code, Some(0), "{}{}", allowed.stdout, allowed.stderr);
    assert!(allowed.stdout.contains("LOST"), "{}", allowed.stdout);
}

#[test]
fn what_cannot_be_compared_ends_with_two() {
    let lab = Lab::new();
    let old = results(&lab, "old.json", 300_000_000, "1");
    let text = std::fs::read_to_string(&old).unwrap();
    let other = lab.file("other.json", &text.replace("\"name\": \"bulk\"", "\"name\": \"log\""));
    let ended = diff(&[&old, &other], &[]);
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    assert!(ended.stderr.contains("not comparable: the jobs were"), "{}", ended.stderr);
    let none = lab.file("none.json", "{}");
    for (files, words) in
        [(vec![&none, &old], "none.json: these are no results"), (vec![&old], "name a job file")]
    {
        let ended = diff(&files, &[]);
        assert_eq!(ended.code, Some(2), "{}", ended.stderr);
        assert!(ended.stderr.contains(words), "{}", ended.stderr);
    }
}

#[test]
fn a_loss_on_a_machine_that_was_too_busy_is_no_answer() {
    let lab = Lab::new();
    let [old, slower] = [("old.json", 300_000_000, "1"), ("slower.json", 150_000_000, "2")]
        .map(|(name, bandwidth, seed)| results(&lab, name, bandwidth, seed));
    let busy = |path: &PathBuf, part: &str| {
        let text = std::fs::read_to_string(path).unwrap();
        let with = format!("\"cpu_seconds\": null, \"processor_wait\": {part}");
        assert!(text.contains("\"cpu_seconds\": null"));
        lab.file(&format!("{part}.json"), &text.replace("\"cpu_seconds\": null", &with))
    };
    let quiet = busy(&old, "0.02");
    let ended = diff(&[&quiet, &busy(&slower, "0.4")], &[]);
    ended.complains(2, &["not comparable: ", "bulk MB/s -50", "too busy"]);
    let said = "threads waited for a processor 2 % of the time before,\n40 % now";
    assert!(ended.stdout.contains(said) && ended.stdout.contains("LOST"), "{}", ended.stdout);
    assert_eq!(diff(&[&quiet, &busy(&slower, "0.03")], &[]).code, Some(1));
    assert_eq!(diff(&[&quiet, &busy(&old, "0.5")], &[]).code, Some(0));
}
