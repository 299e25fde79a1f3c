//! Traces that were recorded as text.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, BufRead, Read};
use std::time::Duration;

use serde::Serialize;

use crate::blkparse::{BlkparseLine, EXPECTED};
use crate::block_event::{Action, seconds};
use crate::kernel_line::{ASYNC_WORK, KernelEvent, KernelLine};
use crate::recording::LINE_BYTES_MAX;

/// What a file of `blktrace` begins with, which only `blkparse` reads: a number that ends in the
/// version, in the order of bytes of its machine.
const MAGIC: [[u8; 3]; 2] = [*b"tae", *b"eat"];

/// What some programs put before a text.
const BYTE_ORDER_MARK: char = '\u{FEFF}';

/// Of this many events one line may be like an event and none; with more this is another text.
const EVENTS_PER_BROKEN: u64 = 100;

/// As many lines of something else may stand before the first event: a prompt, a mail's head.
const LINES_BEFORE_MAX: u64 = 100;

/// The maximum of kinds of ignored events that are counted separately.
const KINDS_MAX: usize = 64;

/// What an error shows of a line.
const SHOWN: usize = 60;

/// A recorded trace, read to its end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recorded {
    /// Events of requests and of io_uring.
    pub events: u64,
    /// Other events, which are not read, the most frequent first.
    pub not_read: Vec<NotRead>,
    /// From the first of them to the last.
    pub length: Duration,
    /// Events that the tool says it has lost.
    pub lost: u64,
    /// Lines among events that are none, or cut off at the end, and the first of them.
    pub unknown_lines: u64,
    /// See [`Recorded::unknown_lines`]; 0 without.
    pub unknown_first: u64,
}

/// Events of one kind that are in a trace and are not read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NotRead {
    /// Its letter in the text of `blkparse`, or its name in that of the kernel; `others` where
    /// there are too many kinds.
    pub event: String,
    /// How many.
    pub count: u64,
}

/// Why a recorded trace cannot be used.
#[derive(thiserror::Error)]
pub enum RecordedError {
    /// It cannot be read.
    #[error("cannot be read: {0}")]
    Read(#[source] io::Error),
    /// This is no such text.
    #[error("line {number}: {why}")]
    Line {
        /// The number of the line, from 1.
        number: u64,
        /// What is wrong with it.
        why: String,
    },
    /// There is no request in it.
    #[error(
        "there is no request in it that was queued (Q, block_bio_queue) or issued (D, \
         block_rq_issue); it has {found}; record queued, split, issued and completed ones, and let \
         blkparse print them as {EXPECTED}"
    )]
    NoRequests {
        /// The events that are in it, in words; `no event` without any.
        found: String,
    },
}

/// What a `main` that returns an error shows of it.
impl fmt::Debug for RecordedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Recorded {
    /// Reads the text of `blkparse`, of `btrace`, of `trace-cmd report`, of `perf script`, or of
    /// the kernel's `trace` and `trace_pipe`, and gives each event to `see`, with the time since
    /// the first.
    ///
    /// # Errors
    /// It is no such text: the error says which line is not.
    pub fn read(
        mut from: impl BufRead,
        mut see: impl FnMut(Duration, &KernelEvent),
    ) -> Result<Self, RecordedError> {
        let mut reading = Reading::default();
        let mut bytes = Vec::new();
        loop {
            bytes.clear();
            let limit = LINE_BYTES_MAX as u64;
            let read = from.by_ref().take(limit).read_until(b'\n', &mut bytes);
            if read.map_err(RecordedError::Read)? == 0 {
                return reading.finish();
            }
            reading.line(&bytes, &mut see)?;
        }
    }

    fn add_unknown(&mut self, number: u64) {
        self.unknown_lines += 1;
        if self.unknown_lines == 1 {
            self.unknown_first = number;
        }
    }
}

