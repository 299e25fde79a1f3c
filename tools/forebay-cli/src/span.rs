//! Lengths of time on the command line.

use std::time::Duration;

/// Reads a length of time such as `10s` or `0.75ms`.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    let expected = "expected a number with one of the units ns, us, ms, s, m, h, such as 10s";
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let number: f64 = number.parse().map_err(|_| expected)?;
    let unit_seconds = match unit {
        "" if number == 0.0 => 0.0,
        "ns" => 1e-9,
        "us" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return Err(expected.into()),
    };
    Duration::try_from_secs_f64(number * unit_seconds)
        .ok()
        .filter(|&length| length <= LENGTH_MAX)
        .ok_or_else(|| String::from("expected at most 1000h"))
}

/// Reads a length of time that is not zero.
pub(crate) fn parse_positive(text: &str) -> Result<Duration, String> {
    let length = parse(text)?;
    if length.is_zero() { Err("expected more than zero".into()) } else { Ok(length) }
}

/// Far from where the scheduler's clock ends.
const LENGTH_MAX: Duration = Duration::from_hours(1000);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_with_units_are_lengths_of_time() {
        for (text, nanos) in [
            ("10s", 10_000_000_000),
            ("0.75ms", 750_000),
            ("1.5m", 90_000_000_000),
            ("2h", 7_200_000_000_000),
            ("7us", 7_000),
            ("0ns", 0),
            ("0", 0),
        ] {
            assert_eq!(parse(text).map(|length| length.as_nanos()), Ok(nanos), "{text}");
        }
    }

    #[test]
    fn anything_else_is_not() {
        for text in ["", "10", "s", "-1s", "1.2.3s", "1 s", "1e3s", "infs", "1001h", "1d"] {
            assert!(parse(text).is_err(), "{text}");
        }
        assert!(parse_positive("0s").is_err());
    }
}
