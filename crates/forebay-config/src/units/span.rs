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
}

impl FromStr for Span {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let (number, unit) = split_number(text);
        let number = whole(number).map_err(|()| Self::malformed(text))?;
        let unit_ns: u64 = match unit {
            "" if number == Some(0) => 1,
            "ns" => 1,
            "us" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" => 60 * 1_000_000_000,
            "h" => 3_600 * 1_000_000_000,
            _ => return Err(Self::malformed(text)),
        };
        number
            .and_then(|number| number.checked_mul(unit_ns))
            .map(|ns| Self(Duration::from_nanos(ns)))
            .ok_or_else(|| Self::too_large(text, "18446744073709551615 ns (584 years)"))
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserialize(deserializer)
    }
}
