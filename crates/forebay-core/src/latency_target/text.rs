//! Latency targets as people write them: `p95=1ms`, `writes:p99.9=5ms`, `disk:p95=1ms`.

use core::fmt;
use core::str::FromStr;
use core::time::Duration;

use super::{LatencyTarget, LatencyTargetError};
use crate::{Op, saturating_nanos};

/// Most digits behind the point of a number. Nine digits of a second are nanoseconds, the unit in
/// which latencies are kept.
const FRACTION_DIGITS_MAX: usize = 9;

impl FromStr for LatencyTarget {
    type Err = LatencyTargetError;

    fn from_str(text: &str) -> Result<Self, LatencyTargetError> {
        let syntax = LatencyTargetError::Syntax;
        let (in_disk, rest) = match text.strip_prefix("disk:") {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (op, rest) = match rest.split_once(':') {
            None => (Op::Read, rest),
            Some(("reads", rest)) => (Op::Read, rest),
            Some(("writes", rest)) => (Op::Write, rest),
            Some(_) => return Err(syntax),
        };
        let (percentile, time) = rest.split_once('=').ok_or(syntax)?;
        let permille = percentile.strip_prefix('p').and_then(|number| scaled(number, 10));
        let permille = permille.ok_or(syntax)?.ok_or(LatencyTargetError::Percentile)?;
        let permille = u32::try_from(permille).map_err(|_| LatencyTargetError::Percentile)?;
        let end = time.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(time.len());
        let (number, unit) = time.split_at(end);
        let nanos = match unit {
            "ns" => 1,
            "us" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            "" if scaled(number, 1) == Some(Some(0)) => 1,
            _ => return Err(syntax),
        };
        let nanos = scaled(number, nanos).ok_or(syntax)?.ok_or(LatencyTargetError::Latency)?;
        let target = Self::new(op, permille, Duration::from_nanos(nanos))?;
        Ok(Self { in_disk, ..target })
    }
}

impl fmt::Display for LatencyTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.in_disk {
            f.write_str("disk:")?;
        }
        if self.op == Op::Write {
            f.write_str("writes:")?;
        }
        write!(f, "p{}", self.permille / 10)?;
        if !self.permille.is_multiple_of(10) {
            write!(f, ".{}", self.permille % 10)?;
        }
        f.write_str("=")?;
        write_time(f, saturating_nanos(self.latency))
    }
}

/// A time in the unit that people read it in, exactly.
fn write_time(f: &mut fmt::Formatter<'_>, nanos: u64) -> fmt::Result {
    let units = [("s", 9), ("ms", 6), ("us", 3), ("ns", 0)];
    let fits = |&(_, digits): &(&str, u32)| nanos >= 10_u64.pow(digits);
    let (unit, digits) = units.into_iter().find(fits).unwrap_or(("ns", 0));
    let scale = 10_u64.pow(digits);
    write!(f, "{}", nanos / scale)?;
    let (mut fraction, mut width) = (nanos % scale, digits as usize);
    if fraction > 0 {
        while fraction.is_multiple_of(10) {
            (fraction, width) = (fraction / 10, width - 1);
        }
        write!(f, ".{fraction:0width$}")?;
    }
    f.write_str(unit)
}

/// `number` times `scale` where that is whole; `None` if it is no number, and
/// none in that if it is not whole, or too large.
fn scaled(number: &str, scale: u64) -> Option<Option<u64>> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(whole) || !is_number(fraction) || fraction.len() > FRACTION_DIGITS_MAX {
        return None;
    }
    let parts = 10_u64.pow(fraction.len() as u32);
    let value = || {
        let whole = whole.parse::<u64>().ok()?.checked_mul(scale)?;
        let fraction = fraction.parse::<u64>().ok()?.checked_mul(scale)?;
        let rest = fraction.is_multiple_of(parts).then_some(fraction / parts)?;
        whole.checked_add(rest)
    };
    Some(value())
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn targets_are_read_back_as_they_are_written() {
        for text in [
            "p95=1ms",
            "disk:p95=1ms",
            "disk:writes:p99=5ms",
            "p99.9=2ms",
            "p50=250ns",
            "p95=1.5ms",
            "p95=60s",
            "p95=1.000000001s",
            "p50=10.05us",
            "writes:p95=5ms",
        ] {
            assert_eq!(text.parse::<LatencyTarget>().unwrap().to_string(), text);
        }
        let of_reads = "reads:p95=1ms".parse::<LatencyTarget>();
        assert_eq!(of_reads, "p95=1ms".parse());
    }

    #[test]
    fn an_invalid_target_is_refused_with_an_example() {
        use LatencyTargetError::{Latency, Percentile, Syntax};
        for (wrong, texts) in [
            (Syntax, ["", "p95", "95=1ms", "p95=2goals", "flushes:p95=1ms", "p95=-1ms", "p=1ms"]),
            (
                Percentile,
                [
                    "p49=1ms",
                    "p100=1ms",
                    "p99.95=1ms",
                    "p0=1ms",
                    "p95.01=1s",
                    "p99999999999999999999=1ms",
                    "p49.9=1s",
                ],
            ),
            (
                Latency,
                [
                    "p95=2m",
                    "p95=61s",
                    "p95=0.5ns",
                    "p95=0",
                    "writes:p95=0us",
                    "p95=99999999999999999999s",
                    "p95=1.0001us",
                ],
            ),
        ] {
            for text in texts {
                assert_eq!(text.parse::<LatencyTarget>(), Err(wrong), "{text}");
            }
        }
    }

    #[test]
    fn a_target_fits_into_a_word() {
        for text in ["p99.9=60s", "disk:p95=1ms", "p50=1ns", "writes:p95=5ms"] {
            let target = Some(text.parse().unwrap());
            assert_eq!(LatencyTarget::from_word(LatencyTarget::to_word(target)), target);
        }
        assert_eq!(LatencyTarget::from_word(LatencyTarget::to_word(None)), None);
    }
}
