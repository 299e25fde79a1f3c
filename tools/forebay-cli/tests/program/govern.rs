//! `forebay govern`: what is missing is said in one line, before anything is changed.

use std::fs;
use std::process::Command;

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
