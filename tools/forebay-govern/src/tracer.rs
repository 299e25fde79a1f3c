//! Latencies of each cgroup, from when a request is passed to the disk until it is done.
//!
//! The kernel's `blk` tracer records when requests are done, and their cgroups. Its tracepoint
//! `block_bio_queue` records when they came, before io.cost delays them. The kernel has only one buffer
//! for both, so another program that uses it already is left alone.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use forebay_block::Machine;
use rustix::io::Errno;

use crate::changes::{Changes, Kind};
use crate::disk::GovernedDisk;
use crate::error::GovernError;
use crate::files::{Files, Kernel, TRACEFS};

const EVENT: &str = "events/block/block_bio_queue";
const READ_BYTES: usize = 64 << 10;
/// The longest time of one read, so that Ctrl-C is noticed during a constant stream of events.
const READ_TIME: Duration = Duration::from_millis(500);
/// The most requests that are remembered. If there are more, all are forgotten, including requests that
/// the kernel never ends.
const PENDING_MAX: usize = 1 << 16;
/// The least number of bytes that the name of a process takes in a line.
const NAME_BYTES: usize = 16;

/// A completed request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Done<'a> {
    /// Its cgroup, as a path below the root.
    pub(crate) cgroup: &'a str,
    pub(crate) is_read: bool,
    pub(crate) latency: Duration,
}

/// The kernel's tracer, which traces one disk.
#[derive(Debug)]
pub(crate) struct Tracer {
    pipe: OwnedFd,
    buffer: Vec<u8>,
    begun: Vec<u8>,
    requests: Requests,
}

/// The requests that are not done yet: the times at which they came, by their last sector.
#[derive(Debug, Default)]
struct Requests {
    came: BTreeMap<u64, Duration>,
}

/// A line of the trace.
#[derive(Debug, PartialEq, Eq)]
enum Line<'a> {
    Came { time: Duration, end: u64 },
    Done { time: Duration, begin: u64, end: u64, cgroup: &'a str, is_read: bool },
}

impl Tracer {
    /// Begins to trace. Fails if another program uses the tracer.
    pub(crate) fn begin(
        changes: &mut Changes<Kernel>,
        machine: &Machine,
        disk: &GovernedDisk,
    ) -> Result<Self, GovernError> {
        let of = |path: &str| Path::new(TRACEFS).join(path);
        let enable = Path::new("/sys/block").join(&disk.name).join("trace/enable");
        let is = |path: &Path, expected: &str| {
            let text = changes.files.read(path).map_err(GovernError::at(path))?;
            Ok::<_, GovernError>(text.trim() == expected)
        };
        let is_free = is(&of("current_tracer"), "nop")? && is(&of("events/enable"), "0")?;
        if !is_free || !is(&enable, "0")? {
            let enable = enable.display();
            return Err(GovernError::Missing(format!(
                "the kernel's tracer is in use, and it has one alone: end what traces, or echo nop \
                 >/sys/kernel/tracing/current_tracer; echo 0 >{enable}"
            )));
        }
        // fails where somebody reads what is traced, who is not to be disturbed by the rest
        changes.set(Kind::Whole, &of("current_tracer"), "blk")?;
        changes.set(Kind::Chosen, &of("trace_clock"), "mono")?;
        for option in ["options/blk_cgroup", "options/blk_cgname"] {
            changes.set(Kind::Whole, &of(option), "1")?;
        }
        changes.set(Kind::Filter, &of(EVENT).join("filter"), &filter(machine, disk))?;
        changes.set(Kind::Whole, &of(EVENT).join("enable"), "1")?;
        changes.keep(Kind::Whole, &enable)?;
        let mask = enable.with_file_name("act_mask");
        changes.files.write(&mask, "complete").map_err(GovernError::at(mask))?;
        changes.set(Kind::Whole, &enable, "1")?;
        let tracefs = changes.files.tracefs().and_then(|tracefs| tracefs.pipe());
        let pipe = tracefs.map_err(GovernError::at("trace_pipe"))?;
        let (buffer, begun) = (vec![0; READ_BYTES], Vec::new());
        Ok(Self { pipe, buffer, begun, requests: Requests::default() })
    }

