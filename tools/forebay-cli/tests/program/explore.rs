//! `explore`: what it prints, and what it says of input that it cannot use.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::loop_mount::Lab;
use crate::process::{Ended, run, run_and_at};
use rustix::process::{Pid, Signal, kill_process};

const I3: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../lab/forebay-sim/presets/i3.2xlarge.csv");

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
    assert!(sum <= 0.35 && line >= 0.5, "{sum} alongside {line}");
    assert_eq!(fit["region"]["radii"].as_array().unwrap().len(), 33);
    let text = explore(&["--from", I3, "--goal", "p95=1ms"]);
    assert_eq!(text.code, Some(0), "{}", text.stderr);
    assert!(text.stdout.contains("p95=1ms") && text.stdout.contains("rejected"), "{}", text.stdout);
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
fn a_surface_of_another_disk_is_written_with_a_flag_only() {
    let lab = Lab::new();
    let yaml = |reads: u64, bytes: u64| {
        let figures = format!(
            "disks:\n  - mountpoint: /mnt\n    read_iops: {reads}\n    write_iops: 100000\n    \
             read_bandwidth: 43794403328\n    write_bandwidth: {bytes}\n"
        );
        lab.file("forebay.yaml", &figures).display().to_string()
    };
    // the first is the disk of the surface, the others have another figure each
    for (reads, bytes, words) in [
        (400_000, 800_000_000, None),
        (6_507_473, 800_000_000, Some("reads per second")),
        (400_000, 21_627_578_368, Some("bytes written per second")),
        (100_000, 800_000_000, Some("reads per second")),
    ] {
        let file = yaml(reads, bytes);
        let before = std::fs::read_to_string(&file).unwrap();
        let from = ["--from", I3, "--goal", "p95=1ms", "-o", &file];
        let ended = explore(&from);
        match words {
            None => assert_eq!(ended.code, Some(0), "{}", ended.stderr),
            Some(words) => {
                assert_eq!(ended.code, Some(2), "{}", ended.stderr);
                let said = ended.stderr;
                assert!(said.contains(words) && said.contains("--other-disk"), "{said}");
                assert_eq!(std::fs::read_to_string(&file).unwrap(), before);
                let ended = explore(&[&from[..], &["--other-disk"]].concat());
                assert_eq!(ended.code, Some(0), "{}", ended.stderr);
            }
        }
        assert!(std::fs::read_to_string(&file).unwrap().contains("regions:"));
    }
}

#[test]
fn goals_that_no_disk_or_not_this_one_keeps_are_refused() {
    explore(&["--from", I3, "--goal", "p95=10us"])
        .complains(2, &["i3.2xlarge.csv: the goal p95=10us is below", "such as --goal p95="]);
    explore(&["--from", I3, "--goal", "p99=1ms"]).complains(2, &["no measured p99", "p50, p95"]);
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
    let measured = of(["--simulate", "gp3"], &kept);
    assert_eq!(measured[0]["goal"], "p99.9=20ms");
    assert_eq!(of(["--from", &kept], &again), measured);
    explore(&["--simulate", "gp33"]).complains(2, &["did you mean `gp3`?"]);
    explore(&[]).complains(2, &["--from"]);
    explore(&["--from", I3, "--simulate", "gp3"]).complains(2, &["cannot be used with"]);
}

#[test]
fn large_reads_and_sizes_are_combined_on_a_simulated_disk_and_read_back() {
    let lab = Lab::new();
    let kept = lab.file("kept.csv", "").display().to_string();
    let disk = ["--simulate", "samsung-970-pro", "--grid", "6", "--seconds", "100ms", "--json"];
    let goal = ["--goal", "p95=5ms"];
    let largest = ["--read-size", "1MB", "--write-size", "1MB"];
    let sizes = ["--combine", "sizes", "--at-rates", "500,200"];
    for (combined, axes) in [
        (&["--combine", "reads"][..], "large_read_bandwidth"),
        (&[&sizes[..], &largest[..]].concat(), "write_bytes"),
    ] {
        let measured =
            explore(&[&disk[..], &goal, combined, &["--save", &kept]].concat()).results();
        assert_eq!(measured["axes"][0], axes);
        let again = explore(&[&["--from", &kept, "--json"][..], &goal].concat()).results();
        assert_eq!((&again["fits"], &again["axes"]), (&measured["fits"], &measured["axes"]));
        explore(&["--simulate", &kept]).complains(2, &["a disk is fitted to rates"]);
    }
    for (wrong, advice) in [
        (&["--combine", "sizes"][..], "Add --at-rates READS,WRITES"),
        (&["--combine", "reads", "--trim"], "leave out --trim"),
        (&["--at-rates", "1,2"], "add --combine sizes"),
    ] {
        explore(&[&disk[..], wrong].concat()).complains(2, &[advice]);
    }
}

