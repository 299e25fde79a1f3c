//! A line of a trace: a request at a block device.

use std::ops::Range;
use std::time::Duration;

use forebay_block::DeviceNumber;
use serde::Serialize;

/// What the kernel counts sectors in, whatever those of the disk are.
pub(crate) const SECTOR_BYTES: u64 = 512;

/// No bio is longer than its 32 bits of bytes, so no first part of one is either.
const BIO_SECTORS_MAX: u64 = (1 << 32) / SECTOR_BYTES;

/// A split point may be printed without the bits above these (`blkparse`).
const SPLIT_POINT_BITS: u32 = 32;

/// Where in the kernel a request was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tracepoint {
    /// A request goes to the driver of its disk, after it was split and merged.
    RequestIssue,
    /// A driver is done with a request, or with a part of it.
    RequestComplete,
    /// A file system or another device hands a request over. All that devices without requests
    /// have, such as zram.
    BioQueue,
    /// What was handed over is cut, and its rest is handed over again.
    Split,
    /// A device without requests is done.
    BioComplete,
    /// A driver gives a request back, to be issued again.
    RequestRequeue,
}

impl Tracepoint {
    /// All that are read.
    const ALL: [Self; 6] = [
        Self::RequestIssue,
        Self::RequestComplete,
        Self::BioQueue,
        Self::Split,
        Self::BioComplete,
        Self::RequestRequeue,
    ];

    /// Its name below `events/block`.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::RequestIssue => "block_rq_issue",
            Self::RequestComplete => "block_rq_complete",
            Self::BioQueue => "block_bio_queue",
            Self::Split => "block_split",
            Self::BioComplete => "block_bio_complete",
            Self::RequestRequeue => "block_rq_requeue",
        }
    }

    /// Whether a command stands in parentheses before the place.
    const fn has_command(self) -> bool {
        matches!(self, Self::RequestIssue | Self::RequestComplete | Self::RequestRequeue)
    }

    const fn action(self) -> Action {
        match self {
            Self::RequestIssue => Action::Issue,
            Self::BioQueue => Action::Queue,
            Self::Split => Action::Split,
            Self::RequestComplete | Self::BioComplete => Action::Complete,
            Self::RequestRequeue => Action::Requeue,
        }
    }
}

/// What happens to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// It is handed to a device: `Q`.
    Queue,
    /// It is cut in two; the event has the first part: `X`.
    Split,
    /// It goes to the driver: `D`.
    Issue,
    /// It is done, or a part of it: `C`.
    Complete,
    /// The driver gives it back, and it is issued again: `R`.
    Requeue,
}

/// Which way a request goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// From the disk.
    Read,
    /// To the disk.
    Write,
    /// Nothing is moved; secure erasure is one too.
    Discard,
    /// A flush without data, or a command of a zoned disk.
    Other,
}

impl Direction {
    /// From the letters of a trace, such as `WS`; an `F` before them is a flush that goes first.
    pub(crate) fn of(letters: &str) -> Self {
        match letters.trim_start_matches('F').as_bytes().first() {
            Some(b'R') => Self::Read,
            Some(b'W') => Self::Write,
            Some(b'D') => Self::Discard,
            _ => Self::Other,
        }
    }
}

/// A request as a trace shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockEvent {
    /// When, by the clock of the trace.
    pub time: Duration,
    /// What happens to it.
    pub action: Action,
    /// The disk.
    pub device: DeviceNumber,
    /// Which way it goes.
    pub direction: Direction,
    /// Where it begins, in bytes.
    pub offset: u64,
    /// How long it is, in bytes; for [`Action::Split`] its first part.
    pub bytes: u64,
    /// The error number (`errno`) of a completion that failed; otherwise 0.
    pub error: u16,
}

impl BlockEvent {
    /// An event of the kernel by its name, with what follows the name.
    pub(crate) fn named(time: Duration, name: &str, fields: &str) -> Option<Self> {
        let tracepoint = Tracepoint::ALL.into_iter().find(|point| point.name() == name)?;
        let (device, fields) = fields.split_once(' ')?;
        let (operation, fields) = fields.split_once(' ')?;
        let place = if tracepoint.has_command() { fields.split_once(") ")?.1 } else { fields };
        let action = tracepoint.action();
        let (offset, bytes) = Self::place(place, action)?;
        let direction = Direction::of(operation);
        let error = error(fields, action);
        Some(Self { time, action, device: device_number(device)?, direction, offset, bytes, error })
    }

