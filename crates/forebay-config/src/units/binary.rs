//! Numbers with a suffix that is a power of 1024: the one parser of sizes, counts and rates.

use super::{Unit, UnitError, split_number};

/// The most fraction digits that are looked at; a 10^-19 of the largest suffix is nothing.
const FRACTION_DIGITS_MAX: usize = 18;

/// A decimal number times a power of 1024, as it is written.
pub(super) struct Binary<'a> {
    text: &'a str,
    whole: &'a str,
    /// The digits behind the point; none where there is no point.
    fraction: Option<&'a str>,
    shift: u32,
}

impl<'a> Binary<'a> {
    /// Splits `text` into its parts; `U` gives the words of errors.
    pub(super) fn parse<U: Unit>(text: &'a str) -> Result<Self, UnitError> {
        let malformed = || U::malformed(text);
        let (number, suffix) = split_number(text);
        let shift = shift(suffix).ok_or_else(malformed)?;
        let (whole, fraction) = match number.split_once('.') {
            Some((whole, fraction)) => (whole, Some(fraction)),
            None => (number, None),
        };
        let is_digits = |digits: &str| !digits.is_empty() && !digits.contains('.');
        if !is_digits(whole) || !fraction.is_none_or(is_digits) {
            return Err(malformed());
        }
        Ok(Self { text, whole, fraction, shift })
    }

    /// Whether a point is in it.
    pub(super) const fn has_fraction(&self) -> bool {
        self.fraction.is_some()
    }

    /// The number, rounded to the nearest whole one, halves up.
    pub(super) fn rounded<U: Unit>(&self) -> Result<u64, UnitError> {
        let fraction = scaled_fraction(self.fraction.unwrap_or("0"), self.shift);
        let whole = self.whole.parse::<u64>().ok();
        whole
            .and_then(|whole| whole.checked_mul(1 << self.shift)?.checked_add(fraction?))
            .ok_or_else(|| U::too_large(self.text))
    }
}

/// The power of two that `suffix` stands for: `k`, `K`, `M`, `G` or `T`, each alone or with `i`,
/// `iB` or `B` behind it, or `B` alone.
fn shift(suffix: &str) -> Option<u32> {
    let letters = suffix.strip_suffix('B').unwrap_or(suffix);
    let letter = match letters.strip_suffix('i') {
        Some("") => return None,
        Some(letter) => letter,
        None => letters,
    };
    match letter {
        "" => Some(0),
        "k" | "K" => Some(10),
        "M" => Some(20),
        "G" => Some(30),
        "T" => Some(40),
        _ => None,
    }
}

/// `0.digits * 2^shift`, rounded to the nearest whole number, halves up.
fn scaled_fraction(digits: &str, shift: u32) -> Option<u64> {
    let digits = digits.get(..digits.len().min(FRACTION_DIGITS_MAX))?;
    let denominator = 10_u128.pow(u32::try_from(digits.len()).ok()?);
    let numerator = digits.parse::<u128>().ok()? << shift;
    u64::try_from((2 * numerator + denominator) / (2 * denominator)).ok()
}
