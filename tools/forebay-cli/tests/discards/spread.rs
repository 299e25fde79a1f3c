//! How deletes are spread over time.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::fixture::{Bed, MIB, forebay, said, text};
use crate::heartbeat::Heartbeat;

/// How often a run is made again that a busy machine may have spoilt.
pub(crate) const RUNS: u32 = 4;

pub(crate) fn paced_on_a_file() {
    paced(&Bed::on_a_file("discard"));
}

pub(crate) fn paced_on_a_served_disk() {
    paced(&Bed::on_a_served_disk("discard"));
}

pub(crate) fn plain_on_a_file() {
    plain(&Bed::on_a_file("discard"));
}

pub(crate) fn plain_on_a_served_disk() {
    plain(&Bed::on_a_served_disk("discard"));
}

/// What was traced while a command ran.
pub(crate) fn traced(bed: &Bed, after: &str, command: &[&str]) -> Value {
    let trace = ["trace", "discards", "--device", &bed.device, "--json", "--output"];
    let file = tempfile::NamedTempFile::new().unwrap();
    // before what others do on the machine
    let mut nice = std::process::Command::new("nice");
    nice.args(["-n", "-15", env!("CARGO_BIN_EXE_forebay")]).args(trace).arg(file.path());
    let output = nice.args(["--after", after, "--"]).args(command).output().unwrap();
    said(&output, 0);
    let traced: Value = serde_json::from_slice(&fs::read(file.path()).unwrap()).unwrap();
    assert_eq!((&traced["lost_requests"], &traced["unknown_lines"]), (&0.into(), &0.into()));
    assert_eq!(traced["devices"][0], bed.device.as_str());
    traced
}

fn paced(bed: &Bed) {
    let empty = bed.held();
    for run in 1..=RUNS {
        let dir = bed.files("files", 5, 32);
        let full = bed.held();
        assert!(full - empty >= 150 * MIB, "{full} {empty}");
        let heartbeat = Heartbeat::start();
        let rm = [env!("CARGO_BIN_EXE_forebay"), "rm", "-r", "--rate", "64MB", text(&dir)];
        let traced = traced(bed, "200ms", &rm);
        let late = heartbeat.end();
        assert!(!dir.exists());
        // on a busy machine the last ones come later
        assert!(traced["bytes"].as_u64().unwrap() >= 140 * MIB, "{traced}");
        shrinks(bed, empty, full);
        let number = |key: &str| traced[key].as_u64().unwrap();
        eprintln!(
            "run {run}: {} of {} slots in use, {} and {} over; {late} stalls",
            number("slots_in_use"),
            number("slots"),
            number("slots_over_requests"),
            number("slots_over_bytes")
        );
        // at 64 MiB per second it takes 2.5 s
        let is_even = traced["shape"] == "even" && number("slots") >= 20;
        if is_even && number("slots_in_use") * 10 >= number("slots") * 9 {
            return;
        }
        if run == RUNS {
            assert!(late > 0, "not spread evenly, and nothing disturbed it: {traced}");
            eprintln!("not judged: the machine kept programs from running");
        }
    }
}

/// The data shrink to what they were before, within 5 % of what was deleted.
fn shrinks(bed: &Bed, empty: u64, full: u64) {
    let began = Instant::now();
    while bed.held().saturating_sub(empty) * 20 > full - empty {
        let held = bed.held();
        let is_hung = began.elapsed() > Duration::from_secs(120);
        assert!(!is_hung, "{held} bytes are held: {full} before, {empty} without files");
        thread::sleep(Duration::from_millis(50));
    }
}

/// XFS frees deleted files in the background, and a flush that comes before finds nothing to
/// discard.
fn rm_and_flush(dir: &Path) -> String {
    let flushes = "for flush in 1 2 3 4 5 6 7 8; do sleep 0.2; sync; done";
    format!("rm -r {}; {flushes}", text(dir))
}

fn plain(bed: &Bed) {
    let empty = bed.held();
    for run in 1..=RUNS {
        let dir = bed.files("files", 5, 32);
        let full = bed.held();
        let traced = traced(bed, "1s", &["sh", "-c", &rm_and_flush(&dir)]);
        shrinks(bed, empty, full);
        // what the log flush puts off comes later on a busy machine
        if traced["requests"] != 0 {
            assert_eq!(traced["shape"], "bursts", "{traced}");
            let (slots, in_use) = (&traced["slots"], &traced["slots_in_use"]);
            eprintln!("run {run}: {} requests in {in_use} of {slots} slots", traced["requests"]);
            return;
        }
    }
    panic!("nothing was discarded within a second");
}

/// What the program says is what the kernel did: the words for people.
pub(crate) fn in_words(bed: &Bed) -> String {
    let dir = bed.files("words", 2, 8);
    let command = rm_and_flush(&dir);
    let trace = ["trace", "discards", "--dir", text(&bed.point), "--", "sh", "-c", &command];
    let output = forebay(&trace).output().unwrap();
    said(&output, 0);
    String::from_utf8(output.stdout).unwrap()
}
