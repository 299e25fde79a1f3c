//! Whole numbers on the command line.

use std::ops::RangeInclusive;

/// Reads a whole number in `range`; the error for other values states the range.
pub(crate) fn within<T: TryFrom<u64>>(
    range: RangeInclusive<u64>,
) -> impl Fn(&str) -> Result<T, String> + Clone {
    move |text| {
        let number = text.parse().ok().filter(|number| range.contains(number));
        number.and_then(|number| T::try_from(number).ok()).ok_or_else(|| {
            format!("expected a whole number from {} to {}", range.start(), range.end())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_out_of_range_are_refused_with_the_range() {
        let shards = within::<u32>(1..=256);
        assert_eq!(["1", "256"].map(&shards), [Ok(1), Ok(256)]);
        for wrong in ["", "0", "257", "x", "-1", "1.5", "99999999999999999999"] {
            assert_eq!(
                shards(wrong),
                Err("expected a whole number from 1 to 256".into()),
                "{wrong}"
            );
        }
        let seeds = within::<u64>(0..=u64::MAX);
        assert_eq!(seeds(&u64::MAX.to_string()), Ok(u64::MAX));
        assert_eq!(seeds("x"), Err(format!("expected a whole number from 0 to {}", u64::MAX)));
    }
}
