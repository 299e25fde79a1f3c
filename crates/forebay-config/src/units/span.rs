//! Lengths of time.

use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Deserializer};

use super::{Unit, UnitError, deserialize, split_number, whole};

/// A length of time: a whole number with a unit, or a plain `0`.
///
/// The units are `ns`, `us`, `ms`, `s`, `m` (minutes) and `h`. A number other than 0 without a
/// unit is an error, for a reader cannot know what it means. The longest is 2^64 - 1 ns, some
/// 584 years.
///
/// ```
/// use std::time::Duration;
/// use forebay_config::Span;
///
/// assert_eq!("500us".parse(), Ok(Span(Duration::from_micros(500))));
/// assert_eq!("2m".parse(), Ok(Span(Duration::from_secs(120))));
/// assert_eq!("0".parse(), Ok(Span(Duration::ZERO)));
/// assert!("500".parse::<Span>().is_err());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(
    /// The length of time.
    pub Duration,
);

impl Unit for Span {
    const EXPECTED: &'static str =
        "a whole number with one of the units ns, us, ms, s, m, h, such as 500us";
    const MAX: &'static str = "18446744073709551615 ns (584 years)";
}

impl FromStr for Span {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let (number, unit) = split_number(text);
        let number_text = number;
        let number = whole(number);
        let unit_ns: u64 = match unit {
            "" if number == Ok(Some(0)) => 1,
            "ns" => 1,
            "us" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" => 60 * 1_000_000_000,
            "h" => 3_600 * 1_000_000_000,
            _ => return Err(Self::malformed(text)),
        };
        let number = number.map_err(|()| {
            let malformed = Self::malformed(text);
            let part = number_text.parse::<f64>().ok().filter(|part| part.is_finite());
            match part {
                Some(part) => malformed.or_write(&in_words((part * unit_ns as f64).round() as u64)),
                None => malformed,
            }
        })?;
        number
            .and_then(|number| number.checked_mul(unit_ns))
            .map(|ns| Self(Duration::from_nanos(ns)))
            .ok_or_else(|| Self::too_large(text))
    }
}

/// The time as a whole number of the largest unit, up to seconds, that divides it.
fn in_words(ns: u64) -> String {
    let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")];
    let unit = units.into_iter().find(|(unit, _)| ns > 0 && ns.is_multiple_of(*unit));
    let (unit, name) = unit.unwrap_or((1, "ns"));
    format!("{}{name}", ns / unit)
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserialize(deserializer)
    }
}
