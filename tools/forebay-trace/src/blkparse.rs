//! Lines of text that `blkparse` and `btrace` print.

use std::str::SplitAsciiWhitespace;
use std::time::Duration;

use forebay_block::DeviceNumber;

use crate::block_event::{Action, BlockEvent, Direction, device_number, error, seconds};

/// What a line is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum BlkparseLine<'a> {
    /// An event that is read.
    Event(BlockEvent),
    /// Another event, by its action.
    OtherEvent(&'a str),
    /// It begins like an event and does not go on like one.
    Broken(&'static str),
    /// A summary line that says how many events were lost.
    Lost(u64),
    /// No event.
    Text,
}

/// What events look like, for people.
pub(crate) const EXPECTED: &str =
    "`MAJOR,MINOR CPU SEQUENCE SECONDS PID ACTION RWBS SECTOR + SECTORS [PROCESS]`";

/// Text may have as many words before an event: marks of a quotation, names of files.
const WORDS_BEFORE_MAX: usize = 8;

/// What text may be quoted with.
const QUOTES: [char; 2] = ['>', '|'];

/// All that `blkparse` prints by default.
const ACTIONS: [&str; 19] = [
    "A", "B", "C", "D", "F", "G", "I", "M", "P", "Q", "R", "S", "T", "U", "UT", "W", "X", "m", "?",
];

impl<'a> BlkparseLine<'a> {
    /// Reads a line in the default format. Device, processor and sequence number may be missing,
    /// as where text was shortened: then the device is 0:0. The kernel's `blk_classic` has no
    /// sequence number.
    pub(crate) fn parse(line: &'a str) -> Self {
        let line = line.trim_start_matches(|c: char| c.is_whitespace() || QUOTES.contains(&c));
        let mut words = line.split_ascii_whitespace();
        let Some(first) = words.next() else { return Self::Text };
        match (device_number(first), seconds(first)) {
            (Some(device), _) => Self::after_device(device, words),
            (None, Some(time)) => {
                // a format of the user's own may begin with the time too
                let is_event = words.clone().nth(1).is_none_or(|action| ACTIONS.contains(&action));
                let device = DeviceNumber { major: 0, minor: 0 };
                match is_event {
                    true => Self::with_pid(time, device, words),
                    false => Self::Text,
                }
            }
            (None, None) => match lost(line) {
                Some(lost) => Self::Lost(lost),
                None => Self::behind_text(words),
            },
        }
    }

    /// An event that other words stand before.
    fn behind_text(mut words: SplitAsciiWhitespace<'a>) -> Self {
        for _ in 1..WORDS_BEFORE_MAX {
            let Some(word) = words.next() else { break };
            let event = device_number(word).map(|device| Self::after_device(device, words.clone()));
            if let Some(event @ (Self::Event(_) | Self::OtherEvent(_))) = event {
                return event;
            }
        }
        Self::Text
    }

    fn after_device(device: DeviceNumber, mut words: SplitAsciiWhitespace<'a>) -> Self {
        let is_number = |word: &str| word.parse::<u64>().is_ok();
        if !words.next().is_some_and(is_number) {
            return Self::Broken("expected a processor and a sequence number after the device");
        }
        let time = match words.next() {
            Some(word) if is_number(word) => words.next().and_then(seconds),
            Some(word) if seconds(word).is_some() => seconds(word),
            _ => {
                return Self::Broken("expected a processor and a sequence number after the device");
            }
        };
        match time {
            Some(time) => Self::with_pid(time, device, words),
            None => Self::Broken("expected the time in seconds as the fourth word"),
        }
    }

    fn with_pid(time: Duration, device: DeviceNumber, mut words: SplitAsciiWhitespace<'a>) -> Self {
        match words.next() {
            Some(_pid) => Self::after_time(time, device, words),
            None => Self::Broken("expected a process and an action after the time"),
        }
    }

    /// An event from its action on.
    pub(crate) fn after_time(
        time: Duration,
        device: DeviceNumber,
        mut words: SplitAsciiWhitespace<'a>,
    ) -> Self {
        let Some(name) = words.next() else {
            return Self::Broken("expected a process and an action after the time");
        };
        let action = match name {
            "Q" => Action::Queue,
            "X" => Action::Split,
            "D" => Action::Issue,
            "C" => Action::Complete,
            "R" => Action::Requeue,
            _ => return Self::OtherEvent(name),
        };
        let Some(letters) = words.next() else {
            return Self::Broken("expected the letters of the kind after the action");
        };
        let rest: Vec<&str> = words.collect();
        let direction = Direction::of(letters);
        let error = rest.last().map_or(0, |last| error(last, action));
        let event =
            |offset, bytes| BlockEvent { time, action, device, direction, offset, bytes, error };
        // flushes have no place, and commands other than reads and writes have a packet
        let has_place = rest.first().is_some_and(|word| !word.starts_with(['[', '(']));
        if direction == Direction::Other || !has_place {
            return Self::without_data(name, event(0, 0));
        }
        match BlockEvent::place(&rest.join(" "), action) {
            Some((offset, bytes)) => Self::Event(event(offset, bytes)),
            None if action == Action::Split => {
                Self::Broken("expected SECTOR / SECTOR where a request is split")
            }
            // what is done without bytes, as a flush, and commands of this many bytes with a packet
            None if is_without_data(&rest) => Self::without_data(name, event(0, 0)),
            None => Self::Broken("expected SECTOR + SECTORS after the kind"),
        }
    }

    /// Of what moves no data, or moves it by a command of its own, it counts whether it fails.
    fn without_data(action: &'a str, event: BlockEvent) -> Self {
        match event.action {
            Action::Complete => Self::Event(event),
            _ => Self::OtherEvent(action),
        }
    }
}

/// A number, and then the error of what is done or the bytes of a command.
fn is_without_data(rest: &[&str]) -> bool {
    matches!(rest, [number, next, ..] if number.parse::<u64>().is_ok() && next.starts_with(['[', '(']))
}

/// How many events were lost, from `Skips: 2 forward (1,234 - 0.5%)` or `... (dropped 3) ...`.
fn lost(line: &str) -> Option<u64> {
    let text = line.trim();
    let number = match text.strip_prefix("Skips:") {
        Some(rest) => rest.split_once('(')?.1,
        None => text.split_once("(dropped ").filter(|_| text.starts_with("Total:"))?.1,
    };
    let digits = |c: &char| c.is_ascii_digit() || *c == ',';
    let number: String = number.chars().take_while(digits).filter(|&c| c != ',').collect();
    number.parse().ok().filter(|&lost| lost > 0)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;

    fn event(line: &str) -> BlockEvent {
        match BlkparseLine::parse(line) {
            BlkparseLine::Event(event) => event,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn events_are_read_from_lines_of_all_lengths() {
        let device = DeviceNumber { major: 9, minor: 127 };
        for line in [
            "  9,127  3     1821     4.187301542 18311  Q  WS 21057335224 + 256 [reactor-3]",
            "9,127 3 1821 4.187301542 18311 Q WS 21057335224 + 256 [a b: c]",
            "  9,127  3     1821     4.187301542 18311  Q  WS 21057335224 + 256 (     161) [x]",
        ] {
            let event = event(line);
            assert_eq!(event.time, Duration::new(4, 187_301_542));
            assert_eq!((event.action, event.direction), (Action::Queue, Direction::Write));
            assert_eq!((event.offset, event.bytes), (21_057_335_224 * 512, 256 * 512));
            assert_eq!(event.device, device);
        }
        let split = event("9,127 3 1822 4.1 18311 X WS 21057335224 / 21057335296 [reactor-3]");
        assert_eq!((split.action, split.range().end), (Action::Split, 0x9CE_3AE0_0000));
        let done = event("9,127 0 7 4.2 0 C WS 21057335224 + 72 [0]");
        assert_eq!((done.action, done.bytes), (Action::Complete, 72 * 512));
        let short = event("28.783049012 123 Q D 2098688 + 2048 [kworker/4:1H]");
        assert_eq!((short.direction, short.device.major), (Direction::Discard, 0));
    }

    #[test]
    fn other_events_are_known_as_such() {
        for (action, line) in [
            ("P", "  8,0    1        7     0.000011538   697  P   N [kjournald]"),
            ("U", "  8,0    1        9     0.000012930   697  U   N [kjournald] 2"),
            ("G", "  8,0    3       11     0.009507758   697  G  WS 223490 + 8 [kjournald]"),
            ("m", "  8,0    1        0     0.000013000     0  m   N cfq697S / alloced"),
            ("Q", "  8,0    1        2     0.000001829   697  Q FWS [kworker]"),
            ("D", "  8,0    1        2     0.000001829   697  D   N 36 (12 00 00) [hald]"),
            ("D", "  8,0 1 2     0.000001829   697  D   R 36 (12 01 00 00 24 00 ..) [udisksd]"),
            ("A", "  8,0    1        2     0.000001829   697  A   W 8 + 8 <- (8,1) 0"),
            ("UT", "  8,0    1        2     0.000001829   697 UT   N [swapper] 1"),
        ] {
            assert_eq!(BlkparseLine::parse(line), BlkparseLine::OtherEvent(action), "{line}");
        }
    }

    #[test]
    fn completions_have_an_error_also_of_flushes_and_commands() {
        for (line, bytes, error) in [
            ("8,0 1 2 0.000001829 0 C W 8 + 8 [0]", 4096, 0),
            ("8,0 1 2 0.000001829 0 C W 8 + 8 [-5]", 4096, 5),
            // blkparse prints 16 bits without a sign
            ("8,0 1 2 0.000001829 0 C W 8 + 8 [65531]", 4096, 5),
            ("8,0 1 2 0.000001829 0 C W 8 + 8 (  497000) [65426]", 4096, 110),
            ("8,0 1 2 0.000001829 0 C FN 0 [-5]", 0, 5),
            ("8,0 1 2 0.000001829 0 C WFS 575480512 [65531]", 0, 5),
            ("8,0 1 2 0.000001829 0 C R 36 (12 01 00 00 24 00 ..) [0]", 0, 0),
        ] {
            let event = event(line);
            assert_eq!((event.bytes, event.error), (bytes, error), "{line}");
        }
        // a process may be called anything
        assert_eq!(event("8,0 1 2 0.000001829 7 Q W 8 + 8 [-5]").error, 0);
    }

    #[test]
    fn split_points_are_known_without_their_upper_bits() {
        let split = |sector: u64, point: u64| {
            let line = format!("9,127 3 1822 4.1 18311 X WS {sector} / {point} [x]");
            match BlkparseLine::parse(&line) {
                BlkparseLine::Event(event) => Some(event.range()),
                BlkparseLine::Broken(_) => None,
                other => panic!("{line}: {other:?}"),
            }
        };
        let bits = 1_u64 << 32;
        for (sector, point) in [
            (21_057_335_224, 21_057_335_296),
            (bits - 8, bits + 64),
            (bits / 2 - 8, bits / 2 + 64),
            (5 * bits, 5 * bits + 64),
            (9, 72),
        ] {
            for printed in [point, point % bits] {
                assert_eq!(split(sector, printed), Some(sector * 512..point * 512));
            }
        }
        // no request is so long
        for (sector, point) in [(640, 512), (512, 512), (0, 1 << 23), (5 * bits, 5 * bits)] {
            assert_eq!(split(sector, point % bits), None, "{sector}");
        }
    }

    #[test]
    fn events_are_found_behind_marks_and_names() {
        let line = "9,127 3 1821 4.187301542 18311 Q WS 21057335224 + 256 [reactor-3]";
        for before in ["> ", ">", ">> ", "> > ", "| ", "trace.txt: ", "trace.txt-12- ", "a b c "] {
            assert_eq!(event(&format!("{before}{line}")), event(line), "{before}");
        }
        let classic = "  9,127  3     4.187301542 18311  Q  WS 21057335224 + 256 [reactor-3]";
        assert_eq!(event(classic), event(line));
        for text in [
            "On 8,0 they wrote: hello",
            "205791.409875000 R 390439208 4096",
            "205791.409875000, 1234, fio, C, 390439208, 8, 4096",
        ] {
            assert_eq!(BlkparseLine::parse(text), BlkparseLine::Text, "{text}");
        }
    }

    #[test]
    fn sums_say_what_was_lost() {
        for (line, expected) in [
            ("Skips: 0 forward (0 -   0.0%)", BlkparseLine::Text),
            ("Skips: 2 forward (1,234 -   0.5%)", BlkparseLine::Lost(1234)),
            ("  Total:            12 events (dropped 3),       1 KiB data", BlkparseLine::Lost(3)),
            ("CPU0 (sda):", BlkparseLine::Text),
            (
                " Reads Queued:           0,        0KiB\t Writes Queued:      10",
                BlkparseLine::Text,
            ),
            ("Events (sda): 123 entries", BlkparseLine::Text),
        ] {
            assert_eq!(BlkparseLine::parse(line), expected, "{line}");
        }
    }

    #[test]
    fn a_line_that_only_begins_like_an_event_is_broken() {
        for line in [
            "8,0 1 x 0.000001829 697 Q W 8 + 8 [x]",
            "8,0 1 2 1829 697 Q W 8 + 8 [x]",
            "8,0 1 2 0.000001829 697",
            "8,0 1 2 0.000001829 697 Q",
            "8,0 1 2 0.000001829 697 Q W 8 - 8 [x]",
            "8,0 1 2 0.000001829 697 Q W 0x8 + 8 [x]",
            "8,0 1 2 0.000001829 697 X W 8 + 8 [x]",
            "8,0 1 2 0.000001829 697 C W 99999999999999999999 + 8 [x]",
        ] {
            let found = BlkparseLine::parse(line);
            assert!(matches!(found, BlkparseLine::Broken(_)), "{line}: {found:?}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_as_something(text in "\\PC*", cut in 0_usize..60) {
            let _ = BlkparseLine::parse(&text);
            let line = "8,0 1 2 0.000001829 697 Q W 8 + 8 [x]";
            let _ = BlkparseLine::parse(&format!("{}{text}", &line[..cut.min(line.len())]));
        }
    }
}
