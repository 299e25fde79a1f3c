//! Disks and filesystems that fail.

use std::fs;
use std::process::Command;

use crate::loop_mount::{Lab, MIXED, REMOVALS};
use crate::process::{run, run_and_at};
use crate::system::system;

/// A tmpfs of its own, for root only.
struct Tmpfs(tempfile::TempDir);

impl Tmpfs {
    fn new(size: &str) -> Option<Self> {
        let dir = tempfile::tempdir().unwrap();
        let options = format!("size={size}");
        system("mount", &["-t", "tmpfs", "-o", &options, "tmpfs", dir.path().to_str()?])?;
        Some(Self(dir))
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        system("umount", &[self.0.path().to_str().unwrap()]);
    }
}

#[test]
fn too_little_space_is_noticed_before_anything_is_written() {
    let Some(tmpfs) = Tmpfs::new("4m") else { return };
    let lab = Lab::within(tmpfs.0.path());
    let jobs = MIXED.replace("data_size: 2MB", "data_size: 3MB");
    let ended = run(lab.bench(&jobs).args(["--shards", "1"]));
    ended.complains(2, &["need 6.00 MiB", "4.00 MiB free", "data_size", "--dir"]);
    lab.assert_nothing_left();
}

#[test]
fn a_disk_with_no_space_for_the_probe_can_be_described() {
    let Some(tmpfs) = Tmpfs::new("4m") else { return };
    let lab = Lab::within(tmpfs.0.path());
    run(lab.bare_bench(MIXED).args(["--shards", "1", "--dir"]).arg(tmpfs.0.path()))
        .complains(2, &["cannot probe", "4.00 MiB free", "--properties"]);
    lab.assert_nothing_left();
}

/// Appends reach the largest size that a file may have here, or the end of the space. Those that
/// fail are counted, and the run goes on.
fn assert_appends_fail(lab: &Lab, ended: &crate::process::Ended) {
    ended.complains(1, &["requests failed", "log-0", "cannot write"]);
    let run: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    let log = &run["classes"][0];
    assert!(log["errors"].as_u64().unwrap() > 0, "{log}");
    assert_eq!(run["classes"][1]["errors"], 0);
    assert!(run["classes"][1]["requests"].as_u64().unwrap() > 0);
    lab.assert_nothing_left();
}

const LOG: &str = "
- {name: log, type: append, shards: all, shard_info: {parallelism: 1, reqsize: 1MB, rps: 500}}
- {name: reads, type: randread, data_size: 1MB, shards: all, shard_info: {parallelism: 1}}
";

#[test]
fn requests_that_fail_are_counted_and_the_first_is_told() {
    let lab = Lab::new();
    for backend in ["auto", "threads"] {
        let mut limited = Command::new("sh");
        limited.args(["-c", "trap '' XFSZ; ulimit -f 4096; exec \"$@\"", "sh"]);
        let mut bench = lab.bench(LOG);
        bench.args(["--shards", "1", "--format", "json", "--backend", backend]);
        let ended = run(limited.arg(bench.get_program()).args(bench.get_args()));
        assert_appends_fail(&lab, &ended);
    }
}

#[test]
fn a_disk_that_fills_up_fails_appends_alone() {
    let Some(tmpfs) = Tmpfs::new("8m") else { return };
    let lab = Lab::within(tmpfs.0.path());
    let ended = run(lab.bench(LOG).args(["--shards", "1", "--format", "json"]));
    assert_appends_fail(&lab, &ended);
}

#[test]
fn a_directory_that_vanishes_fails_removals() {
    let lab = Lab::new();
    let mut command = lab.bench(REMOVALS);
    command.args(["--shards", "1", "--duration", "1s"]);
    let ended = run_and_at(&mut command, "running without", |_| {
        lab.left_behind().iter().for_each(|private| fs::remove_dir_all(private).unwrap());
    });
    ended.complains(1, &["removals-0"]);
}

/// Writes would make the backing file of the disk longer again.
const READS: &str = "
- {name: reads, type: randread, data_size: 8MB, shards: all, shard_info: {parallelism: 2}}
";

/// A disk that was cut off behind its filesystem's back, for root only.
#[test]
fn errors_of_the_disk_are_counted() {
    let backing = tempfile::NamedTempFile::new().unwrap();
    backing.as_file().set_len(64 << 20).unwrap();
    let path = backing.path().to_str().unwrap();
    let Some(device) = system("losetup", &["--find", "--show", path]) else { return };
    let lab = Lab::new();
    let properties = fs::read_to_string(lab.properties()).unwrap();
    let properties = properties.replace(lab.dir.path().to_str().unwrap(), &device);
    let mut command = lab.bare_bench(READS);
    command.args(["--dir", &device, "--overwrite-device", "--shards", "1"]);
    command.arg("--properties").arg(lab.file("device.yaml", &properties));
    let ended = run_and_at(&mut command, "running without", |_| {
        backing.as_file().set_len(0).unwrap();
    });
    system("losetup", &["--detach", &device]);
    ended.complains(1, &["requests failed", "cannot read", &device, "Input/output error"]);
    assert!(ended.stdout.contains("requests failed"), "{}", ended.stdout);
}

#[test]
fn results_are_shown_even_if_there_is_no_room_for_the_page() {
    let (lab, pages) = (Lab::new(), Lab::new());
    let jobs = lab.file("jobs.yaml", MIXED);
    let trace = lab.file("trace.txt", "8,0 0 1 0.000000001 7 Q W 8 + 8 [x]\n");
    let page = pages.dir.path().join("page.html");
    let simulated = ["sim", "run", "--disk", "gp3", "--duration", "10ms", "--warmup", "0s"];
    let simulated = [&simulated[..], &[jobs.to_str().unwrap()]].concat();
    let traced = ["trace", "requests", "--from", trace.to_str().unwrap()];
    let of_page = |arguments: &[&str], option: &str| {
        // no file can be as large as a page
        let mut limited = Command::new("sh");
        limited.args(["-c", "trap '' XFSZ; ulimit -f 2; exec \"$@\"", "sh"]);
        limited.arg(env!("CARGO_BIN_EXE_forebay")).args(arguments).arg(option).arg(&page);
        let ended = run(&mut limited);
        ended.complains(1, &["cannot write", "page.html"]);
        pages.assert_nothing_left();
        ended.stdout
    };
    assert!(of_page(&simulated, "--report").contains("reads"));
    assert!(of_page(&simulated, "--page").contains("reads"));
    assert!(of_page(&traced, "--report").contains("requests"));
}

#[test]
fn failed_requests_of_both_runs_of_a_comparison_are_counted() {
    let lab = Lab::new();
    let mut limited = Command::new("sh");
    limited.args(["-c", "trap '' XFSZ; ulimit -f 4096; exec \"$@\"", "sh"]);
    let mut bench = lab.bench(LOG);
    bench.args(["--shards", "1", "--format", "json", "--compare", "none"]);
    let ended = run(limited.arg(bench.get_program()).args(bench.get_args()));
    ended.complains(1, &["requests failed"]);
    let results: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    let errors =
        [0, 1].map(|run: usize| results["runs"][run]["classes"][0]["errors"].as_u64().unwrap());
    assert!(errors.iter().all(|&errors| errors > 0), "{errors:?}");
    let (before, _) = ended.stderr.split_once(" requests failed").unwrap();
    let told: u64 = before.split_whitespace().last().unwrap().parse().unwrap();
    // warm-up included
    assert!(told >= errors.iter().sum(), "{told} of {errors:?}");
}
