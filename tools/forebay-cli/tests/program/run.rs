//! `forebay run`: the command is as without it.

use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal};

use crate::process::{Ended, run, run_and};

/// The program with `options`, in front of a command that is still to be given.
fn class(options: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_forebay"));
    command.args(["run", "--class", "tests"]).args(options).arg("--");
    command
}

fn shell(script: &str) -> Command {
    let mut command = class(&[]);
    command.args(["sh", "-c", script]);
    command
}

fn pid(child: &Child) -> Pid {
    Pid::from_raw(child.id().cast_signed()).unwrap()
}

#[test]
fn arguments_and_streams_are_the_commands() {
    let strange = OsStr::from_bytes(b"a \xff\n*");
    let output = class(&[]).args(["printf", "%s|%s|", "--class"]).arg(strange).output().unwrap();
    assert_eq!(output.stdout, b"--class|a \xff\n*|");
    let mut cat =
        class(&[]).arg("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    cat.stdin.take().unwrap().write_all(b"through").unwrap();
    assert_eq!(cat.wait_with_output().unwrap().stdout, b"through");
    // a reader that has had enough ends the command, and not this program with a complaint
    let Ended { code, stderr, .. } = run(&mut shell("yes | head -1 >/dev/null; echo $?"));
    assert!(code == Some(0) && !stderr.contains("Broken pipe"), "{stderr}");
}

#[test]
fn exit_codes_are_those_of_a_shell() {
    let dir = tempfile::tempdir().unwrap();
    let plain = dir.path().join("plain");
    fs::write(&plain, "no program").unwrap();
    let plain = plain.to_str().unwrap();
    for (command, code, words) in [
        (&["sh", "-c", "exit 7"][..], 7, ""),
        (&["sh", "-c", "kill -9 $$"], 137, ""),
        (&["/no/such/command"], 127, "/no/such/command"),
        (&[plain], 126, plain),
    ] {
        run(class(&[]).args(command)).complains(code, &[words]);
    }
    let inner =
        [env!("CARGO_BIN_EXE_forebay"), "run", "--class", "inner", "--", "sh", "-c", "exit 5"];
    assert_eq!(run(class(&[]).args(inner)).code, Some(5));
}

#[test]
fn signals_reach_the_command_once() {
    let dir = tempfile::tempdir().unwrap();
    let seen = dir.path().join("seen");
    let script = format!(
        "trap 'echo int; : >{}' INT; trap 'exit 9' TERM; echo ready >&2; while :; do sleep 0.02; done",
        seen.display()
    );
    let ended = run_and(shell(&script).process_group(0), "ready", |child, _| {
        // as a terminal does, to all in the foreground; then somebody to the program alone
        rustix::process::kill_process_group(pid(child), Signal::INT).unwrap();
        let begin = std::time::Instant::now();
        while !seen.exists() && begin.elapsed() < std::time::Duration::from_secs(30) {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        // a second one would come soon
        std::thread::sleep(std::time::Duration::from_millis(200));
        rustix::process::kill_process(pid(child), Signal::TERM).unwrap();
    });
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(9), "int\n"), "{}", ended.stderr);
}

#[test]
fn a_signal_that_is_ignored_stays_ignored() {
    let inner = [env!("CARGO_BIN_EXE_forebay"), "run", "--class", "tests", "--"];
    let mut nohup = Command::new("sh");
    nohup.args(["-c", "trap '' HUP; exec \"$@\"", "sh"]).args(inner);
    nohup.args(["sh", "-c", "kill -HUP $$; echo alive"]);
    assert_eq!(run(&mut nohup).stdout, "alive\n");
}

#[test]
fn disks_without_weights_are_reported_first_and_refused_with_require() {
    let mut warned = class(&["--device", "no-such-disk"]);
    let ended = run(warned.args(["echo", "ran"]));
    ended.complains(0, &["warning: unknown disk no-such-disk; use a name"]);
    assert_eq!(ended.stdout, "ran\n");
    let refused = run(class(&["--device", "no-such-disk", "--require"]).args(["echo", "ran"]));
    refused.complains(125, &["error: unknown disk no-such-disk"]);
    assert_eq!(refused.stdout, "");
}

#[test]
fn names_and_weights_are_checked() {
    let forebay = || Command::new(env!("CARGO_BIN_EXE_forebay"));
    for (arguments, words) in [
        (&["--class", "a/b", "--", "true"][..], "1 to 64 letters"),
        (&["--class", "a", "--weight", "0", "--", "true"], "1 to 10000"),
        (&["--class", "a"], "COMMAND"),
        (&["--", "true"], "--class"),
        (&["--list", "--class", "a"], "--list"),
    ] {
        run(forebay().arg("run").args(arguments)).complains(2, &[words]);
    }
}

#[test]
fn in_a_container_it_says_what_is_missing_and_runs_the_command() {
    let container = || {
        let mut command = Command::new("unshare");
        command.arg("-Cmpfr");
        command
    };
    if !container().arg("true").status().is_ok_and(|status| status.success()) {
        return;
    }
    let mut inside = container();
    inside.args([env!("CARGO_BIN_EXE_forebay"), "run", "--class", "tests", "--", "echo", "ran"]);
    let ended = run(&mut inside);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "ran\n"), "{}", ended.stderr);
}
