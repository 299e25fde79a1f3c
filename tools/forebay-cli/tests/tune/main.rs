//! `forebay tune`, from outside.
#![expect(clippy::unwrap_used, reason = "also outside of test functions")]

mod gate;

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use forebay::properties::{Lasting, Properties};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

const FILES: [&str; 4] = ["forebay.yaml", "io-properties.yaml", "tune.html", "tune.json"];

fn tune(out: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_forebay"));
    command.arg("tune").arg("--out").arg(out);
    command
}

fn names(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn complains(output: &Output, words: &str) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains(words), "`{words}` is not in: {said}");
    assert!(!said.contains("panicked"), "{said}");
}

fn said(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// Tunes a simulated disk.
fn simulated(out: &Path, more: &[&str]) -> Output {
    tune(out)
        .args(["--simulate", "four-channels", "--budget", "quick"])
        .args(more)
        .output()
        .unwrap()
}

#[test]
fn four_files_come_out_and_no_others() {
    let out = TempDir::new().unwrap();
    let text = said(&simulated(out.path(), &[]));
    assert!(text.contains("random reads") && text.contains("may be a burst"), "{text}");
    for words in ["requests of 128 KiB: full", "a quarter writes of 4 KiB", "I/O queues: "] {
        assert!(text.contains(words), "`{words}` is not in: {text}");
    }
    assert_eq!(names(out.path()), FILES);
    let properties = Properties::load(&out.path().join("io-properties.yaml")).unwrap();
    assert!((7800..8200).contains(&properties.disks[0].read_iops), "{properties:?}");
    let page = std::fs::read_to_string(out.path().join("tune.html")).unwrap();
    assert!(page.matches("<svg").count() == 8 && !page.contains("http-equiv"));
    assert!(!page.contains("<script") && !page.contains("<link"), "self-contained");
}

#[test]
fn a_simulated_disk_is_announced_as_one_and_the_report_begins_with_what_to_do() {
    let out = TempDir::new().unwrap();
    let ended = simulated(out.path(), &[]);
    let text = said(&ended);
    let todo: Vec<&str> = text.lines().skip(1).take(4).map(str::trim).collect();
    let todo = todo.join(" ");
    for words in ["forebay.yaml", "Seastar reads", "small writes and bytes written may be a burst"]
    {
        assert!(todo.contains(words), "`{words}` is not in: {text}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 110), "{text}");
    let announced = String::from_utf8_lossy(&ended.stderr);
    assert!(announced.contains("a simulated disk") && !announced.contains("about"), "{announced}");
    let place = format!("written to `{}`: io-properties.yaml", out.path().display());
    assert!(announced.contains(&place), "{announced}");
    let page = std::fs::read_to_string(out.path().join("tune.html")).unwrap();
    let first = page.split("<h2").nth(1).unwrap();
    assert!(first.contains("What to do"), "{first}");
    assert!(first.contains("--budget thorough") && first.contains("forebay info"), "{first}");
    assert!(!page.contains("<li class"), "nothing stands out among what to do");
}

#[test]
fn the_directory_for_the_files_is_made_and_the_library_reads_them() {
    let out = TempDir::new().unwrap();
    let deep = out.path().join("new/deep");
    said(&simulated(&deep, &[]));
    assert_eq!(names(&deep), FILES);
    let known = Properties::load(&deep.join("forebay.yaml")).unwrap();
    let disk = &known.disks[0];
    assert!(disk.measured.base_latency.is_some() && disk.measured.read.cost.len() > 8, "{disk:?}");
    let info = Command::new(env!("CARGO_BIN_EXE_forebay"))
        .args(["info", "--shards", "4", "--properties"])
        .arg(deep.join("forebay.yaml"))
        .output();
    let text = said(&info.unwrap());
    for words in ["base latency     5", "knee ", "measured at 1", "flush ", "discard "] {
        assert!(text.contains(words), "`{words}` is not in: {text}");
    }
}

#[test]
fn programs_read_the_same_figures() {
    let out = TempDir::new().unwrap();
    let text = said(&simulated(out.path(), &["--format", "json"]));
    let disks: Value = serde_json::from_str(&text).unwrap();
    let value = disks[0]["fit"]["read_iops"]["value"].as_f64().unwrap();
    assert!((7800.0..8200.0).contains(&value), "{value}");
    assert!(disks[0]["verdicts"][0]["text"].is_string());
    assert!(disks[0]["bytes_written"].as_u64().unwrap() <= 64 << 30);
}

#[test]
fn an_earlier_run_is_fitted_again_and_compared() {
    let (out, again) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    said(&simulated(out.path(), &[]));
    let run = out.path().join("tune.json");
    said(&tune(again.path()).arg("--fit-from").arg(&run).output().unwrap());
    for name in FILES {
        let read = |dir: &TempDir| std::fs::read_to_string(dir.path().join(name)).unwrap();
        assert!(read(&out) == read(&again), "{name}");
    }
    let same = tune(again.path()).arg("--diff").args([&run, &run]).output().unwrap();
    let text = said(&same);
    assert!(text.contains("write bandwidth") && !text.contains("LOST"), "{text}");
    assert!(text.contains("\nNothing changed by more than chance.\n"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}

#[test]
fn disks_are_compared_with_themselves_whatever_their_order() {
    let out = TempDir::new().unwrap();
    said(&simulated(out.path(), &[]));
    let mut one: Value =
        serde_json::from_slice(&std::fs::read(out.path().join("tune.json")).unwrap()).unwrap();
    let mut other = one[0].take();
    one = other.clone();
    one["facts"]["places"] = serde_json::json!(["/a"]);
    other["facts"]["places"] = serde_json::json!(["/b"]);
    for measured in other["phases"].as_array_mut().unwrap() {
        let interval = measured["samples"]["interval"].as_f64().unwrap();
        measured["samples"]["interval"] = serde_json::json!(interval * 0.8);
    }
    let compared = |old: Value, new: Value| {
        let (first, second) = (out.path().join("old.json"), out.path().join("new.json"));
        std::fs::write(&first, old.to_string()).unwrap();
        std::fs::write(&second, new.to_string()).unwrap();
        let mut compared = tune(out.path());
        compared.args(["--other-disk", "--diff"]).args([first, second]);
        said(&compared.output().unwrap())
    };
    let of = |runs: [&Value; 2]| Value::Array(runs.map(Value::clone).into());
    let text = compared(of([&one, &other]), of([&other, &one]));
    assert!(text.starts_with("/b\n") && text.matches("Nothing changed").count() == 2, "{text}");
    let text = compared(Value::Array(vec![one]), Value::Array(vec![other]));
    assert!(text.starts_with("/a before, /b now\n") && text.contains(" more\n"), "{text}");
}

#[test]
fn the_lasting_rate_of_a_volume_that_was_watched_is_in_the_files() {
    let out = TempDir::new().unwrap();
    let disk = out.path().join("volume.yaml");
    let volume = "kind: cloud\niops: 300\nburst_iops: 3000\nburst_credits: 300000\n\
                  bandwidth: 134217728\nlatency: 353us\n";
    std::fs::write(&disk, volume).unwrap();
    let watched = |hours: &str| {
        let mut command = tune(out.path());
        command.arg("--simulate").arg(&disk).args(["--watch", hours]).output().unwrap()
    };
    let text = said(&watched("1"));
    assert!(text.contains("300 without;"), "{text}");
    let properties = Properties::load(&out.path().join("forebay.yaml")).unwrap();
    let (disk, of) = (&properties.disks[0], &properties.disks[0].measured);
    assert!((291..=309).contains(&disk.write_iops), "{disk:?}");
    assert!((75_000_000..83_000_000).contains(&disk.read_bandwidth), "{disk:?}");
    let lasts = [&of.read, &of.write].map(|at| [at.iops_sustained, at.bandwidth_sustained]);
    assert_eq!(lasts, [[Some(Lasting::Yes); 2]; 2]);
    complains(&watched("49"), "1..=48");
}

#[test]
fn a_simulated_disk_keeps_its_seed_when_the_run_is_continued() {
    let out = TempDir::new().unwrap();
    let begin = ["--simulate", "gp3", "--budget", "quick", "--seed", "7"];
    said(&tune(out.path()).args(begin).output().unwrap());
    let file = out.path().join("tune.json");
    let text = std::fs::read_to_string(&file).unwrap();
    let mut runs: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(runs[0]["seed"], 7);
    let phases = runs[0]["phases"].as_array_mut().unwrap();
    phases.truncate(phases.len() - 3);
    runs[0]["complete"] = false.into();
    let mut continued = |seed: u64| {
        runs[0]["seed"] = seed.into();
        std::fs::write(&file, runs.to_string()).unwrap();
        said(&tune(out.path()).arg("--resume").arg(&file).output().unwrap());
        let runs: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
        runs[0]["phases"].clone()
    };
    assert_eq!(continued(7), continued(7));
    assert_ne!(continued(7), continued(8));
}

#[test]
fn a_limit_of_writes_is_kept() {
    let out = TempDir::new().unwrap();
    let json = said(&simulated(out.path(), &["--format", "json", "--write-limit", "1GB"]));
    let disks: Value = serde_json::from_str(&json).unwrap();
    assert!(disks[0]["bytes_written"].as_u64().unwrap() <= 1 << 30);
    for (too_little, says) in [("20MB", "32MB or more"), ("34MB", "raise it with --write-limit")] {
        complains(&simulated(out.path(), &["--write-limit", too_little]), says);
    }
}

#[test]
fn unmeasurable_targets_are_reported_and_no_files_are_left() {
    let out = TempDir::new().unwrap();
    let try_dir = |dir: &str| tune(out.path()).arg(dir).output().unwrap();
    complains(&try_dir("/nowhere/at/all"), "a directory that exists");
    complains(&try_dir("/dev/shm"), "in memory");
    complains(&try_dir("/dev/null"), "is not a directory");
    complains(&try_dir("/proc"), "only the kernel's own files");
    complains(&tune(out.path()).output().unwrap(), "the directory is missing");
    complains(&simulated(Path::new("/proc/missing"), &[]), "name another directory with --out");
    let missing = out.path().join("run.json");
    complains(&tune(out.path()).arg("--resume").arg(&missing).output().unwrap(), "cannot be read");
    std::fs::write(&missing, "{}").unwrap();
    complains(&tune(out.path()).arg("--fit-from").arg(&missing).output().unwrap(), "not a run");
    assert_eq!(names(out.path()), ["run.json"]);
}

/// Runs in a file, changed and written as another.
fn changed(from: &Path, to: &Path, change: impl Fn(&mut Vec<Value>)) {
    let mut runs = serde_json::from_slice(&std::fs::read(from).unwrap()).unwrap();
    change(&mut runs);
    std::fs::write(to, serde_json::to_vec(&runs).unwrap()).unwrap();
}

#[test]
fn a_run_goes_on_with_the_disk_that_it_is_of_and_keeps_the_others() {
    let out = TempDir::new().unwrap();
    said(&simulated(out.path(), &[]));
    let [run, other] = ["tune.json", "other.json"].map(|name| out.path().join(name));
    changed(&run, &other, |runs| {
        runs[0]["complete"] = false.into();
        runs[0]["facts"]["disks"] = vec!["nvme9n1"].into();
    });
    let resumed = || tune(out.path()).arg("--resume").arg(&other).output().unwrap();
    complains(&resumed(), "nvme9n1 was measured, and four-channels is at four-channels now");
    changed(&run, &other, |runs| {
        runs.push(runs[0].clone());
        runs[1]["facts"]["places"] = vec!["another"].into();
        runs[0]["complete"] = false.into();
    });
    said(&resumed());
    let runs: Vec<Value> = serde_json::from_slice(&std::fs::read(&run).unwrap()).unwrap();
    assert_eq!(runs.len(), 2);
}

#[test]
fn what_was_measured_before_the_place_for_it_was_full_is_kept() {
    let out = TempDir::new().unwrap();
    let limited = "trap '' XFSZ; ulimit -f 40; exec \"$0\" tune --out \"$1\" --simulate four-channels \
                   --budget quick";
    let mut command = Command::new("sh");
    command.args(["-c", limited, env!("CARGO_BIN_EXE_forebay")]).arg(out.path());
    complains(&command.output().unwrap(), "tune.partial.json --out");
    assert_eq!(names(out.path()), ["tune.partial.json"]);
    let partial = out.path().join("tune.partial.json");
    said(&tune(out.path()).arg("--resume").arg(partial).output().unwrap());
    assert_eq!(names(out.path()), FILES);
}

/// On a real directory: a second one at once is refused, and Ctrl-C leaves nothing behind.
#[test]
fn one_at_a_time_and_an_interruption_leaves_nothing() {
    let dir = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let out = TempDir::new().unwrap();
    let mut first = tune(out.path());
    first.arg(dir.path()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = first.spawn().unwrap();
    let mut reader = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    assert!(line.starts_with("measuring") && line.contains("GiB written"), "{line}");
    let second = tune(out.path()).arg(dir.path()).output().unwrap();
    complains(&second, "another `forebay tune` measures the disk");
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let mut rest = String::new();
    reader.read_to_string(&mut rest).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{rest}");
    assert!(rest.contains("interrupted") && !rest.contains("panicked"), "{rest}");
    assert!(names(dir.path()).is_empty());
    assert!(!names(out.path()).contains(&String::from("io-properties.yaml")));
    // what goes on goes to the same place
    let is_kept = names(out.path()).contains(&String::from("tune.partial.json"));
    let goes_on = format!("tune.partial.json --out {}", out.path().display());
    assert_eq!(rest.contains(&goes_on), is_kept, "{rest}");
}

#[test]
fn a_file_of_runs_that_does_not_end_is_refused() {
    let out = TempDir::new().unwrap();
    for arguments in [
        &["--fit-from", "/dev/zero"][..],
        &["--resume", "/dev/zero"],
        &["--diff", "/dev/zero", "/dev/zero"],
    ] {
        // Who reads on ends there, and not where the machine has no memory left.
        let limited = "ulimit -v 2000000; exec \"$0\" tune \"$@\"";
        let mut command = Command::new("sh");
        command.args(["-c", limited, env!("CARGO_BIN_EXE_forebay"), "--out"]).arg(out.path());
        let ended = command.args(arguments).output().unwrap();
        complains(&ended, "/dev/zero: a binary file");
        assert_eq!(ended.status.code(), Some(2), "{arguments:?}");
    }
}
