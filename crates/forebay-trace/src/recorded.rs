//! Traces that were recorded as text.

use std::borrow::Cow;
use std::fmt;
use std::io::{self, BufRead, Read};
use std::time::Duration;

use crate::blkparse::{BlkparseLine, EXPECTED};
use crate::block_event::{Action, seconds};
use crate::kernel_event::KernelEvent;
use crate::recording::LINE_BYTES_MAX;

/// What a file of `blktrace` begins with, which only `blkparse` reads: a number that ends in the
/// version, in the order of bytes of its machine.
const MAGIC: [[u8; 3]; 2] = [*b"tae", *b"eat"];

/// What some programs put before a text.
const BYTE_ORDER_MARK: char = '\u{FEFF}';

/// Of so many events one line may be like an event and none; with more this is another text.
const EVENTS_PER_BROKEN: u64 = 100;

/// What an error shows of a line.
const SHOWN: usize = 60;

/// A recorded trace, read to its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recorded {
    /// Events of requests and of io_uring.
    pub events: u64,
    /// From the first of them to the last.
    pub length: Duration,
    /// Events that the tool says it has lost.
    pub lost: u64,
    /// Lines among events that are none, and the first of them.
    pub unknown_lines: u64,
    /// See [`Recorded::unknown_lines`]; 0 without.
    pub unknown_first: u64,
}

/// Why a recorded trace cannot be used.
pub enum RecordedError {
    /// It cannot be read.
    Read(io::Error),
    /// This is no such text.
    Line {
        /// The number of the line, from 1.
        number: u64,
        /// What is wrong with it.
        why: String,
    },
    /// There is no request in it.
    NoRequests,
}

/// What a `main` that returns an error shows of it.
impl fmt::Debug for RecordedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Recorded {
    /// Reads the text of `blkparse`, of `btrace`, or of the kernel's `trace` and `trace_pipe`, and
    /// gives each event to `see`, with the time since the first.
    ///
    /// # Errors
    /// It is no such text: the error says which line is not.
    pub fn read(
        mut from: impl BufRead,
        mut see: impl FnMut(Duration, &KernelEvent),
    ) -> Result<Self, RecordedError> {
        let mut found = Self::default();
        let mut began = None;
        let mut has_sums = false;
        let mut number = 0;
        let mut bytes = Vec::new();
        let mut requests = 0_u64;
        let (mut broken, mut broken_first) = (0_u64, None);
        loop {
            bytes.clear();
            let limit = LINE_BYTES_MAX as u64;
            let read = from.by_ref().take(limit).read_until(b'\n', &mut bytes);
            if read.map_err(RecordedError::Read)? == 0 {
                break;
            }
            number += 1;
            let wrong = |why: String| RecordedError::Line { number, why };
            let line = text(&bytes).map_err(wrong)?;
            let line = line.trim_start_matches(BYTE_ORDER_MARK).trim_end();
            match Line::of(line) {
                Line::Event(event) => {
                    requests += u64::from(is_request(&event));
                    let began = *began.get_or_insert_with(|| event.time());
                    let since = event.time().saturating_sub(began);
                    found.length = found.length.max(since);
                    found.events += 1;
                    see(since, &event);
                }
                Line::Skipped => {}
                Line::Lost(lost) => found.lost = found.lost.saturating_add(lost),
                // cut off where the file was
                Line::Broken(_) if !bytes.ends_with(b"\n") && found.events > 0 => {}
                Line::Broken(why) => {
                    broken += 1;
                    broken_first
                        .get_or_insert_with(|| wrong(format!("{why}, not `{}`", shown(line))));
                    found.add_unknown(number);
                }
                Line::Sum => has_sums = true,
                Line::Unknown if has_sums => {}
                Line::Unknown if found.events > 0 => found.add_unknown(number),
                Line::Unknown => {
                    return Err(wrong(format!(
                        "`{}` is no event of blkparse's text; expected {EXPECTED}",
                        shown(line)
                    )));
                }
            }
        }
        match broken_first.filter(|_| broken * EVENTS_PER_BROKEN > found.events) {
            Some(error) => Err(error),
            None if requests == 0 => Err(RecordedError::NoRequests),
            None => Ok(found),
        }
    }

    fn add_unknown(&mut self, number: u64) {
        self.unknown_lines += 1;
        if self.unknown_lines == 1 {
            self.unknown_first = number;
        }
    }
}

/// Whether a request is handed over: without that nothing is known of its way.
fn is_request(event: &KernelEvent) -> bool {
    matches!(event, KernelEvent::Block(block) if block.action == Action::Queue)
}

/// What a line is to a reader.
enum Line {
    Event(KernelEvent),
    Skipped,
    Broken(&'static str),
    Lost(u64),
    /// One of the sums that `blkparse` prints below the events.
    Sum,
    Unknown,
}

impl Line {
    fn of(line: &str) -> Self {
        if let Some(event) = KernelEvent::parse(line) {
            return Self::Event(event);
        }
        match BlkparseLine::parse(line) {
            BlkparseLine::Event(event) => Self::Event(KernelEvent::Block(event)),
            BlkparseLine::OtherEvent => Self::Skipped,
            BlkparseLine::Broken(why) => Self::Broken(why),
            BlkparseLine::Lost(lost) => Self::Lost(lost),
            BlkparseLine::Text => Self::of_text(line),
        }
    }

    fn of_text(line: &str) -> Self {
        let begins = |words: &[&str]| words.iter().any(|word| line.starts_with(word));
        // other events of the kernel have a time before their name
        let time = line.split_once(": ").and_then(|(before, _)| before.rsplit(' ').next());
        let is_other = time.and_then(seconds).is_some();
        if line.is_empty() || is_other || begins(&["#", "===", "Input file", "CPU:"]) {
            Self::Skipped
        } else if begins(&["CPU", "Total", "Throughput", "Events", "Skips", "  CPU", "  Total"]) {
            Self::Sum
        } else {
            Self::Unknown
        }
    }
}

/// The text of a line, with marks for what is no UTF-8: names of processes may be any bytes.
fn text(bytes: &[u8]) -> Result<Cow<'_, str>, String> {
    if MAGIC.iter().any(|magic| bytes.get(1..4) == Some(magic) || bytes.get(..3) == Some(magic)) {
        return Err(
            "this is what blktrace records; make text of it: blkparse -i FILE > TEXT".into()
        );
    }
    match bytes.contains(&0) {
        false => Ok(String::from_utf8_lossy(bytes)),
        true => Err("this is no text; blkparse makes text of what blktrace records".into()),
    }
}

/// The beginning of a line.
fn shown(line: &str) -> String {
    let mut shown: String = line.trim_start().chars().take(SHOWN).collect();
    if shown.len() < line.trim_start().len() {
        shown.push_str("...");
    }
    shown
}

impl fmt::Display for RecordedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(error) => write!(f, "cannot be read: {error}"),
            Self::Line { number, why } => write!(f, "line {number}: {why}"),
            Self::NoRequests => write!(
                f,
                "there is no request in it that was queued (Q, block_bio_queue); record queued, split \
                 and completed ones, and let blkparse print them as {EXPECTED}"
            ),
        }
    }
}

impl std::error::Error for RecordedError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Read(error) => Some(error),
            Self::Line { .. } | Self::NoRequests => None,
        }
    }
}