/// What is known in the middle of a trace.
#[derive(Default)]
struct Reading {
    found: Recorded,
    /// The number of the line.
    number: u64,
    /// When the first event was.
    began: Option<Duration>,
    has_sums: bool,
    /// Requests that were queued or issued.
    requests: u64,
    /// Completions, splits and events of io_uring.
    others: BTreeMap<&'static str, u64>,
    not_read: BTreeMap<String, u64>,
    broken: u64,
    broken_first: Option<RecordedError>,
    unknown_first: Option<RecordedError>,
}

impl Reading {
    fn line(
        &mut self,
        bytes: &[u8],
        see: &mut impl FnMut(Duration, &KernelEvent),
    ) -> Result<(), RecordedError> {
        self.number += 1;
        let number = self.number;
        let wrong = |why: String| RecordedError::Line { number, why };
        let line = text(bytes).map_err(wrong)?;
        let line = line.trim_start_matches(BYTE_ORDER_MARK).trim_end();
        let is_cut = !bytes.ends_with(b"\n") && !line.ends_with(']') && self.found.events > 0;
        match Line::of(line) {
            // maybe in its last number: a process or an error in brackets follows it
            Line::Event(_) | Line::NotRead(_) | Line::Broken(_) if is_cut => {
                self.found.add_unknown(number);
            }
            Line::Event(event) => self.event(&event, see),
            Line::NotRead(name) => self.count_not_read(name),
            Line::Skipped => {}
            Line::Lost(lost) => self.found.lost = self.found.lost.saturating_add(lost),
            Line::Broken(why) => {
                self.broken += 1;
                let error = || wrong(format!("{why}, not `{}`", shown(line)));
                self.broken_first.get_or_insert_with(error);
                self.found.add_unknown(number);
            }
            Line::Sum => self.has_sums = true,
            Line::Unknown if self.has_sums => {}
            Line::Unknown => {
                self.found.add_unknown(number);
                let first = self.unknown_first.get_or_insert_with(|| wrong(unknown(line)));
                if self.found.events == 0 && self.found.unknown_lines > LINES_BEFORE_MAX {
                    let first = std::mem::replace(first, wrong(String::new()));
                    return Err(first);
                }
            }
        }
        Ok(())
    }

    fn event(&mut self, event: &KernelEvent, see: &mut impl FnMut(Duration, &KernelEvent)) {
        match other_than_request(event) {
            None => self.requests += 1,
            Some(name) => *self.others.entry(name).or_default() += 1,
        }
        let began = *self.began.get_or_insert_with(|| event.time());
        let since = event.time().saturating_sub(began);
        self.found.length = self.found.length.max(since);
        self.found.events += 1;
        see(since, event);
    }

    fn count_not_read(&mut self, name: &str) {
        let is_new = !self.not_read.contains_key(name);
        let name = if is_new && self.not_read.len() >= KINDS_MAX { "others" } else { name };
        match self.not_read.get_mut(name) {
            Some(count) => *count += 1,
            None => drop(self.not_read.insert(name.to_owned(), 1)),
        }
    }

    fn finish(mut self) -> Result<Recorded, RecordedError> {
        if let Some(error) =
            self.broken_first.filter(|_| self.broken * EVENTS_PER_BROKEN > self.found.events)
        {
            return Err(error);
        }
        let has_events = self.found.events > 0 || !self.not_read.is_empty();
        if let Some(error) = self.unknown_first.filter(|_| !has_events) {
            return Err(error);
        }
        let not_read = self.not_read.into_iter().map(|(event, count)| NotRead { event, count });
        self.found.not_read = not_read.collect();
        self.found.not_read.sort_by_key(|kind| Reverse(kind.count));
        if self.requests > 0 {
            return Ok(self.found);
        }
        let others = self.others.iter().map(|(name, count)| format!("{count} {name}"));
        let not_read =
            self.found.not_read.iter().map(|kind| format!("{} {}", kind.count, kind.event));
        let found: Vec<String> = others.chain(not_read).collect();
        let found = if found.is_empty() { "no event".into() } else { found.join(", ") };
        Err(RecordedError::NoRequests { found })
    }
}

