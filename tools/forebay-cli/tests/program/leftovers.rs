//! What is left of a run: nothing.

use std::process::Command;

use rustix::process::{Pid, Signal, kill_process};

use crate::loop_mount::{Lab, MIXED, REMOVALS};
use crate::process::{run, run_and_at};

#[test]
fn nothing_is_left_after_a_run() {
    let lab = Lab::new();
    for jobs in [MIXED, REMOVALS] {
        let ended = run(lab.bench(jobs).args(["--shards", "2"]));
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        lab.assert_nothing_left();
    }
}

#[test]
fn nothing_is_left_after_an_error() {
    let lab = Lab::new();
    // There is room for the files, and no file can be so large.
    let mut limited = Command::new("sh");
    limited.args(["-c", "trap '' XFSZ; ulimit -f 1024; exec \"$@\"", "sh"]);
    let bench = lab.bench(&(MIXED.to_owned() + REMOVALS));
    let ended = run(limited.arg(bench.get_program()).args(bench.get_args()));
    ended.complains(1, &["cannot write"]);
    lab.assert_nothing_left();
}

#[test]
fn nothing_is_left_after_an_interruption() {
    let lab = Lab::new();
    for signal in [Signal::INT, Signal::TERM] {
        let jobs = MIXED.to_owned() + REMOVALS;
        let mut command = lab.bench(&jobs);
        let ended = run_and_at(command.args(["--duration", "1h"]), "running", |child| {
            kill_process(Pid::from_child(child), signal).unwrap();
        });
        ended.complains(130, &["interrupted"]);
        lab.assert_nothing_left();
        assert_eq!(ended.stdout, "");
    }
}

#[test]
fn nothing_is_left_of_experiments_that_were_interrupted() {
    let lab = Lab::new();
    let [out, page] = ["experiments/of/today", "page.html"].map(|name| lab.dir.path().join(name));
    let mut command = Command::new(env!("CARGO_BIN_EXE_forebay"));
    command.args(["reproduce", "2018-deep-writes", "2022-latency", "--threads", "1"]);
    command.arg("--out").arg(&out);
    command.arg("--report").arg(&page);
    let ended = run_and_at(&mut command, "deep-writes took", |child| {
        kill_process(Pid::from_child(child), Signal::INT).unwrap();
    });
    assert_ne!(ended.code, Some(0), "{}", ended.stderr);
    lab.assert_nothing_left();
    assert_eq!(ended.stdout, "");
}

/// Not even a program that is killed leaves files, unless they have names to be removed by.
#[test]
fn nothing_is_left_after_a_kill() {
    let lab = Lab::new();
    let mut command = lab.bench(MIXED);
    let ended = run_and_at(command.args(["--duration", "1h"]), "running", |child| {
        kill_process(Pid::from_child(child), Signal::KILL).unwrap();
    });
    assert_eq!(ended.code, None);
    lab.assert_nothing_left();
}

/// A request that keeps the processor busy for an hour delays the end of the run no more than others.
#[test]
fn a_long_request_of_the_processor_ends_with_the_run() {
    let lab = Lab::new();
    let jobs = "- {name: busy, type: cpu, shards: all, shard_info: {parallelism: 1, \
                execution_time: 1h}}";
    let results = run(lab.bench(jobs).args(["--shards", "1", "--format", "json"])).results();
    let busy = &results["classes"][0];
    assert_eq!((busy["requests"].clone(), busy["unfinished"].clone()), (0.into(), 1.into()));
    let mut command = lab.bench(jobs);
    let ended = run_and_at(command.args(["--duration", "1h"]), "running", |child| {
        kill_process(Pid::from_child(child), Signal::INT).unwrap();
    });
    ended.complains(130, &["interrupted"]);
}