#[test]
fn a_simulated_disk_is_loaded_with_requests_of_other_sizes() {
    let sizes = ["--read-size", "64kB", "--write-size", "1MB", "--seconds", "200ms"];
    let arguments = ["--simulate", "samsung-970-pro", "--grid", "6", "--json"];
    let cells = |more: &[&str]| {
        let lab = Lab::new();
        let save = lab.file("kept.csv", "").display().to_string();
        explore(&[&arguments[..], more, &["--save", &save]].concat());
        std::fs::read_to_string(save).unwrap()
    };
    assert_ne!(cells(&sizes), cells(&[]));
    let refused = |more: &[&str], why: &str| {
        explore(&[&arguments[..], more].concat()).complains(2, &[why]);
    };
    refused(&["--data-size", "1kB"], "--read-size is 4096 bytes, and the data has 1024");
    refused(&["--trim"], "the file does not state the cost of a discard");
    refused(&["--trim-after", "10s"], "--trim");
    explore(&["--simulate", "nvme-2022", "--grid", "4"])
        .complains(2, &["at least 9", "--grid of 6"]);
}

/// Properties that any disk keeps, on a busy machine too.
fn slow(lab: &Lab) -> PathBuf {
    let dir = lab.dir.path().display();
    let text = format!(
        "disks: [{{mountpoint: \"{dir}\", read_iops: 400, write_iops: 400, read_bandwidth: \
         4000000, write_bandwidth: 4000000}}]"
    );
    lab.file("slow.yaml", &text)
}

/// `explore` on the directory of the lab, with few short loads and little data.
fn of_directory(lab: &Lab, save: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_forebay"));
    command.arg("explore").arg(lab.dir.path()).args(["--save", save]);
    command.args(["--goal", "p50=30s", "--properties"]).arg(slow(lab));
    command.args(["--seconds", "40ms", "--data-size", "64MB"]).args(arguments);
    command
}

#[test]
fn a_directory_is_measured_and_nothing_is_left() {
    let (lab, kept) = (Lab::new(), Lab::new());
    let save = kept.dir.path().join("explore.csv").display().to_string();
    for arguments in [&["--grid", "5", "--trim"][..], &[]] {
        let ended = run(of_directory(&lab, &save, arguments).arg("--json"));
        lab.assert_nothing_left();
        assert_eq!(kept.left_behind().len(), 1, "{:?}", kept.left_behind());
        let results = ended.results();
        let count = |name: &str| results[name].as_u64().unwrap();
        let loads = count("cells") + count("missed");
        if arguments.is_empty() {
            assert!((9..=73).contains(&loads), "{loads}");
        } else {
            assert_eq!(loads, 25);
        }
        assert!(ended.stderr.contains(" loads of 0.1 s each"), "{}", ended.stderr);
        let again = explore(&["--from", &save, "--goal", "p50=30s", "--json"]).results();
        assert_eq!(again["fits"], results["fits"]);
    }
}

#[test]
fn a_directory_whose_name_is_no_text_is_measured() {
    let (lab, kept) = (Lab::new(), Lab::new());
    let place = lab.dir.path().join(OsStr::from_bytes(b"n\xff"));
    std::fs::create_dir(&place).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_forebay"));
    command.arg("explore").arg(place).arg("--save").arg(kept.dir.path().join("explore.csv"));
    command.args(["--goal", "p50=30s", "--grid", "5", "--properties"]).arg(slow(&lab));
    let ended = run(command.args(["--seconds", "40ms", "--data-size", "64MB"]));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
}