/// What an event is called that hands over no request; without one nothing is known of its way.
fn other_than_request(event: &KernelEvent) -> Option<&'static str> {
    let KernelEvent::Block(block) = event else { return Some(ASYNC_WORK) };
    match block.action {
        Action::Queue | Action::Issue => None,
        Action::Complete => Some("completed (C)"),
        Action::Split => Some("split (X)"),
        Action::Requeue => Some("requeued (R)"),
    }
}

/// What is wrong with a line that is no event.
fn unknown(line: &str) -> String {
    let first = line.split([' ', ',']).next().and_then(seconds);
    let hint = match first {
        Some(_) => {
            "; it begins with a time, which is a custom format of blkparse (-f): print the \
             default one"
        }
        None => "",
    };
    format!("`{}` is no event of blkparse's text; expected {EXPECTED}{hint}", shown(line))
}

/// What a line is to a reader.
enum Line<'a> {
    Event(KernelEvent),
    /// Another event, by its name.
    NotRead(&'a str),
    Skipped,
    Broken(&'static str),
    Lost(u64),
    /// One of the sums that `blkparse` prints below the events.
    Sum,
    Unknown,
}

impl<'a> Line<'a> {
    fn of(line: &'a str) -> Self {
        match KernelLine::parse(line) {
            KernelLine::Event(event) => return Self::Event(event),
            KernelLine::Other(name) => return Self::NotRead(name),
            KernelLine::Text => {}
        }
        match BlkparseLine::parse(line) {
            BlkparseLine::Event(event) => Self::Event(KernelEvent::Block(event)),
            BlkparseLine::OtherEvent(action) => Self::NotRead(action),
            BlkparseLine::Broken(why) => Self::Broken(why),
            BlkparseLine::Lost(lost) => Self::Lost(lost),
            BlkparseLine::Text => Self::of_text(line),
        }
    }

    fn of_text(line: &str) -> Self {
        let begins = |words: &[&str]| words.iter().any(|word| line.starts_with(word));
        if let Some(lost) = lost_by_kernel(line) {
            return Self::Lost(lost);
        }
        let is_head = begins(&["#", "===", "Input file", "CPU:", "cpus=", "version = "])
            || (begins(&["CPU "]) && line.ends_with(" is empty"));
        if line.is_empty() || is_head || is_frame(line) {
            Self::Skipped
        } else if begins(&["CPU", "Total", "Throughput", "Events", "Skips", "  CPU", "  Total"]) {
            Self::Sum
        } else {
            Self::Unknown
        }
    }
}

/// How many events were lost: `CPU:1 [LOST 123 EVENTS]` of the kernel, `CPU:1 [123 EVENTS DROPPED]`
/// of trace-cmd.
fn lost_by_kernel(line: &str) -> Option<u64> {
    let inside = line.strip_prefix("CPU:")?.split_once('[')?.1.split_once(']')?.0;
    let number = match inside.strip_prefix("LOST ") {
        Some(rest) => rest.strip_suffix(" EVENTS")?,
        None => inside.strip_suffix(" EVENTS DROPPED")?,
    };
    number.parse().ok()
}

/// Whether `perf script` prints such a line for a function on the stack: its address and its name.
fn is_frame(line: &str) -> bool {
    let mut words = line.split_ascii_whitespace();
    let address = words.next().unwrap_or_default();
    let is_address = address.len() >= 4 && address.bytes().all(|byte| byte.is_ascii_hexdigit());
    line.starts_with(char::is_whitespace) && is_address && line.ends_with(')')
}

/// The text of a line, with marks for what is no UTF-8: names of processes may be any bytes.
fn text(bytes: &[u8]) -> Result<Cow<'_, str>, String> {
    if MAGIC.iter().any(|magic| bytes.get(1..4) == Some(magic) || bytes.get(..3) == Some(magic)) {
        return Err(
            "this is a binary recording of blktrace; convert it to text: blkparse -i FILE > TEXT"
                .into(),
        );
    }
    match bytes.contains(&0) {
        false => Ok(String::from_utf8_lossy(bytes)),
        true => Err("this is not text; convert a recording of blktrace with blkparse".into()),
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