    /// Gives what was done since the last call. Does not wait.
    pub(crate) fn read(&mut self, mut see: impl FnMut(Done)) -> Result<(), GovernError> {
        let began = Instant::now();
        // Events that arrive faster than they are read are lost, and counted as lost.
        while began.elapsed() < READ_TIME {
            let count = match rustix::io::read(&self.pipe, &mut self.buffer[..]) {
                Ok(0) | Err(Errno::AGAIN) => return Ok(()),
                Err(Errno::INTR) => continue,
                Err(error) => return Err(GovernError::at("trace_pipe")(error.into())),
                Ok(count) => count,
            };
            for part in self.buffer[..count].split_inclusive(|&byte| byte == b'\n') {
                self.begun.extend_from_slice(part);
                if part.ends_with(b"\n") {
                    if let Some(line) = parse(&String::from_utf8_lossy(&self.begun)) {
                        self.requests.take(&line, &mut see);
                    }
                    self.begun.clear();
                }
            }
            if self.begun.len() > READ_BYTES {
                self.begun.clear();
            }
        }
        Ok(())
    }
}

/// The filter for the disk and its partitions, to which requests may be passed too.
fn filter(machine: &Machine, disk: &GovernedDisk) -> String {
    let dir = PathBuf::from("sys/block").join(&disk.name);
    let partitions = machine.names(&dir).into_iter().map(|name| dir.join(name));
    let partitions = partitions.filter(|part| machine.has(part.join("partition")));
    let numbers = partitions.filter_map(|part| machine.text(part.join("dev")));
    let dev = |number: String| {
        let (major, minor) = number.split_once(':')?;
        let number = (major.parse::<u64>().ok()? << 20) | minor.parse::<u64>().ok()?;
        Some(format!("dev == {number}"))
    };
    let all: Vec<String> = numbers.chain([disk.number.clone()]).filter_map(dev).collect();
    all.join(" || ")
}

impl Requests {
    fn take(&mut self, line: &Line, see: &mut impl FnMut(Done)) {
        match *line {
            Line::Came { time, end } => {
                if self.came.len() >= PENDING_MAX {
                    self.came.clear();
                }
                self.came.insert(end, time);
            }
            // The last part of a split request ends it. A merged request ends all that lie in it.
            Line::Done { time, begin, end, cgroup, is_read } => {
                while let Some((&ended, &came)) = self.came.range(begin + 1..=end).next() {
                    self.came.remove(&ended);
                    see(Done { cgroup, is_read, latency: time.saturating_sub(came) });
                }
            }
        }
    }
}

/// Parses a line. `None` for lines of other events.
fn parse(line: &str) -> Option<Line<'_>> {
    // The name of a process may contain any characters; invalid UTF-8 is longer here.
    let begin = (NAME_BYTES..line.len()).find(|&at| line.is_char_boundary(at))?;
    let rest = line.get(begin..)?;
    let (before, rest) = rest.split_once(": ")?;
    let time = seconds(before.rsplit(' ').next()?)?;
    let rest = rest.trim_start();
    if let Some(fields) = rest.strip_prefix("block_bio_queue: ") {
        // A device, letters and sectors. The name of a process after them may contain any characters.
        let mut words = fields.split(' ').skip(1);
        let (_, _, end) = place(words.next()?, words.next()?, words.nth(1)?)?;
        return Some(Line::Came { time, end });
    }
    let (fields, _) = rest.rsplit_once(" [")?;
    let mut words = fields.rsplit(' ').filter(|word| !word.is_empty());
    let (sectors, begin, letters) = (words.next()?, words.nth(1)?, words.next()?);
    let (is_read, begin, end) = place(letters, begin, sectors)?;
    if words.next()? != "C" {
        return None;
    }
    let path = fields[..fields.rfind(" C ")?].trim_end();
    let cgroup = path.split_once(' ').map_or("", |(_, path)| path.trim());
    Some(Line::Done { time, begin, end, cgroup: cgroup.trim_start_matches('/'), is_read })
}

/// Whether the request reads, and its first and last sector. `None` for requests that transfer no data.
fn place(letters: &str, begin: &str, sectors: &str) -> Option<(bool, u64, u64)> {
    let letters = letters.trim_start_matches('F');
    let (begin, sectors): (u64, u64) = (begin.parse().ok()?, sectors.parse().ok()?);
    let end = begin.checked_add(sectors)?;
    (sectors > 0 && letters.starts_with(['R', 'W'])).then_some((
        letters.starts_with('R'),
        begin,
        end,
    ))
}

