//! `forebay check`, from outside.
#![expect(clippy::unwrap_used, reason = "also outside of test functions")]

mod loop_device;
#[path = "../shared/system.rs"]
mod system;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use system::skipped;

fn check(dir: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_forebay"));
    command.arg("check").arg(dir);
    command
}

/// What it found, as JSON, and the exit code.
fn findings(command: &mut Command) -> (Vec<Value>, i32) {
    let output: Output = command.args(["--format", "json"]).output().unwrap();
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    let findings = json["directories"][0]["findings"].as_array().unwrap().clone();
    (findings, output.status.code().unwrap())
}

fn of<'a>(findings: &'a [Value], probe: &str) -> Vec<&'a Value> {
    findings.iter().filter(|finding| finding["probe"] == probe).collect()
}

#[test]
fn a_directory_of_this_machine_is_checked_and_left_as_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let (findings, code) = findings(&mut check(dir.path()));
    assert!((0..=2).contains(&code));
    assert!(!of(&findings, "aio").is_empty());
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn memory_is_no_disk() {
    if !Path::new("/dev/shm").is_dir() {
        skipped("there is no /dev/shm");
        return;
    }
    let (findings, code) = findings(&mut check(Path::new("/dev/shm")));
    assert_eq!(code, 2);
    let said = of(&findings, "filesystem")[0];
    assert_eq!(said["level"], "error");
    assert!(said["what"].as_str().unwrap().contains("tmpfs keeps files in memory"));
}

#[test]
fn file_systems_of_the_kernel_are_no_disks() {
    let (findings, code) = findings(&mut check(Path::new("/proc")));
    assert_eq!(code, 2);
    let said = of(&findings, "filesystem")[0];
    assert_eq!(said["level"], "error");
    assert!(said["what"].as_str().unwrap().contains("proc has only the kernel's own files"));
}

#[test]
fn a_path_that_is_no_directory_is_an_error_and_the_others_are_checked() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    let output = check(&file).arg(dir.path().join("missing")).arg(dir.path()).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(2));
    for words in ["file` is not a directory", "there is no directory", "filesystem"] {
        assert!(text.contains(words), "`{words}` is not in: {text}");
    }
}

#[test]
fn an_ordinary_user_sees_what_there_is_and_is_told_what_not() {
    if !rustix::process::getuid().is_root() {
        skipped("only root can become another user");
        return;
    }
    // the user must reach the program, and the directory, but not write into it
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().join("forebay");
    // Not by this process: what it has open for writing, another thread's child may have open
    // too for a moment, and then the copy cannot be run.
    let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_forebay")).arg(&program).status();
    assert!(copied.unwrap().success());
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = Command::new(program);
    command.arg("check").arg(dir.path()).uid(65_534).gid(65_534).current_dir("/");
    let (findings, code) = findings(&mut command);
    assert!(code <= 1, "{findings:?}");
    for probe in ["direct-io", "nowait"] {
        let said = of(&findings, probe)[0];
        assert_eq!(said["level"], "unknown");
        assert!(said["what"].as_str().unwrap().contains("this user may not write there"));
    }
    assert!(!of(&findings, "io-uring").is_empty());
}