#[test]
fn an_interrupted_measurement_is_gone_on_with() {
    let (lab, kept) = (Lab::new(), Lab::new());
    let save = kept.dir.path().join("explore.csv").display().to_string();
    let partial = format!("{save}.partial.json");
    let grid = ["--grid", "5"];
    let resumed = [&grid[..], &["--resume"]].concat();
    of_directory_complains(&lab, &save, &resumed, &["there is no `", "leave out --resume"]);
    let ended = run_and_at(&mut of_directory(&lab, &save, &grid), "measuring", |child| {
        while !std::fs::exists(&partial).unwrap() {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        kill_process(Pid::from_child(child), Signal::INT).unwrap();
    });
    ended.complains(130, &[" saved in `", "--resume"]);
    lab.assert_nothing_left();
    of_directory_complains(&lab, &save, &grid, &["--resume, or remove it"]);
    of_directory_complains(&lab, &save, &["--resume"], &["with other options"]);
    let ended = run(of_directory(&lab, &save, &resumed).arg("--json"));
    assert!(ended.stderr.contains("of them are known"), "{}", ended.stderr);
    let results = ended.results();
    let loads = results["cells"].as_u64().unwrap() + results["missed"].as_u64().unwrap();
    assert_eq!(loads, 25);
    assert!(!std::fs::exists(&partial).unwrap());
    let rates = |write_bandwidth: &str, read_iops: &str| {
        let task = kept_task(lab.dir.path());
        format!(
            "{{\"task\": {task}, \"write_bandwidth\": {write_bandwidth}, \"read_iops\": {read_iops}, \
             \"surface\": \"w_bw_Bps\"}}"
        )
    };
    for (text, why) in [
        (rates("-5", "400"), "its highest rates are -5 bytes written"),
        (rates("4000000", "1e300"), "reads per second"),
        (rates("4000000", "400"), "its surface is invalid"),
    ] {
        std::fs::write(&partial, text).unwrap();
        of_directory_complains(&lab, &save, &resumed, &[why, "remove the file, and measure again"]);
    }
    std::fs::write(&partial, "{").unwrap();
    of_directory_complains(&lab, &save, &["--resume"], &["remove the file, and measure again"]);
}

/// What [`of_directory`] with a grid of 5 writes down of its options.
fn kept_task(dir: &Path) -> String {
    let dir = dir.canonicalize().unwrap();
    format!(
        "{{\"version\": 1, \"place\": {dir:?}, \"rates\": 5, \"full\": true, \"goals\": [\"p50=30s\"], \
         \"seconds\": 0.04, \"read_bytes\": 4096, \"write_bytes\": 131072, \"data_bytes\": 67108864, \
         \"trim\": false}}"
    )
}

fn of_directory_complains(lab: &Lab, save: &str, arguments: &[&str], words: &[&str]) {
    run(&mut of_directory(lab, save, arguments)).complains(2, words);
}

#[test]
fn unmeasurable_targets_are_refused() {
    let lab = Lab::new();
    let save = lab.dir.path().join("explore.csv").display().to_string();
    let dir = lab.dir.path().display().to_string();
    let on = |arguments: &[&str]| explore(&[&[&*dir, "--save", &save], arguments].concat());
    on(&["--read-size", "1000"]).complains(2, &["--read-size is 1000 bytes", "multiple of 512"]);
    on(&["--data-size", "1MB"]).complains(2, &["--data-size is 1048576 bytes; give"]);
    on(&["--data-size", "9000000GB"]).complains(2, &["free", "--data-size is"]);
    on(&["--seconds", "0s"]).complains(2, &["more than zero"]);
    on(&["--simulate", "gp3"]).complains(2, &["cannot be used with"]);
    explore(&["/nowhere"]).complains(2, &["the directory `/nowhere` does not exist"]);
    explore(&["/dev/null"]).complains(2, &["/dev/null"]);
    explore(&["--from", I3, "--trim"]).complains(2, &["cannot be used with"]);
    explore(&["/proc"]).complains(2, &["cannot make files in `/proc`", "name another directory"]);
    lab.assert_nothing_left();
}

#[test]
fn predictions_of_what_if_match_the_simulator() {
    let lab = Lab::new();
    let disk = "disks:\n  - mountpoint: /mnt\n    read_iops: 411000\n    write_iops: 183000\n    \
                read_bandwidth: 2015000000\n    write_bandwidth: 808000000\n";
    let bare = lab.file("bare.yaml", disk).display().to_string();
    let yaml = lab.file("forebay.yaml", disk).display().to_string();
    let written = explore(&["--from", I3, "--goal", "p95=1ms", "-o", &yaml]);
    assert_eq!(written.code, Some(0), "{}", written.stderr);
    let what_if = |more: &[&str]| explore(&[&["--what-if", &yaml], more].concat());
    let loads = ["--load", "queries:1000:reads=50000", "--load", "compaction:100:writes=max"];
    let results =
        what_if(&[&loads[..], &["--simulate", "i3.2xlarge", "--json"]].concat()).results();
    let class = |index: usize, name: &str| results["classes"][index][name].clone();
    assert_eq!(class(0, "predicted"), 50_000.0);
    assert_eq!((class(0, "is_less"), class(1, "is_less")), (false.into(), true.into()));
    for index in [0, 1] {
        let predicted = class(index, "predicted").as_f64().unwrap();
        let simulated = class(index, "simulated")["rate"].as_f64().unwrap();
        assert!((simulated / predicted - 1.0).abs() <= 0.1, "{predicted}, simulated {simulated}");
    }
    assert!(class(0, "simulated")["disk_p95_us"].as_f64().unwrap() <= 1100.0, "{results}");
    let text = what_if(&loads);
    assert_eq!(text.code, Some(0), "{}", text.stderr);
    assert!(text.stdout.contains("wait without bound: compaction"), "{}", text.stdout);
    what_if(&[]).complains(2, &["--load"]);
    what_if(&["--load", "a:0:reads=1"]).complains(2, &["shares from 1 to 10000"]);
    what_if(&["--load", "a:1:reads=1", "--load", "a:1:reads=2"]).complains(2, &["given twice"]);
    explore(&["--what-if", &bare, "--load", "a:1:reads=1"])
        .complains(2, &["holds no regions", "run `forebay explore DIR -o"]);
}
