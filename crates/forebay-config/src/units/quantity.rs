//! Plain counts and rates, as io-properties files state them.

use std::str::FromStr;

use serde::{Deserialize, Deserializer};

use super::{Unit, UnitError, deserialize, split_number};

/// The most fraction digits that are looked at; a 10^-19 of the largest suffix is nothing.
const FRACTION_DIGITS_MAX: usize = 18;

/// A count or a rate in an io-properties file: operations per second, bytes per second, bytes.
///
/// A decimal number, alone or with one of the suffixes `k`, `M`, `G`, `T`. **The suffixes are
/// powers of 1024**, on operations too, as in Seastar: `read_iops: 100k` is 102,400. A fraction
/// that remains is rounded to the nearest whole number, halves up.
///
/// ```
/// use forebay_config::Quantity;
///
/// assert_eq!("218786".parse(), Ok(Quantity(218_786)));
/// assert_eq!("100k".parse(), Ok(Quantity(102_400)));
/// assert_eq!("1.5G".parse(), Ok(Quantity(3 << 29)));
/// assert!("100MB".parse::<Quantity>().is_err());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Quantity(
    /// The count, or the rate per second.
    pub u64,
);

impl Unit for Quantity {
    const EXPECTED: &'static str =
        "a number, alone or with k, M, G or T (powers of 1024), such as 150000 or 1.5G";
}

impl FromStr for Quantity {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let (number, suffix) = split_number(text);
        let shift = match suffix {
            "" => 0,
            "k" => 10,
            "M" => 20,
            "G" => 30,
            "T" => 40,
            _ => return Err(Self::malformed(text)),
        };
        let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
        if whole.is_empty() || fraction.is_empty() || fraction.contains('.') {
            return Err(Self::malformed(text));
        }
        let fraction = scaled_fraction(fraction, shift).ok_or_else(|| Self::malformed(text))?;
        whole
            .parse::<u64>()
            .ok()
            .and_then(|whole| whole.checked_mul(1 << shift)?.checked_add(fraction))
            .map(Self)
            .ok_or_else(|| Self::too_large(text, "18446744073709551615"))
    }
}

/// `0.digits * 2^shift`, rounded to the nearest whole number, halves up.
fn scaled_fraction(digits: &str, shift: u32) -> Option<u64> {
    let digits = digits.get(..digits.len().min(FRACTION_DIGITS_MAX))?;
    let denominator = 10_u128.pow(u32::try_from(digits.len()).ok()?);
    let numerator = digits.parse::<u128>().ok()? << shift;
    u64::try_from((2 * numerator + denominator) / (2 * denominator)).ok()
}

impl<'de> Deserialize<'de> for Quantity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserialize(deserializer)
    }
}
