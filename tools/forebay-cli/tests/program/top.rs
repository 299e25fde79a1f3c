//! The view of a running process.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::Command;
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::answers::{ok, serve};
use crate::loop_mount::{Lab, MIXED};
use crate::process::{Ended, run};

fn top(address: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_forebay"));
    command.args(["top", address, "--once", "--interval", "300ms"]);
    command
}

#[test]
fn a_load_that_runs_is_shown_and_judged() {
    let lab = Lab::new();
    let mut command = lab.bench(MIXED);
    command.args(["--format", "json", "--duration", "2m"]);
    command.args(["--metrics", "127.0.0.1:0"]);
    let mut child = command
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = String::new();
    let mut reader = std::io::BufReader::new(child.stderr.take().unwrap());
    while !said.contains("http://") {
        let read = std::io::BufRead::read_line(&mut reader, &mut said).unwrap();
        assert_ne!(read, 0, "{said}");
    }
    let address = said.split("http://").nth(1).unwrap().split_whitespace().next().unwrap();
    let results = loop {
        // the load may not have begun yet
        let results: Value = run(top(address).args(["--format", "json"])).results();
        if results["disks"][0]["classes"].as_array().is_some_and(|classes| classes.len() == 2) {
            break results;
        }
    };
    let disk = &results["disks"][0];
    let names: Vec<_> = [0, 1].map(|at| disk["classes"][at]["class"].clone()).to_vec();
    assert!(names.contains(&"reads".into()) && names.contains(&"bulk".into()), "{results}");
    assert!(disk["findings"][0]["what"].is_string(), "{results}");
    let stdout = loop {
        // nor may its classes have done anything
        let Ended { code, stdout, stderr } = run(&mut top(address));
        assert_eq!(code, Some(0), "{stderr}");
        if stdout.contains("asked") {
            break stdout;
        }
    };
    for words in ["used ", "speed ", "reads  ", "bulk  "] {
        assert!(stdout.contains(words), "`{words}` is not in: {stdout}");
    }
    assert!(stdout.lines().all(|line| line.chars().count() <= 80), "{stdout}");
    let pid = Pid::from_child(&child);
    kill_process(pid, Signal::INT).unwrap();
    let _ = reader.read_to_string(&mut said);
    child.wait().unwrap();
}

#[test]
fn a_process_that_was_restarted_is_noticed() {
    let text = |bugs| ok(&format!("forebay_bugs_total {bugs}\n# EOF\n"));
    let ended = run(&mut top(&serve(&[text(2), text(1)])));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    for words in ["was restarted", "no disk"] {
        assert!(ended.stdout.contains(words), "{}", ended.stdout);
    }
}

#[test]
fn a_foreign_endpoint_is_reported_in_one_line() {
    let not_found = String::from("HTTP/1.1 404 Not Found\r\n\r\n");
    for (answer, words) in [
        (ok("node_load1 1\n# EOF\n"), "does not have metrics of forebay"),
        (ok("forebay_bugs_total 1\n"), "are cut off"),
        (ok("forebay_bugs_total x\n# EOF\n"), "line 1"),
        (not_found, "404 Not Found"),
        (String::from("SSH-2.0-x\r\n"), "not HTTP"),
        (String::new(), "not HTTP"),
    ] {
        let address = serve(&[answer]);
        let ended = run(&mut top(&address));
        ended.complains(1, &[&address, words]);
        assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
    }
}

/// Answers the first who asks with `piece`, again and again, as long as it is taken.
fn pour(piece: &'static [u8], pause: Duration) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").unwrap();
        while stream.write_all(piece).is_ok() {
            thread::sleep(pause);
        }
    });
    address
}

#[test]
fn an_answer_without_an_end_is_not_read_to_its_end() {
    let address = pour(&[b'x'; 1 << 20], Duration::ZERO);
    run(&mut top(&address)).complains(1, &[&address, "larger than 64 MiB"]);
    let address = pour(b"x", Duration::from_millis(100));
    run(&mut top(&address)).complains(1, &[&address, "no answer", "within 5 s"]);
}

#[test]
fn nobody_who_listens_and_nobody_who_answers_are_told_apart() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    run(&mut top(&address)).complains(1, &[&address, "no answer", "within 5 s"]);
    drop(listener);
    run(&mut top(&address)).complains(1, &[&address, "connection refused by"]);
}

#[test]
fn options_that_make_no_sense_for_a_view_are_refused() {
    run(&mut top("https://a:1")).complains(2, &["such as 127.0.0.1:9180"]);
    run(top("a:1").args(["--interval", "0s"])).complains(2, &["--interval", "300ms"]);
    let mut command = Command::new(env!("CARGO_BIN_EXE_forebay"));
    run(command.args(["top", "a:1", "--format", "json"])).complains(2, &["--once"]);
    let address = serve(&[ok("forebay_bugs_total 1\n# EOF\n")]);
    let mut command = Command::new(env!("CARGO_BIN_EXE_forebay"));
    run(command.args(["top", &address])).complains(2, &["terminal", "--once"]);
}
