//! Latency targets, and their text: `p95=1ms`, `writes:p99.9=5ms`, `disk:p95=1ms`.

use core::fmt;
use core::str::FromStr;
use core::time::Duration;

use crate::{DiskTime, Op, saturating_nanos};

/// The lowest percentile of a target, in thousandths: the median. Lower ones are errors.
const PERMILLE_MIN: u32 = 500;
/// The highest percentile of a target, in thousandths: 99.9 %. A higher one below 100 % is no whole
/// number of thousandths.
const PERMILLE_MAX: u32 = 999;
/// The longest latency of a target (60 s). A longer one is an error.
const LATENCY_MAX: Duration = Duration::from_secs(60);
/// Encoding: The bits of a word for the thousandths; the nanoseconds are above them.
const PERMILLE_BITS: u32 = 10;
/// Encoding: The lowest bits of a word. They tell writes from reads, and times in the disk from
/// those since enqueueing.
const FLAG_BITS: u32 = 2;

/// A latency that a percentile of reads, or of writes, must not exceed.
///
/// The latency is from enqueueing to completion, or [in the disk](Self::in_disk). A target from enqueueing
/// leaves out a class whose requests mostly wait for each other: on a shard, more than seven of eight of the
/// latest 1,024. While the target is missed, the window shrinks in steps of a fifth until the target holds.
/// Then the window grows again. A target that holds at no window is suspended for a while.
///
/// Only [`Control::Adaptive`](crate::Control::Adaptive) enforces a target. Otherwise it is only measured
/// whether the target holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LatencyTarget {
    op: Op,
    permille: u32,
    latency: Duration,
    in_disk: bool,
}

/// Why a value is not a valid latency target.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum LatencyTargetError {
    /// Neither reads nor writes.
    Op,
    /// A percentile below 50 or above 99.9.
    Percentile,
    /// A latency of zero, or above a minute.
    Latency,
    /// Text that is not of the form `p95=1ms`.
    Syntax,
}

crate::error_text::debug_as_display!(LatencyTargetError);

impl fmt::Display for LatencyTargetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Op => "a latency target is for reads or for writes, not for other operations",
            Self::Percentile => "expected a percentile from 50 to 99.9 for a latency target",
            Self::Latency => {
                "expected a latency above zero, and of at most a minute, for a latency target"
            }
            Self::Syntax => {
                "expected a percentile of reads and a time, such as p95=1ms or p99.9=2ms, of \
                 writes, such as writes:p95=5ms, or in the disk, such as disk:p95=1ms"
            }
        })
    }
}

impl core::error::Error for LatencyTargetError {}

impl LatencyTarget {
    /// At least `permille` of 1000 requests (500 to 999), all reads or all writes, take at most `latency`
    /// (above zero, up to a minute) from enqueueing to completion.
    ///
    /// # Errors
    /// The operation is neither, or a figure is out of range.
    pub const fn new(op: Op, permille: u32, latency: Duration) -> Result<Self, LatencyTargetError> {
        match op {
            _ if !matches!(op, Op::Read | Op::Write) => Err(LatencyTargetError::Op),
            _ if permille < PERMILLE_MIN || permille > PERMILLE_MAX => {
                Err(LatencyTargetError::Percentile)
            }
            _ if latency.is_zero() || latency.as_nanos() > LATENCY_MAX.as_nanos() => {
                Err(LatencyTargetError::Latency)
            }
            _ => Ok(Self { op, permille, latency, in_disk: false }),
        }
    }

    /// The same latency as a time in the disk, from dispatch to completion.
    #[must_use]
    pub const fn in_disk(self) -> Self {
        Self { in_disk: true, ..self }
    }

    /// Whether the latency is a time in the disk, and not from enqueueing to completion.
    pub const fn is_in_disk(&self) -> bool {
        self.in_disk
    }

    /// Reads or writes.
    pub const fn op(&self) -> Op {
        self.op
    }

    /// How many of 1000 requests must be within the latency.
    pub const fn permille(&self) -> u32 {
        self.permille
    }

    /// The latency.
    pub const fn latency(&self) -> Duration {
        self.latency
    }

    /// The target as one word; zero for none.
    pub(crate) fn to_word(target: Option<Self>) -> u64 {
        target.map_or(0, |Self { op, permille, latency, in_disk }| {
            let nanos = saturating_nanos(latency);
            let flags = u64::from(in_disk) << 1 | u64::from(op == Op::Write);
            nanos << (PERMILLE_BITS + FLAG_BITS) | u64::from(permille) << FLAG_BITS | flags
        })
    }

    /// The reverse of [`LatencyTarget::to_word`].
    #[inline]
    pub(crate) fn from_word(word: u64) -> Option<Self> {
        let permille = (word >> FLAG_BITS) as u32 & ((1 << PERMILLE_BITS) - 1);
        let nanos = word >> (PERMILLE_BITS + FLAG_BITS);
        (permille > 0).then(|| Self {
            op: if word & 1 == 0 { Op::Read } else { Op::Write },
            permille,
            latency: Duration::from_nanos(nanos),
            in_disk: word & 2 != 0,
        })
    }
}

/// The status of a [`LatencyTarget`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LatencyTargetStatus {
    /// The target in force.
    pub target: LatencyTarget,
    /// Whether the target held in the last period. True if no request was measured in it.
    pub holds: bool,
    /// Whether its latency is at most that of the idle disk, so that no window keeps it.
    pub below_base: bool,
    /// Whether it may be kept: it is not below the latency of the idle disk, and the search for a window that
    /// keeps it has not given up.
    pub attainable: bool,
    /// The window in force: the most disk time in flight when another request is dispatched, by the costs of
    /// the model.
    pub window: DiskTime,
}

/// Most digits after the decimal point of a number. Nine digits of a second are nanoseconds, the unit in
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

/// Writes a time exactly, in the largest unit of which it has at least one.
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

/// `number` times `scale`. `None` if `number` is no number; `Some(None)` if the product is not whole, or too
/// large.
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
    use super::*;
    use alloc::string::ToString;

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
