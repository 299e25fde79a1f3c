//! What the program says of files and options that it cannot use.

use std::fs::{self, File};
use std::os::unix::fs::OpenOptionsExt;
use std::process::{Command, Stdio};

use rustix::fs::OFlags;

use crate::loop_mount::{Lab, MIXED};
use crate::process::run;
use crate::system::system;

/// The program alone.
fn forebay() -> Command {
    Command::new(env!("CARGO_BIN_EXE_forebay"))
}

#[test]
fn a_job_file_that_is_not_one_is_named_with_line_and_key() {
    let lab = Lab::new();
    let unknown = MIXED.replace("parallelism", "paralelism");
    run(&mut lab.bench(&unknown)).complains(2, &["jobs.yaml:6:", "paralelism", "parallelism"]);
    let shares = MIXED.replace("shares: 100", "shares: 0");
    run(&mut lab.bench(&shares)).complains(2, &["jobs.yaml:6:", "shares", "1 to 10000"]);
    run(&mut lab.bench("- name: [")).complains(2, &["jobs.yaml:"]);
    run(&mut lab.bench("")).complains(2, &["jobs.yaml"]);
}

#[test]
fn a_file_that_is_missing_is_named() {
    let lab = Lab::new();
    let mut command = lab.bench(MIXED);
    run(command.args(["--sched-groups", "/nowhere/groups.yaml"]))
        .complains(2, &["/nowhere/groups.yaml"]);
    let mut command = lab.bare_bench(MIXED);
    run(command.args(["--properties", "/nowhere/io.yaml"])).complains(2, &["/nowhere/io.yaml"]);
}

#[test]
fn properties_that_do_not_cover_the_directory_are_no_free_pass() {
    let lab = Lab::new();
    let elsewhere = lab.file(
        "elsewhere.yaml",
        "disks: [{mountpoint: /proc, read_iops: 1, write_iops: 1, read_bandwidth: 1, \
         write_bandwidth: 1}]",
    );
    let mut command = lab.bare_bench(MIXED);
    command.arg("--dir").arg(lab.dir.path()).arg("--properties").arg(elsewhere);
    run(&mut command).complains(2, &["do not cover", "/proc"]);
}

#[test]
fn shards_that_do_not_exist_are_named() {
    let lab = Lab::new();
    let jobs = MIXED.replace("shards: all", "shards: [7]");
    run(lab.bench(&jobs).args(["--shards", "2"])).complains(2, &["shard 7"]);
}

#[test]
fn more_requests_than_memory_has_room_for_are_refused() {
    let lab = Lab::new();
    let jobs = MIXED.replace("parallelism: 2", "parallelism: 65536, rps: 1, batch: 65536");
    run(&mut lab.bench(&jobs)).complains(2, &["parallelism", "batch"]);
}

#[test]
fn options_that_make_no_sense_are_refused() {
    let lab = Lab::new();
    for (option, value) in [
        ("--duration", "10"),
        ("--duration", "0s"),
        ("--shards", "0"),
        ("--shards", "257"),
        ("--backend", "magic"),
        ("--policy", "luck"),
    ] {
        run(lab.bare_bench(MIXED).args([option, value])).complains(2, &[option]);
    }
}

#[test]
fn a_value_that_is_no_number_is_refused_with_examples() {
    let lab = Lab::new();
    run(lab.bare_bench(MIXED).args(["--shards", "x"]))
        .complains(2, &["--shards <N>': expected a whole number from 1 to 256"]);
    run(forebay().args(["sim", "swarm", "many"]))
        .complains(2, &["<N>': expected a whole number from 1 to 18446744073709551615"]);
    run(forebay().args(["tune", "--write-limit", "1MB", "."])).complains(2, &["32MB or more"]);
}

#[test]
fn help_is_as_wide_as_the_terminal_and_no_wider_than_a_page() {
    for (columns, most) in [("60", 60), ("200", 100)] {
        for command in ["bench", "tune", "rm", "trace"] {
            let help = run(forebay().args([command, "--help"]).env("COLUMNS", columns));
            let wide = help.stdout.lines().find(|line| line.chars().count() > most);
            assert_eq!(wide, None, "{command} in {columns} columns");
        }
    }
}

