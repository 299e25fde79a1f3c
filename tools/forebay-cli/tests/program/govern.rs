//! `forebay govern`: what is missing is said in one line, before anything is changed.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::process::run;

const PROPERTIES: &str = "disks:\n- mountpoint: /none\n  read_iops: 8000\n  read_bandwidth: 100000000\n  \
                          write_iops: 5420\n  write_bandwidth: 50122000\n";

fn govern(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_forebay"));
    command.arg("govern").args(arguments);
    command
}

#[test]
fn missing_requirements_are_reported() {
    let dir = tempfile::tempdir().unwrap();
    let properties = dir.path().join("properties.yaml");
    fs::write(&properties, PROPERTIES).unwrap();
    let properties = properties.to_str().unwrap();
    let disk = ["--device", "no-such-disk", "--properties", properties];
    for (more, words) in [
        (&["--goal", "db:p95=2ms", "--class", "db=a:1000"][..], "unknown disk no-such-disk"),
        (&["--goal", "p95"], "p95=1ms"),
        (&["--goal", "db:disk:p95=2ms"], "leave `disk:` out"),
        (&["--goal", "db:p95=2ms", "--class", "db=a/../b:1"], "is not a cgroup"),
        (&["--goal", "p95=2ms", "--calibrate"], "--dir"),
        (&["--goal", "p95=2ms", "--bound", "x"], "or off"),
        (&[], "--goal"),
    ] {
        let arguments = [&disk[..], more].concat();
        run(&mut govern(&arguments)).complains(2, &[words]);
    }
    run(&mut govern(&["--restore", "a/b"])).complains(2, &["not the name of a disk"]);
}

/// As a calibration starts its load.
const LOAD: &str = "\"$0\" bench \"$1\" --dir /dev/null --duration 1h --end-with $2";

#[test]
fn a_load_ends_with_the_process_that_started_it() {
    let dir = tempfile::tempdir().unwrap();
    let jobs = dir.path().join("jobs.yaml");
    let job = "- name: a\n  type: randread\n  shards: [0]\n  data_size: 16MB\n  shard_info: \
               {parallelism: 1, reqsize: 4kB, shares: 100, rps: 10}\n";
    fs::write(&jobs, job).unwrap();
    let shell = |script: &str| {
        let mut command = Command::new("sh");
        command.args(["-c", script, env!("CARGO_BIN_EXE_forebay")]).arg(&jobs);
        command
    };
    // A process that is not the one that has started it has ended already.
    run(shell(LOAD).arg("1")).complains(130, &["interrupted"]);

    let background = LOAD.replace("$2", "$$") + " 2>\"$1.err\" & echo $!; wait";
    let mut parent = shell(&background).stdout(Stdio::piped()).spawn().unwrap();
    let mut number = String::new();
    BufReader::new(parent.stdout.take().unwrap()).read_line(&mut number).unwrap();
    parent.kill().unwrap();
    parent.wait().unwrap();
    let began = Instant::now();
    let stat = format!("/proc/{}/stat", number.trim());
    // It may stay there as a process that ended, until its new parent has waited for it.
    while fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z ")) {
        let said = fs::read_to_string(dir.path().join("jobs.yaml.err")).unwrap_or_default();
        assert!(began.elapsed() < Duration::from_secs(60), "the load runs on: {said}");
        thread::sleep(Duration::from_millis(20));
    }
}
