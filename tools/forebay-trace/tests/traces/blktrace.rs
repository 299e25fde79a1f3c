//! Split requests above 2 TiB, as the real `blkparse` prints them.
//!
//! `blktrace` needs a kernel that lets it trace. So its binary trace is written here, record by record,
//! with splits in the shape that the kernel's `blk` tracer shows of a loop device; `blkparse` 1.2.0 made
//! the text of it. `cargo test -p forebay-trace --test traces blktrace -- --ignored` writes both again.
#![expect(clippy::unwrap_used, reason = "these are tests")]

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use forebay_trace::{Recorded, RequestsSummary, SplitCause};

use super::texts::read_text;

const SECTOR: u64 = 512;
const KIB: u64 = 1 << 10;

/// `blkparse` prints split points without the bits above.
const BITS: u64 = 1 << 32;

/// What the records of a machine with this order of bytes begin with; the version is 7.
const MAGIC: u32 = 0x6561_7407;

/// A write, in the upper half of an action.
const WRITE: u32 = 1 << 17;

const QUEUE: u32 = 1;
const ISSUE: u32 = 7;
const COMPLETE: u32 = 8;
const SPLIT: u32 = 13;

/// `struct blk_io_trace`, one after the other.
#[derive(Default)]
struct Trace {
    bytes: Vec<u8>,
    records: u32,
}

impl Trace {
    fn record(&mut self, action: u32, sector: u64, sectors: u64, point: Option<u64>) {
        self.records += 1;
        let nanos = u64::from(self.records) * 10_000;
        let device: u32 = (9 << 20) | 127;
        let point = point.map(u64::to_be_bytes);
        let (pid, processor, error) = (697_u32, 0_u32, 0_u16);
        let length = u16::try_from(point.map_or(0, |point| point.len())).unwrap();
        for number in [MAGIC, self.records] {
            self.bytes.extend(number.to_le_bytes());
        }
        self.bytes.extend(nanos.to_le_bytes());
        self.bytes.extend(sector.to_le_bytes());
        let bytes = u32::try_from(sectors * SECTOR).unwrap();
        for number in [bytes, action | WRITE, pid, device, processor] {
            self.bytes.extend(number.to_le_bytes());
        }
        self.bytes.extend(error.to_le_bytes());
        self.bytes.extend(length.to_le_bytes());
        self.bytes.extend(point.iter().flatten());
    }

    /// A write that the kernel splits: what is left is split again, each part is issued, and all are
    /// completed at the end.
    fn write(&mut self, begin: u64, sectors: u64, points: &[u64]) {
        self.record(QUEUE, begin, sectors, None);
        let end = begin + sectors;
        let mut part = begin;
        for &point in points {
            self.record(SPLIT, part, end - part, Some(point));
            self.record(ISSUE, part, point - part, None);
            part = point;
        }
        self.record(ISSUE, part, end - part, None);
        let mut part = begin;
        for at in points.iter().copied().chain([end]) {
            self.record(COMPLETE, part, at - part, None);
            part = at;
        }
    }
}

/// Where requests of the trace by the longest request begin: below, across and above what 32 bits hold.
const BEGINS: [u64; 10] = [
    400,
    BITS / 2 - 100,
    BITS - 200,
    BITS - 128,
    BITS,
    BITS + 400,
    21_057_335_224,
    2 * BITS - 256,
    5 * BITS,
    9 * BITS - 384,
];

/// Requests of 200 KiB of a device that takes 64 KiB.
fn longest_request() -> Trace {
    let mut trace = Trace::default();
    for begin in BEGINS {
        trace.write(begin, 400, &[128, 256, 384].map(|part| begin + part));
    }
    trace
}

/// Requests of 128 KiB in a partition that begins at sector 63, on an array with chunks of 1 MiB.
fn partition_at_63() -> Trace {
    let mut trace = Trace::default();
    for n in 0..50 {
        let border = (3 * BITS / 2048 + 1 + n) * 2048;
        trace.write(border + 63 - 128, 256, &[border]);
    }
    trace
}

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/traces").join(name)
}

fn traces() -> [(&'static str, Trace); 2] {
    [("above-2tib", longest_request()), ("partition-at-63", partition_at_63())]
}

/// What the machine's `blkparse` prints; nothing without one.
fn printed(name: &str) -> Option<String> {
    let mut blkparse = Command::new("blkparse");
    // a number of a processor ends the names of its files
    blkparse.args(["-q", "-i"]).arg(path(name));
    let output = blkparse.output().ok()?;
    assert!(output.status.success(), "{output:?}");
    Some(String::from_utf8(output.stdout).unwrap())
}

#[test]
#[ignore = "writes the traces and their text"]
fn write_the_traces_and_their_text() {
    for (name, trace) in traces() {
        fs::write(path(&format!("{name}.blktrace.0")), &trace.bytes).unwrap();
        let text = printed(name).unwrap_or_else(|| panic!("blkparse is not installed"));
        fs::write(path(&format!("{name}.txt")), text).unwrap();
    }
}

#[test]
fn the_text_is_what_blkparse_prints_of_the_traces() {
    for (name, trace) in traces() {
        assert!(fs::read(path(&format!("{name}.blktrace.0"))).unwrap() == trace.bytes, "{name}");
        if let Some(text) = printed(name) {
            assert_eq!(text, fs::read_to_string(path(&format!("{name}.txt"))).unwrap());
        }
    }
}

fn read(name: &str) -> (Recorded, RequestsSummary) {
    read_text(&fs::read(path(&format!("{name}.txt"))).unwrap()).unwrap()
}

#[test]
fn split_points_above_2_tib_lie_inside_of_their_requests() {
    let (recorded, found) = read("above-2tib");
    assert_eq!(recorded.unknown_lines, 0);
    let device = &found.devices[0];
    assert_eq!(device.cause, Some(SplitCause::Length { bytes: 64 * KIB }));
    assert_eq!(device.split_requests.len(), BEGINS.len());
    for (split, begin) in device.split_requests.iter().zip(BEGINS) {
        let points = [128, 256, 384].map(|part| (begin + part) * SECTOR);
        assert_eq!((split.offset, &split.points[..]), (begin * SECTOR, &points[..]));
    }
}

#[test]
fn a_partition_at_sector_63_is_not_called_the_longest_request() {
    let (recorded, found) = read("partition-at-63");
    assert_eq!(recorded.unknown_lines, 0);
    let device = &found.devices[0];
    let expected = SplitCause::Border { bytes: 1024 * KIB, or_less: false };
    assert_eq!(device.cause, Some(expected));
    let said = found.findings();
    assert!(said.iter().any(|said| said.text.contains("split at multiples of 1 MiB")), "{said:?}");
    assert!(!said.iter().any(|said| said.text.contains("max_sectors_kb")), "{said:?}");
}
