//! The units: every value that can be written is read, and nothing else.

use std::time::Duration;

use forebay_config::{ByteSize, Quantity, Span, parse};
use proptest::prelude::*;
use serde::Deserialize;

#[derive(Debug, PartialEq, Deserialize)]
struct Units {
    size: ByteSize,
    span: Span,
    rate: Quantity,
}

#[test]
fn yaml_integers_floats_and_strings_are_read_alike() {
    let expected = Units { size: ByteSize(4096), span: Span(Duration::ZERO), rate: Quantity(1536) };
    for text in [
        "{size: 4096, span: 0, rate: 1536}",
        "{size: '4096', span: '0', rate: '1536'}",
        "{size: 4kB, span: 0ns, rate: 1.5k}",
        "{size: 4 KiB, span: 0s, rate: 1535.5}",
        "{size: 0x1000, span: 0ms, rate: 1.536e3}",
    ] {
        assert_eq!(parse("f", text), Ok(Units { ..expected }), "{text}");
    }
}

#[test]
fn sizes_and_quantities_take_every_suffix_of_seastar_and_no_other() {
    for (letters, shift) in [("", 0), ("kK", 10), ("M", 20), ("G", 30), ("T", 40)] {
        let letters: Vec<String> = letters.chars().map(String::from).collect();
        let suffixes = match letters.is_empty() {
            true => vec![String::new(), String::from("B")],
            false => letters
                .iter()
                .flat_map(|letter| ["", "i", "iB", "B"].map(|unit| format!("{letter}{unit}")))
                .collect(),
        };
        for suffix in suffixes {
            for text in [format!("545{suffix}"), format!("545 {suffix}")] {
                assert_eq!(text.parse(), Ok(ByteSize(545 << shift)), "{text}");
                assert_eq!(text.parse(), Ok(Quantity(545 << shift)), "{text}");
            }
        }
    }
    for suffix in ["b", "m", "g", "t", "i", "iB", "kb", "kib", "kBi", "BB", "P", "MB/s", "%"] {
        let text = format!("545{suffix}");
        assert!(text.parse::<ByteSize>().is_err(), "{text}");
        assert!(text.parse::<Quantity>().is_err(), "{text}");
    }
}

#[test]
fn a_size_with_a_fraction_says_what_to_write() {
    for (text, instead) in
        [("0.5MB", "512kB"), ("1.5GB", "1536MB"), ("2.0k", "2kB"), ("0.5", "1"), ("0.0001k", "0")]
    {
        let error = text.parse::<ByteSize>().unwrap_err().to_string();
        assert!(error.ends_with(&format!("; write {instead}")), "{text}: {error}");
    }
}

#[test]
fn sizes() {
    for (text, bytes) in [
        ("0", 0),
        ("7B", 7),
        ("3k", 3 << 10),
        ("3K", 3 << 10),
        ("3kB", 3 << 10),
        ("3KB", 3 << 10),
        ("3KiB", 3 << 10),
        ("3M", 3 << 20),
        ("3MB", 3 << 20),
        ("3MiB", 3 << 20),
        ("3G", 3 << 30),
        ("3GB", 3 << 30),
        ("3GiB", 3 << 30),
        ("18446744073709551615", u64::MAX),
        ("17179869183G", 17_179_869_183 << 30),
    ] {
        assert_eq!(text.parse(), Ok(ByteSize(bytes)), "{text}");
    }
    for text in ["", "kB", "-1", "1.5k", "1kb", "1t", "1 2", "0x10", "1e3", "\u{661}", "1..k"] {
        assert!(text.parse::<ByteSize>().is_err(), "{text}");
    }
    for text in ["18446744073709551616", "17179869184G", "99999999999999999999999999k"] {
        let error = text.parse::<ByteSize>().map_err(|error| error.to_string());
        let message = format!("found `{text}`; expected at most 18446744073709551615 bytes");
        assert_eq!(error, Err(message));
    }
}

#[test]
fn spans() {
    for (text, ns) in [
        ("0", 0),
        ("00", 0),
        ("1ns", 1),
        ("1us", 1_000),
        ("1 ms", 1_000_000),
        ("1s", 1_000_000_000),
        ("1m", 60_000_000_000),
        ("1h", 3_600_000_000_000),
        ("18446744073709551615ns", u64::MAX),
    ] {
        assert_eq!(text.parse(), Ok(Span(Duration::from_nanos(ns))), "{text}");
    }
    for text in ["", "5", "s", "-1s", "1.5s", "1sec", "1S", "1d", "18446744073709551616"] {
        let error = text.parse::<Span>().map_err(|error| error.to_string());
        assert!(error.is_err_and(|message| message.contains("one of the units")), "{text}");
    }
    for text in ["18446744073709551616ns", "18446744073710s", "5124096h"] {
        let error = text.parse::<Span>().map_err(|error| error.to_string());
        assert!(error.is_err_and(|message| message.contains("expected at most")), "{text}");
    }
}

#[test]
fn quantities() {
    for (text, count) in [
        ("0", 0),
        ("1", 1),
        ("1k", 1 << 10),
        ("1M", 1 << 20),
        ("1G", 1 << 30),
        ("1T", 1 << 40),
        ("0.5k", 512),
        ("2.5", 3),
        ("2.49", 2),
        ("0.00048828125k", 1),
        ("0.00048828124k", 0),
        ("0.999999999999999999999999999", 1),
        ("16777215.999999999999T", u64::MAX),
        ("18446744073709551615", u64::MAX),
    ] {
        assert_eq!(text.parse(), Ok(Quantity(count)), "{text}");
    }
    for text in ["", "k", ".5", "5.", "1.5.2", "1m", "1kb", "-1", "1,5", "1e3", "1 /s"] {
        assert!(text.parse::<Quantity>().is_err(), "{text}");
    }
    for text in ["18446744073709551616", "16777216T", "18446744073709551615.5"] {
        let error = text.parse::<Quantity>().map_err(|error| error.to_string());
        let message = format!("found `{text}`; expected at most 18446744073709551615");
        assert_eq!(error, Err(message));
    }
}

proptest! {
    #[test]
    fn plain_numbers_mean_themselves(number: u64) {
        let text = number.to_string();
        prop_assert_eq!(text.parse(), Ok(ByteSize(number)));
        prop_assert_eq!(text.parse(), Ok(Quantity(number)));
        prop_assert_eq!(format!("{text}ns").parse(), Ok(Span(Duration::from_nanos(number))));
        prop_assert_eq!(parse("f", &text), Ok(ByteSize(number)));
        prop_assert_eq!(parse("f", &text), Ok(Quantity(number)));
    }

    #[test]
    fn arbitrary_text_never_panics(text in "[0-9]{0,30}[.]?[0-9]{0,30}\\PC{0,4}") {
        let _ = text.parse::<ByteSize>();
        let _ = text.parse::<Quantity>();
        let _ = text.parse::<Span>();
    }
}
