//! A line of a trace: a request at a block device.

use std::time::Duration;

use forebay_block::DeviceNumber;

/// What the kernel counts sectors in, whatever those of the disk are.
const SECTOR_BYTES: u64 = 512;

/// Where in the kernel a request was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tracepoint {
    /// A request goes to the driver of its disk, after it was split and merged.
    RequestIssue,
    /// A file system or another device hands a request over. All that devices without requests
    /// have, such as zram.
    BioQueue,
}

impl Tracepoint {
    /// Its name below `events/block`.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::RequestIssue => "block_rq_issue",
            Self::BioQueue => "block_bio_queue",
        }
    }

    /// What stands before the fields. No name of a process is long enough to hold it.
    const fn mark(self) -> &'static str {
        match self {
            Self::RequestIssue => ": block_rq_issue: ",
            Self::BioQueue => ": block_bio_queue: ",
        }
    }
}

/// A request as one of the tracepoints shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockEvent {
    /// When, by the clock of the trace.
    pub time: Duration,
    /// Where in the kernel.
    pub tracepoint: Tracepoint,
    /// The disk.
    pub device: DeviceNumber,
    /// Whether it is a discard; secure erasure is one too.
    pub is_discard: bool,
    /// Where it begins, in bytes.
    pub offset: u64,
    /// How long it is, in bytes.
    pub bytes: u64,
}

impl BlockEvent {
    /// Reads a line of `trace` or `trace_pipe`; nothing where it is none of these events, whatever
    /// else it may be.
    ///
    /// Such lines are `COMM-PID [CPU] FLAGS SECONDS: block_rq_issue: MAJOR,MINOR OPERATION BYTES
    /// (COMMAND) SECTOR + SECTORS ... [COMM]`, and the same without bytes and command where bios
    /// are seen.
    pub fn parse(line: &str) -> Option<Self> {
        let find = |point: Tracepoint| Some((point, line.split_once(point.mark())?));
        let (tracepoint, (before, fields)) =
            find(Tracepoint::RequestIssue).or_else(|| find(Tracepoint::BioQueue))?;
        let time = seconds(before.rsplit(' ').next()?)?;
        let (device, fields) = fields.split_once(' ')?;
        let (major, minor) = device.split_once(',')?;
        let device = DeviceNumber { major: major.parse().ok()?, minor: minor.parse().ok()? };
        let (operation, fields) = fields.split_once(' ')?;
        let place = match tracepoint {
            Tracepoint::RequestIssue => fields.split_once(") ")?.1,
            Tracepoint::BioQueue => fields,
        };
        let mut place = place.split(' ');
        let sector: u64 = place.next()?.parse().ok()?;
        if place.next()? != "+" {
            return None;
        }
        let sectors: u64 = place.next()?.parse().ok()?;
        Some(Self {
            time,
            tracepoint,
            device,
            is_discard: operation.contains('D'),
            offset: sector.checked_mul(SECTOR_BYTES)?,
            bytes: sectors.checked_mul(SECTOR_BYTES)?,
        })
    }
}

/// Reads `724.568866`: seconds and up to nine digits of a fraction.
fn seconds(text: &str) -> Option<Duration> {
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
        assert_eq!((event.offset, event.bytes, event.is_discard), (1 << 20, 64 << 20, true));
        let bio =
            "      a b: c-19663   [001] d..1.   724.5: block_bio_queue: 259,12 WS 8 + 16 [a b]";
        let event = BlockEvent::parse(bio).unwrap();
        assert_eq!(event.device, DeviceNumber { major: 259, minor: 12 });
        assert_eq!((event.offset, event.bytes, event.is_discard), (4096, 8192, false));
    }

    #[test]
    fn kernels_that_know_no_priorities_are_read_too() {
        let line = "fstrim-7 [000] 1.000001: block_rq_issue: 8,0 D 4096 () 0 + 8 [fstrim]";
        assert_eq!(BlockEvent::parse(line).unwrap().bytes, 4096);
    }

    #[test]
    fn what_is_no_event_is_left_out() {
        for line in [
            "",
            "# tracer: nop",
            "CPU:1 [LOST 123 EVENTS]",
            "x-1 [000] 1.0: block_rq_complete: 8,0 D () 0 + 8 [0]",
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
        fn what_the_kernel_prints_is_read_back(
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
