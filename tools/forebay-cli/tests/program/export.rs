//! `forebay export`: figures and findings as metrics.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::process::{Pid, Signal, kill_process};

use crate::process::{Ended, run, run_and};
use crate::topology::scrape;

const PROPERTIES: &str = "\
disks:
  - mountpoint: /mnt/store
    read_iops: 410000
    read_bandwidth: 2000000000
    write_iops: 195312
    write_bandwidth: 800000000
    base_latency_us: 100.0
    write_bandwidth_lasting: unknown
";

fn export(dir: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_forebay"));
    command.arg("export").arg(dir).args(["--listen", "127.0.0.1:0"]).args(arguments);
    command
}

/// Runs it, and does `act` with the address at which it serves; then it is asked to end.
fn served(command: &mut Command, act: impl FnOnce(&str)) -> Ended {
    let interrupt = |child: &Child| {
        kill_process(Pid::from_child(child), Signal::TERM).unwrap();
    };
    run_and(command, "/metrics", |child, said| {
        let address = said.split("http://").nth(1).unwrap().split('/').next().unwrap();
        act(address);
        interrupt(child);
    })
}

#[test]
fn figures_and_findings_are_served_until_it_is_ended() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("forebay.yaml");
    fs::write(&file, PROPERTIES).unwrap();
    let mut command = export(dir.path(), &["--properties", file.to_str().unwrap()]);
    let ended = served(&mut command, |address| {
        let text = scrape(address);
        let checked = format!("forebay_check_findings{{dir=\"{}\",level=", dir.path().display());
        for words in [
            "forebay_disk_read_iops{mountpoint=\"/mnt/store\"} 410000.0",
            "forebay_disk_write_iops{mountpoint=\"/mnt/store\"} 195312.0",
            "forebay_disk_read_bandwidth_bytes{mountpoint=\"/mnt/store\"} 2000000000.0",
            "forebay_disk_write_bandwidth_bytes{mountpoint=\"/mnt/store\"} 800000000.0",
            "forebay_disk_base_latency_seconds{mountpoint=\"/mnt/store\"} 0.0001",
            "forebay_disk_figures_not_sustained{mountpoint=\"/mnt/store\"} 1.0",
            "forebay_disk_properties_readable 1.0",
            "forebay_check_last_timestamp_seconds 1",
            &format!("{checked}\"error\"}} 0.0"),
            "# EOF",
        ] {
            assert!(text.contains(words), "`{words}` is not in: {text}");
        }
    });
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
}

#[test]
fn a_file_that_breaks_while_it_serves_leaves_the_figures_of_before() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("forebay.yaml");
    fs::write(&file, PROPERTIES).unwrap();
    let arguments = ["--properties", file.to_str().unwrap(), "--every", "50ms"];
    let ended = served(&mut export(dir.path(), &arguments), |address| {
        fs::write(&file, "disks: many\n").unwrap();
        let broken = loop {
            let text = scrape(address);
            if text.contains("forebay_disk_properties_readable 0.0") {
                break text;
            }
            sleep(Duration::from_millis(50));
        };
        assert!(broken.contains("forebay_disk_read_iops{mountpoint=\"/mnt/store\"} 410000.0"));
    });
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.stderr.contains("forebay.yaml:1:8: disks"), "{}", ended.stderr);
}

#[test]
fn a_directory_that_is_not_there_is_a_finding() {
    let dir = tempfile::tempdir().unwrap();
    let absent = dir.path().join("absent");
    let ended = served(&mut export(&absent, &[]), |address| {
        let text = scrape(address);
        let finding = format!("dir=\"{}\",level=\"error\",probe=\"directory\"", absent.display());
        assert!(text.contains(&format!("forebay_check_finding{{{finding}}} 1.0")), "{text}");
    });
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
}

#[test]
fn unservable_disks_are_reported_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let ended = run(&mut export(dir.path(), &["--properties", "absent.yaml"]));
    ended.complains(2, &["absent.yaml"]);
    let ended = run(&mut export(dir.path(), &["--listen", "port 80"]));
    ended.complains(2, &["expected an IP address and a port"]);
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = listener.local_addr().unwrap().to_string();
    let ended = run(&mut export(dir.path(), &["--listen", &taken]));
    ended.complains(2, &["cannot serve metrics at", &taken]);
}

/// How the command ends by one Ctrl-C while it reads `pipe`, into which nobody writes.
fn interrupted(mut child: Child, pipe: &Path) -> ExitStatus {
    until_open(&child, pipe);
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(60) {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        sleep(Duration::from_millis(10));
    }
    child.kill().unwrap();
    let killed = child.wait().unwrap();
    assert!(killed.success(), "it goes on after a signal: {killed}");
    killed
}

fn until_open(child: &Child, pipe: &Path) {
    let is_it = |entry: fs::DirEntry| fs::read_link(entry.path()).is_ok_and(|of| of == pipe);
    let descriptors = format!("/proc/{}/fd", child.id());
    while !fs::read_dir(&descriptors).unwrap().any(|entry| is_it(entry.unwrap())) {
        sleep(Duration::from_millis(10));
    }
}

#[test]
fn one_ctrl_c_ends_a_command_that_reads_a_silent_pipe() {
    let dir = tempfile::tempdir().unwrap();
    let pipe = dir.path().join("pipe");
    mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let writer = || File::options().read(true).write(true).open(&pipe).unwrap();
    let mut silent = writer();
    let arguments = ["--every", "10ms", "--properties", pipe.to_str().unwrap()];
    let mut resumed = Command::new(env!("CARGO_BIN_EXE_forebay"));
    resumed.arg("tune").arg("--resume").arg(&pipe);
    for mut command in [export(dir.path(), &arguments), resumed] {
        let status = interrupted(command.stderr(Stdio::null()).spawn().unwrap(), &pipe);
        assert!(!status.success());
    }
    // it is read again while it serves
    let mut child = export(dir.path(), &arguments).stderr(Stdio::piped()).spawn().unwrap();
    until_open(&child, &pipe);
    silent.write_all(PROPERTIES.as_bytes()).unwrap();
    drop(silent);
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    while !lines.next().expect("it serves").unwrap().contains("/metrics") {}
    let _silent = writer();
    assert_eq!(interrupted(child, &pipe).code(), Some(0));
}
