//! How fast files are freed, by what the kernel sends to the disk.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::fixture::{Bed, MIB, forebay, said, text};
use crate::heartbeat::Heartbeat;
use crate::spread::{RUNS, traced};

/// A figure, a rate, and how long it should take.
struct Held {
    amount: f64,
    rate: f64,
}

impl Held {
    /// Asserts that it was held within 5 %, and that all was free within 1.2 times what it takes at
    /// the rate, by the times that the kernel notes.
    fn check(&self, what: &str, traced: &Value, late: u32, run: u32) -> bool {
        let at = |key: &str| traced[key].as_f64().unwrap();
        // one slot more or less
        let seconds = at("last_s") - at("first_s");
        let off = self.amount / self.rate / seconds.max(0.1) - 1.0;
        let slot = at("slot_s") / seconds.max(0.1);
        eprintln!(
            "{what}, run {run}: {} in {seconds:.1} s, {:+.1} % of the rate; {late} stalls",
            self.amount,
            off * 100.0
        );
        let is_held = off.abs() < 0.05 + slot && seconds < 1.2 * self.amount / self.rate + 0.2;
        assert!(is_held || run < RUNS || late > 0, "{what}: off by {off:.3}: {traced}");
        is_held
    }
}

/// Runs `rm` on what `make` makes until it is as it should be, or was disturbed each time.
fn held(
    bed: &Bed,
    what: &str,
    options: &[&str],
    make: impl Fn(&Bed) -> std::path::PathBuf,
    of: impl Fn(&Value) -> Held,
) {
    for run in 1..=RUNS {
        let path = make(bed);
        let rm = [&[env!("CARGO_BIN_EXE_forebay"), "rm"], options, &[text(&path)]].concat();
        let heartbeat = Heartbeat::start();
        let traced = traced(bed, "200ms", &rm);
        let late = heartbeat.end();
        assert!(!path.exists());
        if of(&traced).check(what, &traced, late, run) {
            return;
        }
    }
    eprintln!("{what}: not judged: the machine kept programs from running");
}

/// Over ten seconds each.
pub(crate) fn rates_are_held() {
    let bed = Bed::on_a_file("discard");
    // the first step waits for nothing
    let rates = [("200", 200_u64, 2_000), ("30", 30, 300)];
    for (option, rate, count) in rates {
        held(
            &bed,
            &format!("{rate} commands per second"),
            &["--commands", option],
            |bed| bed.extents("file", count, 60 << 10),
            |traced| {
                let requests = traced["requests"].as_u64().unwrap();
                // and a few that the file system makes of its own
                assert!((count..=count + count / 50).contains(&requests), "{traced}");
                Held { amount: count as f64, rate: rate as f64 }
            },
        );
    }
    held(
        &bed,
        "16 MiB per second",
        &["--rate", "16MB"],
        |bed| bed.extents("file", 5, 32 * MIB),
        |traced| {
            assert!(traced["bytes"].as_u64().unwrap() >= 160 * MIB, "{traced}");
            Held { amount: (160 * MIB) as f64, rate: (16 * MIB) as f64 }
        },
    );
}

/// What a disk can do that needs so long for a discard and for a GiB of it.
fn properties(bed: &Bed, command_us: u64, gib_us: u64) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().unwrap();
    let yaml = format!(
        "disks:\n- {{mountpoint: {}, read_iops: 10k, write_iops: 10k, read_bandwidth: 1G, \
         write_bandwidth: 1G, discard_us: {command_us}, discard_gib_us: {gib_us}}}\n",
        text(&bed.point)
    );
    fs::write(file.path(), yaml).unwrap();
    file
}

/// A half of a disk that needs 20 ms for a discard is 25 of them per second; a tenth of one that
/// needs 1 s for a GiB is 102.4 MiB per second.
pub(crate) fn disk_share() {
    let bed = Bed::on_a_file("discard");
    let slow = properties(&bed, 20_000, 1_000);
    let options =
        |file: &Path| ["--disk-share", "50%", "--properties", text(file)].map(String::from);
    let options = options(slow.path());
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let path = bed.extents("dry", 50, 60 << 10);
    let dry = forebay(&["rm", "-n"]).args(&options).arg(&path).output().unwrap();
    said(&dry, 0);
    let words = String::from_utf8(dry.stdout).unwrap();
    assert!(words.contains("at most 25 discards per second"), "{words}");
    assert!(path.exists());
    held(
        &bed,
        "half of 50 discards per second",
        &options,
        |bed| bed.extents("file", 150, 60 << 10),
        |_| Held { amount: 150.0, rate: 25.0 },
    );
    let fast = properties(&bed, 1, 1_000_000);
    // in steps that are longer than a flush
    let goal = ["--latency-goal", "10ms"];
    let share = ["--disk-share", "10%", "--properties", text(fast.path())];
    let options = [&goal[..], &share].concat();
    held(
        &bed,
        "a tenth of 1 GiB per second",
        &options,
        |bed| bed.extents("file", 10, 32 * MIB),
        |traced| {
            assert!(traced["bytes"].as_u64().unwrap() >= 320 * MIB, "{traced}");
            Held { amount: (320 * MIB) as f64, rate: 102.4 * MIB as f64 }
        },
    );
}

/// Of a disk that needs 100 us and 1 s for a GiB of it, no step has more than the goal allows: each
/// is one discard of one extent.
pub(crate) fn latency_goal() {
    let bed = Bed::on_a_file("discard");
    let disk = properties(&bed, 100, 1_000_000);
    // MiB that are done within the goal, in parts of 64 KiB, and with steps of at most 20 MiB
    for (goal, of_goal) in [("2ms", 1.9), ("5ms", 5.0), ("15ms", 15.2), ("1s", 20.0)] {
        let path = bed.extents("file", 1, 100 * MIB);
        let rm = [
            env!("CARGO_BIN_EXE_forebay"),
            "rm",
            "--rate",
            "400MB",
            "--latency-goal",
            goal,
            "--properties",
            text(disk.path()),
            text(&path),
        ];
        let traced = traced(&bed, "200ms", &rm);
        let requests = traced["requests"].as_f64().unwrap();
        eprintln!("--latency-goal {goal}: {requests} discards of 100 MiB");
        let fewest = f64::floor(100.0 / of_goal);
        assert!((fewest..fewest * 1.2 + 3.0).contains(&requests), "{goal}: {traced}");
    }
}