    /// Offset and length of `SECTOR + SECTORS`, or of the first part in `SECTOR / SECTOR`.
    pub(crate) fn place(text: &str, action: Action) -> Option<(u64, u64)> {
        let mut words = text.split_ascii_whitespace();
        let first: u64 = words.next()?.parse().ok()?;
        let sign = words.next()?;
        let second: u64 = words.next()?.parse().ok()?;
        // flushes are nowhere, which the kernel prints as a sector that no disk has
        let sector = if sign == "+" && second == 0 { 0 } else { first };
        let offset = sector.checked_mul(SECTOR_BYTES)?;
        let sectors = match (action, sign) {
            (Action::Split, "/") => first_part(first, second)?,
            (Action::Split, _) => return None,
            (_, "+") => second,
            _ => return None,
        };
        Some((offset, sectors.checked_mul(SECTOR_BYTES)?))
    }

    /// The bytes that it is about.
    pub(crate) fn range(&self) -> Range<u64> {
        self.offset..self.offset.saturating_add(self.bytes)
    }
}

/// Sectors from `begin` to a split point. Of the point only the lower bits may be known: it is the
/// first place behind `begin` that has them, if a request reaches so far.
fn first_part(begin: u64, point: u64) -> Option<u64> {
    let sectors = point.wrapping_sub(begin) & ((1 << SPLIT_POINT_BITS) - 1);
    (1..BIO_SECTORS_MAX).contains(&sectors).then_some(sectors)
}

/// The error number at the end of a completion, `[-5]`; 0 without. blktrace has it as 16 bits
/// without a sign: `[65531]`.
pub(crate) fn error(fields: &str, action: Action) -> u16 {
    let last = fields.rsplit_once('[').and_then(|(_, last)| last.split_once(']'));
    let number = last.and_then(|(number, _)| number.parse::<i32>().ok());
    match number.filter(|_| action == Action::Complete) {
        Some(signed @ -32_768..0) => signed.unsigned_abs() as u16,
        Some(unsigned @ 32_768..65_536) => (65_536 - unsigned) as u16,
        _ => 0,
    }
}

/// Reads `8,0`.
pub(crate) fn device_number(text: &str) -> Option<DeviceNumber> {
    let (major, minor) = text.split_once(',')?;
    Some(DeviceNumber { major: major.parse().ok()?, minor: minor.parse().ok()? })
}

