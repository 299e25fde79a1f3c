//! Lines that the kernel prints itself (`trace`, `trace_pipe`), and the tools that print its events:
//! `trace-cmd report` and `perf script`.

use std::time::Duration;

use crate::blkparse::BlkparseLine;
use crate::block_event::{BlockEvent, device_number, seconds};

/// What a line is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum KernelLine<'a> {
    /// An event that is read.
    Event(KernelEvent),
    /// Another event, by its name.
    Other(&'a str),
    /// No event.
    Text,
}

impl<'a> KernelLine<'a> {
    /// Reads `... SECONDS: NAME: FIELDS`. The name of a process may hold such text too: the first
    /// event in the line that is read counts.
    pub(crate) fn parse(line: &'a str) -> Self {
        let mut other = Self::Text;
        for (at, _) in line.match_indices(": ") {
            let word = line[..at].rsplit(char::is_whitespace).next();
            let Some(time) = word.and_then(seconds) else { continue };
            match Self::after_time(time, line[at + 1..].trim_start()) {
                event @ Self::Event(_) => return event,
                found if other == Self::Text => other = found,
                _ => {}
            }
        }
        other
    }

    fn after_time(time: Duration, rest: &'a str) -> Self {
        let first = rest.split(' ').next().unwrap_or_default();
        // the kernel's `blk` tracer prints the letters of blktrace
        if let Some(device) = device_number(first) {
            let words = rest[first.len()..].split_ascii_whitespace();
            return match BlkparseLine::after_time(time, device, words) {
                BlkparseLine::Event(event) => Self::Event(KernelEvent::Block(event)),
                BlkparseLine::OtherEvent(action) => Self::Other(action),
                _ => Self::Other(first),
            };
        }
        // perf may print the period of an event before its name
        let is_number = !first.is_empty() && first.bytes().all(|byte| byte.is_ascii_digit());
        let rest = if is_number { rest[first.len()..].trim_start() } else { rest };
        let Some((name, fields)) = rest.split_once(": ") else {
            return match rest.split_ascii_whitespace().next() {
                Some(name) => Self::Other(name.trim_end_matches(':')),
                None => Self::Text,
            };
        };
        // perf names the group of an event too
        let name = name.rsplit(':').next().unwrap_or(name);
        match KernelEvent::named(time, name, fields.trim_start()) {
            Some(event) => Self::Event(event),
            None => Self::Other(name),
        }
    }
}

impl BlockEvent {
    /// Reads a line of `trace` or `trace_pipe`; nothing where it is none of these events, whatever
    /// else it may be.
    ///
    /// Such lines are `COMM-PID [CPU] FLAGS SECONDS: block_rq_issue: MAJOR,MINOR OPERATION BYTES
    /// (COMMAND) SECTOR + SECTORS ... [COMM]`, and the same without bytes and command where bios
    /// are seen; where these are split, `SECTOR / SECTOR`.
    pub fn parse(line: &str) -> Option<Self> {
        match KernelLine::parse(line) {
            KernelLine::Event(KernelEvent::Block(event)) => Some(event),
            _ => None,
        }
    }
}

impl KernelEvent {
    /// Reads a line of `trace`, `trace_pipe`, `trace-cmd report` or `perf script`; nothing where it
    /// is none of these events.
    pub fn parse(line: &str) -> Option<Self> {
        match KernelLine::parse(line) {
            KernelLine::Event(event) => Some(event),
            KernelLine::Other(_) | KernelLine::Text => None,
        }
    }
}

/// The event of io_uring, below `events/io_uring`.
pub(crate) const ASYNC_WORK: &str = "io_uring_queue_async_work";

/// What the kernel says in a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KernelEvent {
    /// Of a request at a block device.
    Block(BlockEvent),
    /// io_uring gives a request to a thread of the kernel, because it would have to wait.
    AsyncWork {
        /// When, by the clock of the trace.
        time: Duration,
        /// What the request does, such as `WRITE`; empty where an old kernel does not say it.
        operation: String,
    },
}

impl KernelEvent {
    /// An event by its name, with what follows the name.
    pub(crate) fn named(time: Duration, name: &str, fields: &str) -> Option<Self> {
        if name != ASYNC_WORK {
            return BlockEvent::named(time, name, fields).map(Self::Block);
        }
        let operation = fields.split_once("opcode ").map_or("", |(_, rest)| rest);
        let end = operation.find([',', ' ']).unwrap_or(operation.len());
        Some(Self::AsyncWork { time, operation: operation[..end].to_owned() })
    }

    /// When, by the clock of the trace.
    pub fn time(&self) -> Duration {
        match self {
            Self::Block(event) => event.time,
            Self::AsyncWork { time, .. } => *time,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(line: &str) -> BlockEvent {
        match KernelLine::parse(line) {
            KernelLine::Event(KernelEvent::Block(event)) => event,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn one_event_is_the_same_in_the_text_of_every_tool() {
        let fields = "8,16 RM 4096 () 390439208 + 8 [fio]";
        let time = "205791.409878";
        let expected = event(&format!("fio-9526 [006] ..... {time}: block_rq_issue: {fields}"));
        for before_fields in [
            format!("fio-9526 [006] {time}: block_rq_issue:       "),
            format!("fio-9526 6.... {time}: block_rq_issue:       "),
            format!("fio  9526 [006] {time}: block:block_rq_issue: "),
            format!("fio  9526 [006] {time}000:          1    block:block_rq_issue: "),
            format!("lto cgu.0 31171 [001] {time}:    block:block_rq_issue: "),
            format!("    {time}:    block:block_rq_issue: "),
        ] {
            assert_eq!(event(&format!("{before_fields}{fields}")), expected, "{before_fields}");
        }
        let blk = format!("fio-9526 [006] ..... {time}:   8,16   D  RM 390439208 + 8 [fio]");
        assert_eq!(event(&blk), expected);
    }

    #[test]
    fn events_that_are_not_read_have_a_name() {
        for (line, name) in [
            ("x-1 [000] 1.5: block_getrq: 8,0 W 0 + 8 [x]", "block_getrq"),
            ("x 1 [000] 1.5:  block:block_plug: [x]", "block_plug"),
            ("x-1 [000] 1.5:   8,0   G   W 0 + 8 [x]", "G"),
            ("x-1 [000] 1.5: do_sys_open <-x", "do_sys_open"),
        ] {
            assert_eq!(KernelLine::parse(line), KernelLine::Other(name), "{line}");
        }
        for line in ["", "cpus=2", "a: b", "x 1: block_rq_issue: 8,0 W 0 + 8 [x]"] {
            assert_eq!(KernelLine::parse(line), KernelLine::Text, "{line}");
        }
    }

    #[test]
    fn requests_that_the_kernel_gives_to_a_thread_are_read() {
        let read = |fields: &str| {
            KernelEvent::parse(&format!(
                "x-1 [001] ..... 12.5: io_uring_queue_async_work: {fields}"
            ))
        };
        let of = |operation: &str| {
            let (time, operation) = (Duration::from_millis(12_500), operation.to_owned());
            Some(KernelEvent::AsyncWork { time, operation })
        };
        let new =
            "ring 0f, request 1f, user_data 0x2, opcode WRITE, flags 0x8, normal queue, work 3";
        assert_eq!(read(new), of("WRITE"));
        assert_eq!(read("ring 0f, request 1f, flags 8, normal queue, work 3"), of(""));
        assert_eq!(KernelEvent::parse("io_uring_queue_async_work: ring 0f"), None);
    }
}
