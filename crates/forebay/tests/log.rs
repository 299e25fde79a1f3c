//! What operators read in the program's log.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use std::path::Path;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use forebay::{DiskConfig, DiskRates, Op, Policy, Scheduler};
use log::{Level, LevelFilter, Log, Metadata, Record};

/// Stores log messages.
struct Lines(Mutex<Vec<(Level, String)>>);

static LINES: Lines = Lines(Mutex::new(Vec::new()));

impl Log for Lines {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &Record<'_>) {
        self.0.lock().unwrap().push((record.level(), record.args().to_string()));
    }

    fn flush(&self) {}
}

impl Lines {
    /// How often a warning with all of `words` was given.
    fn count(&self, words: &[&str]) -> usize {
        let lines = self.0.lock().unwrap();
        let has = |line: &String| words.iter().all(|words| line.contains(words));
        lines.iter().filter(|(level, line)| *level == Level::Warn && has(line)).count()
    }
}

const RATES: DiskRates = DiskRates {
    read_iops: 10_000_000,
    write_iops: 10_000_000,
    read_bandwidth: 100_000_000_000,
    write_bandwidth: 100_000_000_000,
};

#[test]
fn a_disk_that_hangs_and_one_that_is_not_listed_are_named_once() {
    log::set_logger(&LINES).unwrap();
    log::set_max_level(LevelFilter::Info);

    let disk = |name| DiskConfig::new(name, RATES).policy(Policy::Concurrency { requests: 1 });
    let builder = Scheduler::builder().disk(disk("hung")).disk(disk("fine"));
    let scheduler = builder.build().unwrap();
    let hung = scheduler.add_class("class", 100).unwrap();
    let fine = hung.on(&scheduler.disk("fine").unwrap()).unwrap();
    drop(fine.admit(Op::Read, 4096).unwrap());
    let stuck: Vec<_> = (0..4).map(|_| hung.admit(Op::Read, 4096).unwrap().detach()).collect();
    // The log has a thread of its own.
    let begin = Instant::now();
    while LINES.count(&["hangs"]) == 0 && begin.elapsed() < Duration::from_secs(60) {
        thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(LINES.count(&["the disk `hung` hangs", "no longer block others"]), 1);
    assert_eq!(LINES.count(&["`fine`"]), 0);
    let held = || {
        let snapshot = scheduler.snapshot();
        let on = |disk: &str| snapshot.disks.iter().find(|found| found.name == disk).unwrap();
        let class = |disk| on(disk).classes.iter().find(|found| found.name == "class").unwrap();
        assert_eq!(class("fine").stuck_requests, 0);
        (class("hung").stuck_requests, class("hung").stuck_nanos)
    };
    while held().1 < 2_000_000_000 && begin.elapsed() < Duration::from_secs(60) {
        thread::sleep(Duration::from_millis(100));
    }
    let (count, nanos) = held();
    assert_eq!(count, 4);
    assert!(Duration::from_nanos(nanos) < begin.elapsed());
    let told = ["4 permits or requests of the class `class` on the disk `hung`", "held for"];
    while LINES.count(&told) == 0 && begin.elapsed() < Duration::from_secs(60) {
        thread::sleep(Duration::from_millis(10));
    }
    thread::sleep(Duration::from_millis(1_500));
    assert_eq!(LINES.count(&["have been held for", "What a permit orders"]), 1);
    drop(stuck);
    assert_eq!(held(), (0, 0));

    for _ in 0..3 {
        scheduler.disk_of(Path::new("/proc/self")).unwrap();
    }
    while LINES.count(&["is in no entry"]) == 0 && begin.elapsed() < Duration::from_secs(60) {
        thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(LINES.count(&["is in no entry of the io-properties", "`default`"]), 1);
    assert_eq!(LINES.count(&["`/proc/self` is on", "add one with `mountpoint: /proc`"]), 1);
}