/// Reads `724.568866`: seconds and up to nine digits of a fraction.
pub(crate) fn seconds(text: &str) -> Option<Duration> {
    let (whole, fraction) = text.split_once('.')?;
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if !is_number(whole) || !is_number(fraction) || fraction.len() > 9 {
        return None;
    }
    let nanos: u32 = format!("{fraction:0<9}").parse().ok()?;
    Some(Duration::new(whole.parse().ok()?, nanos))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ISSUE: &str = "    kworker/1:1H-59      [001] .....   724.576475: block_rq_issue: 7,0 DS \
                         67108864 () 2048 + 131072 be,0,4 [kworker/1:1H]";

    #[test]
    fn requests_and_bios_are_read() {
        let event = BlockEvent::parse(ISSUE).unwrap();
        assert_eq!(event.time, Duration::new(724, 576_475_000));
        assert_eq!(event.device, DeviceNumber { major: 7, minor: 0 });
        assert_eq!((event.offset, event.bytes), (1 << 20, 64 << 20));
        assert_eq!((event.action, event.direction), (Action::Issue, Direction::Discard));
        let bio =
            "      a b: c-19663   [001] d..1.   724.5: block_bio_queue: 259,12 WS 8 + 16 [a b]";
        let event = BlockEvent::parse(bio).unwrap();
        assert_eq!(event.device, DeviceNumber { major: 259, minor: 12 });
        assert_eq!((event.offset, event.bytes), (4096, 8192));
        assert_eq!((event.action, event.direction), (Action::Queue, Direction::Write));
    }

    #[test]
    fn splits_and_completions_are_read() {
        let read = |text: &str| {
            let line = format!("      dd-30496 [001] .N... 758.337440: {text}");
            let event = BlockEvent::parse(&line).unwrap();
            (event.action, event.direction, event.offset / 512, event.bytes / 512)
        };
        let split = read("block_split: 7,0 WS 512 / 640 [dd]");
        assert_eq!(split, (Action::Split, Direction::Write, 512, 128));
        let done = read("block_rq_complete: 7,0 RS () 640 + 128 be,0,4 [0]");
        assert_eq!(done, (Action::Complete, Direction::Read, 640, 128));
        let done = read("block_bio_complete: 252,0 FWFS 8 + 16 [0]");
        assert_eq!(done, (Action::Complete, Direction::Write, 8, 16));
        assert_eq!(read("block_rq_issue: 7,0 FF 0 () 0 + 0 [x]").1, Direction::Other);
        let flush = read("block_rq_complete: 7,0 FF () 18446744073709551615 + 0 be,0,4 [0]");
        assert_eq!(flush, (Action::Complete, Direction::Other, 0, 0));
    }

    #[test]
    fn kernels_that_know_no_priorities_are_read_too() {
        let line = "fstrim-7 [000] 1.000001: block_rq_issue: 8,0 D 4096 () 0 + 8 [fstrim]";
        assert_eq!(BlockEvent::parse(line).unwrap().bytes, 4096);
    }

    #[test]
    fn other_lines_of_a_trace_are_left_out() {
        for line in [
            "",
            "# tracer: nop",
            "CPU:1 [LOST 123 EVENTS]",
            "x-1 [000] 1.0: block_rq_insert: 8,0 D 4096 () 0 + 8 [0]",
            "x-1 [000] 1.0: block_split: 8,0 W 640 / 512 [x]",
            "x-1 [000] 1.0: block_split: 8,0 W 512 + 640 [x]",
            "x-1 [000] 1.0: block_rq_issue: ",
            "x-1 [000] 1.0: block_rq_issue: 8,0",
            "x-1 [000] 1.0: block_rq_issue: 8,0 D 4096 () 0 8 [x]",
            "x-1 [000] 1.0: block_rq_issue: 8,0 D 4096 () 99999999999999999999 + 8 [x]",
            "x-1 [000] 1.0: block_rq_issue: 8,0 D 4096 () 18446744073709551615 + 8 [x]",
            "x-1 [000] 1: block_rq_issue: 8,0 D 4096 () 0 + 8 [x]",
            "x-1 [000] 1.0000000001: block_rq_issue: 8,0 D 4096 () 0 + 8 [x]",
            "x-1 [000] +1.5: block_rq_issue: 8,0 D 4096 () 0 + 8 [x]",
            "x-1 [000] 1.é: block_rq_issue: 8,0 D 4096 () 0 + 8 [x]",
        ] {
            assert_eq!(BlockEvent::parse(line), None, "{line}");
        }
    }

    #[test]
    fn a_process_named_after_an_event_is_no_event() {
        // as long as a name can be
        let line = ISSUE.replace("kworker/1:1H", "block_rq_issue:");
        assert_eq!(BlockEvent::parse(&line), BlockEvent::parse(ISSUE));
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_left_out(text in "\\PC*") {
            let _ = BlockEvent::parse(&text);
        }

        #[test]
        fn a_line_with_anything_in_it_is_read_or_left_out(
            at in 0..ISSUE.len(), remove in 0_usize..40, insert in "[ -~é]{0,20}"
        ) {
            let (before, after) = ISSUE.split_at(at);
            let after = after.get(remove..).unwrap_or_default();
            if let Some(event) = BlockEvent::parse(&format!("{before}{insert}{after}")) {
                prop_assert!(event.bytes % SECTOR_BYTES == 0);
            }
        }

        #[test]
        fn output_of_the_kernel_is_parsed(
            major in 1_u32..4096, minor in 0_u32..1 << 20, sector in 0_u64..1 << 50,
            sectors in 0_u32.., micros in 0_u64..1 << 50, comm in "[ -~]{0,15}",
        ) {
            let (secs, rest) = (micros / 1_000_000, micros % 1_000_000);
            let line = format!(
                "{comm:>16}-1 [000] ..... {secs}.{rest:06}: block_rq_issue: {major},{minor} DS 512 \
                 () {sector} + {sectors} be,0,4 [{comm}]"
            );
            let event = BlockEvent::parse(&line).unwrap();
            prop_assert_eq!(event.time, Duration::from_micros(micros));
            prop_assert_eq!(event.device, DeviceNumber { major, minor });
            prop_assert_eq!(event.offset, sector * SECTOR_BYTES);
            prop_assert_eq!(event.bytes, u64::from(sectors) * SECTOR_BYTES);
        }
    }
}
