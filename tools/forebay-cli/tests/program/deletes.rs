//! Jobs that delete files.

use std::fs::File;

use crate::loop_mount::Lab;
use crate::process::run;
use crate::system::skipped;

/// Two files of 4 MiB, each in four extents; more than the test's run needs is never left.
fn discards(options: &str, rps: u32, files: u32) -> String {
    format!(
        "
- name: discards
  type: discard
  shards: [0]
  data_size: {}MB
  files_count: {files}
  shard_info: {{parallelism: 1, rps: {rps}, reqsize: 2MB}}
  options: {{{options}}}
- name: reads
  type: randread
  shards: [0]
  data_size: 2MB
  shard_info: {{parallelism: 1, rps: 100}}
",
        4 * files
    )
}

/// Whether holes can be punched into the files of the lab.
fn punches(lab: &Lab) -> bool {
    use rustix::fs::{FallocateFlags, fallocate};
    let file = File::create(lab.dir.path().join("probe")).unwrap();
    let punch = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    let result = fallocate(&file, punch, 0, 4096);
    std::fs::remove_file(lab.dir.path().join("probe")).unwrap();
    result.is_ok()
}

#[test]
fn files_are_freed_in_steps_during_reads() {
    let lab = Lab::new();
    if !punches(&lab) {
        skipped("the file system punches no holes");
        return;
    }
    let cases = [("", false), ("extent_size: 1MB", true), ("paced: true, extent_size: 64kB", true)];
    for (options, scheduled) in cases {
        let mut command = lab.bench(&discards(options, 10, 40));
        command.args(["--format", "json", "--shards", "1", "--duration", "3s"]);
        if !scheduled {
            command.args(["--policy", "none"]);
        }
        let ended = run(&mut command);
        let run = ended.results();
        let classes = run["classes"].as_array().unwrap();
        let class = classes.iter().find(|class| class["name"] == "discards").unwrap();
        assert_eq!(class["errors"], 0, "{options}: {class}");
        assert!(class["requests"].as_u64().unwrap() > 0, "{options}: {class}");
        assert!(class["bandwidth_bytes_per_second"].as_f64().unwrap() > 0.0, "{options}: {class}");
        assert!(!ended.stderr.contains("had deleted"), "{options}: {}", ended.stderr);
        lab.assert_nothing_left();
    }
}

#[test]
fn a_job_that_has_nothing_left_to_delete_is_told() {
    let lab = Lab::new();
    if !punches(&lab) {
        skipped("the file system punches no holes");
        return;
    }
    for kind in ["discard", "unlink"] {
        let jobs = discards("", 100_000, 1).replace("type: discard", &format!("type: {kind}"));
        let mut command = lab.bench(&jobs);
        // longer than one file takes on any machine
        command.args(["--policy", "none", "--shards", "1", "--duration", "5s"]);
        command.args(["--format", "json"]);
        let ended = run(&mut command);
        let expected = "warning: job `discards` had deleted all its files after";
        assert!(ended.stderr.contains(expected), "{kind}: {}", ended.stderr);
    }
}

#[test]
fn where_there_are_no_files_none_are_given_back() {
    let lab = Lab::new();
    let jobs = discards("", 10, 1);
    let mut command = lab.bare_bench(&jobs);
    let ended = run(command.args(["--dir", "/dev/null", "--shards", "1"]));
    ended.complains(2, &["deletes files in steps, but /dev/null has none"]);
}