#[test]
fn a_gate_without_a_comparison_is_refused() {
    let lab = Lab::new();
    run(lab.bare_bench(MIXED).args(["--fail-below", "5%"])).complains(2, &["--diff"]);
    run(forebay().args(["tune", ".", "--fail-below", "5%"])).complains(2, &["--diff", "--history"]);
}

#[test]
fn nothing_is_made_for_a_measurement_of_nothing() {
    let lab = Lab::new();
    let [out, history] = ["out", "history"].map(|name| lab.dir.path().join(name));
    let mut tune = forebay();
    tune.arg("tune").arg("--out").arg(out).arg("--history").arg(history);
    run(&mut tune).complains(2, &["the directory is missing"]);
    lab.assert_nothing_left();
}

#[test]
fn files_that_are_no_results_are_told_by_what_they_are() {
    let lab = Lab::new();
    let files = [
        ("empty.json", "", "the file is empty"),
        ("cut.json", "{\"version\": ", "not valid JSON: EOF"),
        ("other.json", "[]", "this is JSON, but of something else"),
        ("binary.json", "\0", "a binary file"),
    ];
    for (name, text, says) in files {
        let file = lab.file(name, text);
        let named = format!("{}: ", file.display());
        run(forebay().arg("report").arg(&file)).complains(2, &[&named, says]);
        let diff = run(forebay().args(["bench", "--diff"]).arg(&file).arg(&file));
        diff.complains(2, &[&named, says]);
    }
    let missing = run(forebay().args(["bench", "--diff", "/nowhere/a.json", "/nowhere/b.json"]));
    missing.complains(2, &["/nowhere/a.json: cannot be read", "check the path"]);
}

/// The results of the format's golden file, changed.
fn changed(change: impl FnOnce(&mut serde_json::Value)) -> String {
    let golden = include_str!("../../../../lab/forebay-load/tests/golden/run.json");
    let mut results = serde_json::from_str(golden).unwrap();
    change(&mut results);
    results.to_string()
}

#[test]
fn results_whose_figures_cannot_be_are_refused_with_their_place() {
    let lab = Lab::new();
    let counts = "5:18446744073709551615 9:18446744073709551615";
    let files = [
        ("version.json", changed(|of| of["version"] = 2.into()), "version 2 of their format"),
        ("negative.json", changed(|of| of["duration_seconds"] = (-5).into()), "`duration_seconds`"),
        (
            "counts.json",
            changed(|of| {
                let interval = serde_json::json!({"requests": 1, "bytes": 1, "latency_ns": counts});
                of["classes"][0]["intervals"] = vec![interval; 20].into();
            }),
            "`classes[0].intervals[0].latency_ns`",
        ),
        (
            "large.json",
            changed(|of| of["classes"][0]["requests"] = u64::MAX.into()),
            "`classes[0].requests` is 18446744073709551615",
        ),
    ];
    for (name, text, says) in files {
        let file = lab.file(name, &text);
        let named = format!("{}: ", file.display());
        let out = lab.dir.path().join("page.html");
        run(forebay().arg("report").arg(&file).arg("--out").arg(out)).complains(2, &[&named, says]);
        let diff = run(forebay().args(["bench", "--diff"]).arg(&file).arg(&file));
        diff.complains(2, &[&named, says]);
    }
    lab.assert_nothing_left();
}

#[test]
fn options_that_are_not_for_the_policy_are_refused_before_anything_is_written() {
    let lab = Lab::new();
    for options in [
        ["--policy", "none", "--latency-target", "p95=1ms"],
        ["--policy", "2016", "--control", "rates"],
    ] {
        for mut bench in [lab.bench(MIXED), lab.bare_bench(MIXED)] {
            let ended = run(bench.arg("--dir").arg(lab.dir.path()).args(options));
            ended.complains(2, &["is for --policy pace+window"]);
            assert!(!ended.stderr.contains("probing"), "{}", ended.stderr);
            assert!(!ended.stderr.contains("writing"), "{}", ended.stderr);
        }
    }
}

