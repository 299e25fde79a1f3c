//! `explore`: what it prints, and what it says of input that it cannot use.

use std::process::Command;

use crate::lab::Lab;
use crate::process::{Ended, run};

const I3: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../forebay-sim/presets/i3.2xlarge.csv");

fn explore(arguments: &[&str]) -> Ended {
    run(Command::new(env!("CARGO_BIN_EXE_forebay")).arg("explore").args(arguments))
}

#[test]
fn fits_are_printed_for_programs_and_for_people() {
    let results = explore(&["--from", I3, "--goal", "p95=1ms", "--json"]).results();
    let fit = &results["fits"][0];
    assert_eq!(fit["goal"], "p95=1ms");
    let part = |value: &serde_json::Value| value.as_f64().unwrap();
    let sum = part(&fit["over"]) + part(&fit["waste"]);
    let line = part(&fit["line"]["over"]) + part(&fit["line"]["waste"]);
    assert!(sum <= 0.35 && line >= 0.5, "{sum} beside {line}");
    assert_eq!(fit["region"]["radii"].as_array().unwrap().len(), 33);
    let text = explore(&["--from", I3, "--goal", "p95=1ms"]);
    assert_eq!(text.code, Some(0), "{}", text.stderr);
    assert!(text.stdout.contains("p95=1ms") && text.stdout.contains("waste"), "{}", text.stdout);
}

#[test]
fn a_surface_that_nothing_can_be_fitted_to_is_named() {
    let lab = Lab::new();
    let header = "w_bw_Bps,r_iops,p50_ms,p95_ms\n";
    let few = lab.file("few.csv", &format!("{header}0,10,1,2\n5e6,10,1,2\n"));
    let negative = lab.file("negative.csv", &format!("{header}0,10,1,2\n-5,10,1,2\n"));
    let headless = lab.file("headless.csv", "w_bw_Bps,p50_ms,p95_ms\n");
    for (file, words) in [
        (few, ["few.csv: 2 usable cells", "at least 9"]),
        (negative, ["negative.csv:3:1: w_bw_Bps", "found `-5`"]),
        (headless, ["headless.csv:1:1:", "a column `r_iops` is missing"]),
    ] {
        explore(&["--from", &file.display().to_string()]).complains(2, &words);
    }
    explore(&["--from", "/nowhere.csv"]).complains(2, &["/nowhere.csv"]);
    explore(&["--from", "/nowhere.json"]).complains(2, &["/nowhere.json: cannot be read"]);
}

#[test]
fn goals_that_no_disk_or_not_this_one_keeps_are_refused() {
    explore(&["--from", I3, "--goal", "p95=10us"])
        .complains(2, &["i3.2xlarge.csv: the goal p95=10us is below", "such as --goal p95="]);
    explore(&["--from", I3, "--goal", "p99=1ms"]).complains(2, &["no p99", "p50, p95"]);
    let twice = ["--from", I3, "--goal", "p95=1ms", "--goal", "p95=1000us"];
    explore(&twice).complains(2, &["--goal p95=1ms is given twice"]);
    explore(&["--from", I3, "--goal", "p95=fast"]).complains(2, &["p95=1ms"]);
}

#[test]
fn regions_are_written_into_a_forebay_yaml_that_is_there() {
    let lab = Lab::new();
    let yaml = lab.file(
        "forebay.yaml",
        "disks:\n  - mountpoint: /mnt\n    read_iops: 400000\n    write_iops: 100000\n    \
         read_bandwidth: 1900000000\n    write_bandwidth: 800000000\n",
    );
    let page = lab.file("explore.html", "");
    let (yaml, page) = (yaml.display().to_string(), page.display().to_string());
    let goals = ["--goal", "p95=1ms", "--goal", "p95=2ms"];
    let files = ["--from", I3, "-o", &yaml, "--report", &page];
    let ended = explore(&[&files[..], &goals[..]].concat());
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let written = std::fs::read_to_string(&yaml).unwrap();
    assert_eq!(written.matches("read_percentile: 95.0, latency_us:").count(), 2, "{written}");
    assert!(std::fs::read_to_string(&page).unwrap().contains("straight line"));
    explore(&["--from", I3, "-o", "/nowhere/forebay.yaml"])
        .complains(2, &["run `forebay tune DIR`"]);
    let broken = lab.file("broken.yaml", "disks: []").display().to_string();
    explore(&["--from", I3, "-o", &broken]).complains(2, &["broken.yaml:1:"]);
}

#[test]
fn a_simulated_disk_is_measured_and_kept() {
    let lab = Lab::new();
    let (kept, again) = (lab.file("kept.csv", ""), lab.file("again.csv", ""));
    let (kept, again) = (kept.display().to_string(), again.display().to_string());
    let goal = ["--goal", "p99.9=20ms", "--json"];
    let of = |input: [&str; 2], save: &str| {
        explore(&[&input[..], &goal[..], &["--save", save]].concat()).results()["fits"].clone()
    };
    let measured = of(["--disk", "gp3"], &kept);
    assert_eq!(measured[0]["goal"], "p99.9=20ms");
    assert_eq!(of(["--from", &kept], &again), measured);
    explore(&["--disk", "gp33"]).complains(2, &["did you mean `gp3`?"]);
    explore(&[]).complains(2, &["--from"]);
    explore(&["--from", I3, "--disk", "gp3"]).complains(2, &["cannot be used with"]);
}
