//! `forebay trace requests`.

use std::fs;

use serde_json::Value;

use crate::fixture::{Bed, forebay, said, unmount};

const KIB: u64 = 1 << 10;

/// What is seen of the bed's device while a shell runs `command`.
fn traced(bed: &Bed, command: &str) -> Value {
    let trace = ["trace", "requests", "--json", "--after", "100ms", "--device", &bed.device];
    let output = forebay(&trace).args(["--", "sh", "-c", command]).output().unwrap();
    said(&output, 0);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (report["lost_events"].as_u64(), report["unknown_lines"].as_u64()),
        (Some(0), Some(0))
    );
    assert_eq!(report["devices"][0]["name"], bed.device.as_str());
    report
}

fn direction<'a>(report: &'a Value, name: &str) -> &'a Value {
    let directions = report["devices"][0]["directions"].as_array().unwrap();
    directions.iter().find(|found| found["direction"] == name).unwrap()
}

/// The longest request of a device; as it was after this, for a loop device keeps it.
struct Longest {
    path: String,
    was: String,
}

impl Longest {
    fn set(device: &str, kib: &str) -> Self {
        let name = device.trim_start_matches("/dev/");
        let path = format!("/sys/block/{name}/queue/max_sectors_kb");
        let was = fs::read_to_string(&path).unwrap();
        fs::write(&path, kib).unwrap();
        Self { path, was }
    }
}

impl Drop for Longest {
    fn drop(&mut self) {
        let _ = fs::write(&self.path, &self.was);
    }
}

pub(crate) fn splits_by_the_longest_request() {
    let bed = Bed::on_a_file("nodiscard");
    unmount(&bed.point);
    let _longest = Longest::set(&bed.device, "64");
    let device = &bed.device;
    let report = traced(
        &bed,
        &format!(
            "dd if=/dev/zero of={device} bs=256k count=40 oflag=direct && \
         dd if={device} of=/dev/null bs=128k count=20 iflag=direct && \
         dd if={device} of=/dev/null bs=32k count=10 iflag=direct"
        ),
    );
    let (reads, writes) = (direction(&report, "read"), direction(&report, "write"));
    assert_eq!((&writes["requests"], &writes["split_us"]["count"]), (&40.into(), &40.into()));
    assert_eq!(reads["split_us"]["count"], 20);
    assert!(reads["whole_us"]["count"].as_u64().unwrap() >= 10);
    let seen = &report["devices"][0];
    assert_eq!(seen["cause"]["length"]["bytes"], 64 * KIB);
    assert_eq!(seen["longest_bytes"], 64 * KIB);
    let split = seen["split_requests"].as_array().unwrap();
    assert_eq!(split.len(), 60);
    for request in split {
        let offset = request["offset"].as_u64().unwrap();
        let parts = request["bytes"].as_u64().unwrap() / (64 * KIB);
        let expected: Vec<u64> = (1..parts).map(|part| offset + part * 64 * KIB).collect();
        assert_eq!(request["points"], Value::from(expected));
        assert_eq!(request["parts"].as_array().unwrap().len() as u64, parts);
    }
    let text = report["findings"][0]["text"].as_str().unwrap();
    assert!(text.contains("max_sectors_kb") && text.contains("which is the longest"), "{text}");
}

pub(crate) fn reads_before_misaligned_writes() {
    let bed = Bed::on_a_file("nodiscard");
    unmount(&bed.point);
    let report = traced(
        &bed,
        &format!(
            "for at in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do \
         dd if={0} of=/dev/null bs=4096 count=1 skip=$at iflag=direct && \
         dd if=/dev/zero of={0} bs=1024 count=1 seek=$((at * 4 + 1)) oflag=direct; done && \
         blkdiscard -f -o 1048576 -l 1048576 {0}",
            bed.device
        ),
    );
    // fewer where the machine kept a program waiting between its read and its write
    let read_before = report["devices"][0]["read_before_misaligned"].as_u64().unwrap();
    assert!((1..=20).contains(&read_before), "{read_before}");
    assert_eq!(direction(&report, "write")["misaligned"], 20);
    let discards = direction(&report, "discard");
    assert_eq!((&discards["requests"], &discards["bytes"]), (&1.into(), &(1 << 20).into()));
    assert!(report["findings"][0]["warns"].as_bool().unwrap());
}

/// The part of writes that begin or end inside of 4 KiB, while eight files grow at once.
fn misaligned(block_bytes: u64) -> f64 {
    let bed = Bed::with_blocks(block_bytes, "nodiscard");
    let report = traced(
        &bed,
        &format!(
            "cd {} && for n in 1 2 3 4 5 6 7 8; do \
         dd if=/dev/zero of=file$n bs=128k count=64 oflag=direct 2>/dev/null & done; wait",
            bed.point.display()
        ),
    );
    let writes = direction(&report, "write");
    println!("blocks of {block_bytes}: {}", writes["alignment"]);
    let requests = writes["requests"].as_u64().unwrap();
    assert!(requests >= 512, "{writes}");
    writes["misaligned"].as_u64().unwrap() as f64 / requests as f64
}

/// What is written to the log begins where it likes, but is little.
pub(crate) fn small_blocks_are_misaligned() {
    let [small, large] = [1024, 4096].map(misaligned);
    assert!(large <= 0.02, "{large}");
    // how many depends on how the eight files interleave: 2.5 to 20 % in five runs
    assert!(small >= 0.01 && small > large, "{small} alongside {large}");
}
