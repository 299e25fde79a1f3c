//! What `forebay disk serve` says of what it cannot serve, before anything is mounted.

use std::process::Command;

use crate::loop_mount::Lab;
use crate::process::run;

fn serve(lab: &Lab, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_forebay"));
    command.args(["disk", "serve"]).args(arguments).arg(lab.dir.path());
    command
}

#[test]
fn unservable_values_are_reported_with_field_and_bound() {
    let lab = Lab::new();
    let ideal = "kind: ideal\nchannels: 4\nread_latency: 1ms\nwrite_latency: 1ms\nbandwidth: 1G\n";
    let wrong = lab.file("wrong.yaml", &ideal.replace("1G", "0"));
    let small = lab.file("small.yaml", &format!("{ideal}capacity: 1MB\n"));
    let [wrong, small] = [&wrong, &small].map(|path| path.to_str().unwrap());
    for (arguments, words) in [
        (&["--disk", "for-channels"][..], &["for-channels", "did you mean `four-channels`"][..]),
        (&["--disk", wrong], &["wrong.yaml:5:", "bandwidth", "1 to"]),
        (&["--disk", small, "--capacity", "2MB"], &["--capacity", "small.yaml", "1048576"]),
        (&["--disk", small, "--capacity", "1000"], &["capacity", "a multiple of the sector"]),
        (&["--disk", small, "--sector", "1000"], &["sector", "use 512 or 4096"]),
        (&["--disk", small, "--memory", "0"], &["memory: 0 bytes", "at least a sector"]),
        (&["--disk", small, "--memory", "4095", "--sector", "4096"], &["memory: 4095 bytes"]),
        (&["--disk", small, "--seed=-1"], &["--seed", "from 0 to"]),
        (&["--disk", small, "--memory", "1GB", "--backing", "x"], &["--memory", "--backing"]),
    ] {
        run(&mut serve(&lab, arguments)).complains(2, words);
    }
}

#[test]
fn a_directory_that_is_in_use_is_not_mounted_on() {
    let lab = Lab::new();
    std::fs::write(lab.dir.path().join("file"), "").unwrap();
    run(&mut serve(&lab, &["--disk", "gp3"])).complains(2, &["not empty", "empty directory"]);
}
