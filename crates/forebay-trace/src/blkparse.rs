//! Lines of text that `blkparse` and `btrace` print.

use forebay_block::DeviceNumber;

use crate::block_event::{Action, BlockEvent, Direction, device_number, seconds};

/// What a line is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum BlkparseLine {
    /// An event that is looked at.
    Event(BlockEvent),
    /// Another event.
    OtherEvent,
    /// It begins like an event, and goes on as none does.
    Broken(&'static str),
    /// Of the sums below the events: so many events were lost.
    Lost(u64),
    /// No event.
    Text,
}

/// What events look like, for people.
pub(crate) const EXPECTED: &str =
    "`MAJOR,MINOR CPU SEQUENCE SECONDS PID ACTION RWBS SECTOR + SECTORS [PROCESS]`";

impl BlkparseLine {
    /// Reads a line in the default format. Device, processor and sequence number may be missing,
    /// as where text was shortened: then the device is 0:0.
    pub(crate) fn parse(line: &str) -> Self {
        let mut words = line.split_ascii_whitespace();
        let Some(first) = words.next() else { return Self::Text };
        let (device, time) = match (device_number(first), seconds(first)) {
            (Some(device), _) => {
                let is_number = |word: Option<&str>| word.is_some_and(|w| w.parse::<u64>().is_ok());
                if !is_number(words.next()) || !is_number(words.next()) {
                    return Self::Broken("after the device stand a processor and a number");
                }
                let Some(time) = words.next().and_then(seconds) else {
                    return Self::Broken("the fourth word is the time in seconds");
                };
                (device, time)
            }
            (None, Some(time)) => (DeviceNumber { major: 0, minor: 0 }, time),
            (None, None) => return lost(line).map_or(Self::Text, Self::Lost),
        };
        let (Some(_pid), Some(action)) = (words.next(), words.next()) else {
            return Self::Broken("a process and an action follow the time");
        };
        let action = match action {
            "Q" => Action::Queue,
            "X" => Action::Split,
            "D" => Action::Issue,
            "C" => Action::Complete,
            _ => return Self::OtherEvent,
        };
        let Some(letters) = words.next() else {
            return Self::Broken("the letters of its kind follow the action");
        };
        let rest: Vec<&str> = words.take(3).collect();
        // flushes have no place, and commands other than reads and writes a packet
        let direction = Direction::of(letters);
        let has_place = rest.first().is_some_and(|word| !word.starts_with(['[', '(']));
        if direction == Direction::Other || !has_place {
            return Self::OtherEvent;
        }
        match BlockEvent::place(&rest.join(" "), action) {
            Some((offset, bytes)) => {
                Self::Event(BlockEvent { time, action, device, direction, offset, bytes })
            }
            None if action == Action::Split => {
                Self::Broken("where a request is split stands SECTOR / SECTOR")
            }
            // what is done without bytes, as a flush, and commands of so many bytes with a packet
            None if is_without_data(&rest) => Self::OtherEvent,
            None => Self::Broken("after the kind stands SECTOR + SECTORS"),
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
        for line in [
            "  8,0    1        7     0.000011538   697  P   N [kjournald]",
            "  8,0    1        9     0.000012930   697  U   N [kjournald] 2",
            "  8,0    3       11     0.009507758   697  G  WS 223490 + 8 [kjournald]",
            "  8,0    1        0     0.000013000     0  m   N cfq697S / alloced",
            "  8,0    1        2     0.000001829   697  Q FWS [kworker]",
            "  8,0    1        2     0.000001829   697  C  FN 0 [0]",
            "  8,0    1        2     0.000001829   697  D   N 36 (12 00 00) [hald]",
            "  8,0    1        2     0.000001829   697  C WFS 575480512 [0]",
            "  8,0    1        2     0.000001829   697  D   R 36 (12 01 00 00 24 00 ..) [udisksd]",
            "  8,0    1        2     0.000001829   697  A   W 8 + 8 <- (8,1) 0",
            "  8,0    1        2     0.000001829   697 UT   N [swapper] 1",
        ] {
            assert_eq!(BlkparseLine::parse(line), BlkparseLine::OtherEvent, "{line}");
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
    fn what_begins_like_an_event_and_is_none_is_broken() {
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