#[test]
fn a_negative_number_is_refused_as_one() {
    let lab = Lab::new();
    for (option, value) in
        [("--duration", "-1s"), ("--shards", "-1"), ("--seed", "-1"), ("--concurrency", "-7")]
    {
        let refused = run(lab.bare_bench(MIXED).args([option, value]));
        refused.complains(2, &[option, &format!("invalid value '{value}'")]);
    }
    run(forebay().args(["sim", "swarm", "-3"])).complains(2, &["invalid value '-3'"]);
    let memory = ["disk", "serve", "--disk", "nvme-2022", "--memory", "-1", "."];
    run(forebay().args(memory)).complains(2, &["invalid value '-1' for '--memory"]);
}

#[test]
fn an_output_that_cannot_be_written_is_refused_with_its_option() {
    run(forebay().args(["reproduce", "--out", "/proc/none", "S1-9"]))
        .complains(2, &["/proc/none", "--out"]);
    run(forebay().args(["tune", "--out", "/proc/none", "."]))
        .complains(2, &["/proc/none", "--out"]);
    run(forebay().args(["tune", "/nowhere"])).complains(2, &["/nowhere", "that exists"]);
}

#[test]
fn no_file_that_is_read_is_replaced() {
    let lab = Lab::new();
    let jobs = lab.file("jobs.yaml", MIXED);
    let results = lab.file("run.json", &changed(|_| ()));
    let trace = lab.file("trace.txt", "8,0 0 1 0.000000001 7 Q W 8 + 8 [x]\n");
    let [jobs, results, trace] = [&jobs, &results, &trace].map(|path| path.to_str().unwrap());
    let simulated = ["sim", "run", jobs, "--disk", "gp3", "--duration", "10ms"];
    for arguments in [
        vec!["report", results, "--out", results],
        vec!["trace", "requests", "--from", trace, "--output", trace],
        vec!["trace", "requests", "--from", trace, "--report", trace],
        vec!["trace", "discards", "--from", trace, "--output", trace],
        [&simulated[..], &["--report", jobs]].concat(),
        [&simulated[..], &["--page", jobs]].concat(),
        vec!["bench", jobs, "--report", jobs],
    ] {
        let before = fs::read(arguments[arguments.len() - 1]).unwrap();
        run(forebay().args(&arguments)).complains(2, &["name another place"]);
        assert_eq!(fs::read(arguments[arguments.len() - 1]).unwrap(), before, "{arguments:?}");
    }
}

#[test]
fn a_directory_that_is_none_is_refused() {
    let lab = Lab::new();
    run(lab.bare_bench(MIXED).args(["--dir", "/nowhere"])).complains(2, &["/nowhere", "create it"]);
    run(lab.bare_bench(MIXED).args(["--dir", "/proc"])).complains(2, &["/proc", "--dir"]);
    let file = lab.file("file", "");
    run(lab.bare_bench(MIXED).arg("--dir").arg(file)).complains(2, &["not a directory"]);
}

/// A loop device, for root only.
struct Loop {
    device: String,
    _backing: tempfile::NamedTempFile,
}

impl Loop {
    fn new() -> Option<Self> {
        let backing = tempfile::NamedTempFile::new().unwrap();
        File::set_len(backing.as_file(), 64 << 20).unwrap();
        let path = backing.path().to_str().unwrap();
        let device = system("losetup", &["--find", "--show", path])?;
        Some(Self { device, _backing: backing })
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        system("losetup", &["--detach", &self.device]);
    }
}