/// `SECONDS.MICROSECONDS`.
fn seconds(text: &str) -> Option<Duration> {
    let (seconds, micros) = text.split_once('.')?;
    (micros.len() == 6).then_some(())?;
    Some(Duration::from_secs(seconds.parse().ok()?) + Duration::from_micros(micros.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> Vec<(String, bool, u128)> {
        let (mut requests, mut done) = (Requests::default(), Vec::new());
        for line in text.lines().filter_map(parse) {
            requests.take(&line, &mut |one| {
                done.push((one.cgroup.to_owned(), one.is_read, one.latency.as_micros()));
            });
        }
        done
    }

    #[test]
    fn latency_is_from_the_bio_to_its_end() {
        let text = "\
# tracer: blk
              dd-28634   [001] d..1. 39367.047895: block_bio_queue: 7,0 RS 8 + 8 [dd]
   a: 7,0 C 1.5:-28634   [001] d..1. 39367.047900: block_bio_queue: 7,0 W 64 + 16 [a: [x]
     ksoftirqd/0-14      [000] d.s1. 39367.047976:   7,0   /gx/a b  C  RS 8 + 8 [0]
     ksoftirqd/0-14      [000] d.s1. 39367.048000:   7,0   /  C   W 64 + 16 [0]
CPU:1 [LOST 4 EVENTS]
     ksoftirqd/0-14      [000] d.s1. 39367.049000:   7,0   /gx  C   R 999 + 8 [0]
";
        let expected = [("gx/a b".to_owned(), true, 81), (String::new(), false, 100)];
        assert_eq!(all(text), expected);
    }

    #[test]
    fn split_requests_end_with_their_last_part_and_merged_requests_end_together() {
        let text = "\
           bench-1   [000] d..1. 1.000000: block_bio_queue: 7,0 R 0 + 32 [x]
           bench-1   [000] d..1. 1.000100: block_bio_queue: 7,0 R 100 + 8 [x]
           bench-1   [000] d..1. 1.000200: block_bio_queue: 7,0 R 108 + 8 [x]
           bench-1   [000] d..1. 1.001000:   7,0   /a  C   R 0 + 16 [0]
           bench-1   [000] d..1. 1.002000:   7,0   /a  C   R 16 + 16 [0]
           bench-1   [000] d..1. 1.003000:   7,0   /b  C   R 100 + 16 [0]
";
        let latencies: Vec<u128> = all(text).into_iter().map(|(.., latency)| latency).collect();
        assert_eq!(latencies, [2000, 2900, 2800]);
    }

    #[test]
    fn a_trace_that_is_faster_than_its_reader_does_not_keep_it() {
        let pipe = std::fs::File::open("/dev/zero").unwrap().into();
        let (buffer, requests) = (vec![0; READ_BYTES], Requests::default());
        let mut tracer = Tracer { pipe, buffer, begun: Vec::new(), requests };
        tracer.read(|_| {}).unwrap();
        assert!(tracer.begun.len() <= READ_BYTES);
    }

    #[test]
    fn a_name_that_is_cut_within_a_character_hides_no_request() {
        let line =
            b" 12345678901234\xc3-7  [000] d..1. 1.000000: block_bio_queue: 7,0 R 0 + 32 [x]";
        let line = String::from_utf8_lossy(line);
        assert_eq!(parse(&line), Some(Line::Came { time: Duration::from_secs(1), end: 32 }));
    }

    #[test]
    fn other_lines_are_skipped() {
        for line in [
            "",
            "ä",
            "           dd-1   [000] d..1. 1.000000:   7,0    U   N [dd] 1",
            "           dd-1   [000] d..1. 1.000000:   7,0   /a  C  FN 0 + 0 [0]",
            "           dd-1   [000] d..1. 1.000000:   7,0   /a  C  DS 8 + 8 [0]",
            "           dd-1   [000] d..1. 1.000000:   7,0   /a  D   R 8 + 8 [0]",
            "           dd-1   [000] d..1. 1.000000:   7,0   /a  C   R 18446744073709551615 + 8 [0]",
        ] {
            assert_eq!(parse(line), None, "{line}");
        }
    }
}
