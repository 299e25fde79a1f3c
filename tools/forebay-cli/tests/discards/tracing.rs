//! `forebay trace discards`.

use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStderr, Stdio};

use forebay_trace::{Recording, Tracepoint};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::fixture::{Bed, forebay, said, system, text, unmount};
use crate::spread::in_words;

pub(crate) fn a_command() {
    let bed = Bed::on_a_file("discard");
    let text = in_words(&bed);
    assert!(text.starts_with(&format!("discards of {} in ", bed.device)), "{text}");
    assert!(text.contains(" burst"), "{text}");
    for (command, code) in [("exit 7", 7), ("kill -9 $$", 137)] {
        let output = forebay(&["trace", "discards", "--device", &bed.device, "--", "sh", "-c"])
            .arg(command)
            .output()
            .unwrap();
        said(&output, code);
    }
    let output = forebay(&["trace", "discards", "--", "/none/such"]).output().unwrap();
    assert!(said(&output, 2).contains("unknown command `/none/such`"));
}

/// Starts tracing for long; it has begun when this returns.
fn started(what: &str, arguments: &[&str]) -> (Child, BufReader<ChildStderr>) {
    let mut command = forebay(&["trace", what]);
    let mut child =
        command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    stderr.read_line(&mut line).unwrap();
    assert!(line.contains(&format!("ing {what} of ")), "{line}");
    (child, stderr)
}

/// The instances of this program.
fn instances() -> Vec<String> {
    let dir = TempDir::new().unwrap();
    system("mount", &["-t", "tracefs", "none", text(dir.path())]);
    let names = dir.path().join("instances").read_dir().unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let names = names.filter(|name| name.starts_with("forebay-")).collect();
    unmount(dir.path());
    names
}

pub(crate) fn a_signal() {
    for (what, arguments, code) in [
        ("discards", &["--duration", "1h", "--json"][..], 130),
        // a shell counts 128 and the number of SIGTERM
        ("discards", &["--json", "--", "sleep", "3600"], 143),
        ("requests", &["--duration", "1h", "--json"], 130),
        ("requests", &["--json", "--", "sleep", "3600"], 143),
    ] {
        let (child, _stderr) = started(what, arguments);
        let own = format!("forebay-{}", child.id());
        assert!(instances().contains(&own));
        kill_process(Pid::from_child(&child), Signal::INT).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{output:?}");
        let counted: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert!(counted["seconds"].as_f64().unwrap() < 3600.0);
        assert!(!instances().contains(&own));
    }
}

pub(crate) fn what_was_left() {
    let mut left = Vec::new();
    for what in ["discards", "requests"] {
        let (mut child, _stderr) = started(what, &["--duration", "1h"]);
        left.push(format!("forebay-{}", child.id()));
        child.kill().unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(9));
        assert!(instances().contains(&left[left.len() - 1]));
    }
    let recording = Recording::discards(&[], Tracepoint::BioQueue).unwrap();
    assert!(left.iter().all(|left| !instances().contains(left)));
    let own = format!("forebay-{}", std::process::id());
    assert!(instances().contains(&own));
    // one that is in use stays
    drop(started("requests", &["--duration", "1ms"]).0.wait_with_output().unwrap());
    assert!(instances().contains(&own));
    drop(recording);
    assert!(!instances().contains(&own));
}

pub(crate) fn all_disks() {
    let bed = Bed::on_a_file("nodiscard");
    let command = format!("blkdiscard -f -o 0 -l 0x100000 {}", bed.device);
    unmount(&bed.point);
    let trace = ["trace", "discards", "--json", "--after", "100ms", "--", "sh", "-c", &command];
    let output = forebay(&trace).output().unwrap();
    said(&output, 0);
    let counted: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(counted["bytes"].as_u64().unwrap() >= 1 << 20, "{counted}");
    assert_eq!(counted["devices"].as_array().unwrap().len(), 0);
}