#[test]
fn a_block_device_is_used_only_where_its_data_may_go() {
    let Some(disk) = Loop::new() else { return };
    let lab = Lab::new();
    let bench = |jobs: &str| {
        let mut command = lab.bare_bench(jobs);
        command.args(["--dir", &disk.device, "--shards", "2", "--format", "json"]);
        let properties = fs::read_to_string(lab.properties()).unwrap();
        let properties = properties.replace(lab.dir.path().to_str().unwrap(), &disk.device);
        command.arg("--properties").arg(lab.file("device.yaml", &properties));
        command
    };
    run(&mut bench(MIXED)).complains(2, &["--overwrite-device", &disk.device]);
    let ended = run(bench(MIXED).arg("--overwrite-device"));
    assert_eq!(ended.results()["classes"][0]["errors"], 0);
    let too_large = MIXED.replace("data_size: 2MB", "data_size: 200MB");
    run(bench(&too_large).arg("--overwrite-device")).complains(2, &["data_size", &disk.device]);
    // as a mount holds it
    let exclusive = OFlags::EXCL.bits().cast_signed();
    let held = File::options().read(true).custom_flags(exclusive).open(&disk.device).unwrap();
    run(bench(MIXED).arg("--overwrite-device")).complains(2, &["is in use; unmount it"]);
    let part = |part: &str| {
        let mut command = bench(MIXED);
        command.args(["--overwrite-device", "--share-device", part]);
        command
    };
    run(&mut part("1/2")).complains(2, &["is in use; unmount it"]);
    drop(held);
    let runs = [part("1/2"), part("2/2")].map(|mut part| part.stdout(Stdio::null()).spawn());
    runs.into_iter().for_each(|run| assert!(run.unwrap().wait().unwrap().success()));
    run(bench(MIXED).args(["--share-device", "1/2"])).complains(2, &["--overwrite-device"]);
    let append = MIXED.replace("overwrite", "append");
    run(bench(&append).arg("--overwrite-device")).complains(2, &["bulk", "directory"]);
}

#[test]
fn a_place_without_files_is_refused_before_any_probe() {
    let lab = Lab::new();
    let proc = |command: &mut Command| {
        let ended = run(command);
        ended.complains(2, &["cannot make", "`/proc`", "name another directory"]);
        assert!(!ended.stderr.contains("probing"), "{}", ended.stderr);
        assert!(!ended.stderr.contains("entity not found"), "{}", ended.stderr);
    };
    proc(lab.bare_bench(MIXED).args(["--dir", "/proc"]));
    proc(forebay().args(["explore", "/proc"]));
    run(forebay().args(["tune", "/proc"])).complains(2, &["`/proc`", "name a directory"]);
}

#[test]
fn a_file_of_another_kind_is_called_by_its_kind() {
    let lab = Lab::new();
    let jobs = lab.file("jobs.yaml", MIXED);
    run(forebay().args(["info", "--properties"]).arg(&jobs))
        .complains(2, &["jobs.yaml", "this is a job file, which `bench` and `sim run` take"]);
    let program = env!("CARGO_BIN_EXE_forebay");
    for arguments in [
        vec!["info", "--properties", program],
        vec!["explore", "--from", program],
        vec!["report", program],
        vec!["sim", "replay", program],
        vec!["tune", "--fit-from", program],
        vec!["report", "/dev/zero"],
    ] {
        run(forebay().args(arguments)).complains(2, &["a binary file"]);
    }
}

#[test]
fn a_latency_goal_that_a_disk_cannot_keep_is_told_as_overridden() {
    let lab = Lab::new();
    let jobs = lab.file("jobs.yaml", MIXED);
    for (goal, expected) in [("1us", true), ("50ms", false), ("0.75ms", false)] {
        let mut command = forebay();
        command.args(["sim", "run", "--disk", "gp3", "--duration", "10ms", "--latency-goal", goal]);
        let ended = run(command.arg(&jobs));
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        let is_reported = ended.stderr.contains(&format!("instead of --latency-goal {goal}"));
        let is_reported = is_reported || ended.stderr.contains("instead of --latency-goal 1.0µs");
        assert_eq!(is_reported, expected, "{}", ended.stderr);
    }
    let info = run(forebay().args(["info", "--disk", "gp3", "--latency-goal", "1us"])).stdout;
    let info = info.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(info.contains("in place of the latency goal of 1 us, which is shorter"), "{info}");
}

#[test]
fn a_misspelt_preset_is_answered_with_the_nearest_one() {
    let lab = Lab::new();
    let jobs = lab.file("jobs.yaml", MIXED);
    let jobs = jobs.to_str().unwrap();
    for arguments in [
        vec!["info", "--disk", "nvme-202"],
        vec!["sim", "run", jobs, "--disk", "nvme-202"],
        vec!["tune", "--simulate", "nvme-202"],
        vec!["explore", "--simulate", "nvme-202"],
        vec!["disk", "serve", "--disk", "nvme-202", "/tmp"],
    ] {
        run(forebay().args(arguments)).complains(2, &["did you mean `nvme-2022`?"]);
    }
}
