//! Parsing of latency targets, and the check that a disk can meet one.

use std::time::Duration;

use forebay_core::{LatencyTarget, LatencyTargetError, Op};

/// The error for a latency target of reads that is not above the latency of the idle disk.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the latency target {target} is not above the base latency of the disk, {base:?}: a read takes \
     that long in the idle disk; state a longer one, after `forebay explore DIR`, which shows what \
     the disk keeps under load"
)]
pub struct TargetBelowBase {
    /// The latency target.
    pub target: LatencyTarget,
    /// The base latency of the disk.
    pub base: Duration,
}

forebay_core::debug_as_display!(TargetBelowBase);

impl TargetBelowBase {
    /// Checks that `target` is above `base`, the latency of a read in the idle disk.
    ///
    /// # Errors
    /// The target is not above it.
    pub fn check(target: Option<LatencyTarget>, base: Option<Duration>) -> Result<(), Self> {
        let (Some(target), Some(base)) = (target, base) else { return Ok(()) };
        let is_below = target.latency() <= base;
        if target.op() == Op::Read && is_below { Err(Self { target, base }) } else { Ok(()) }
    }
}

/// Parses a latency target, such as `p95=1ms`, `writes:p99.9=5ms` or `disk:p95=1ms`, or `off` for
/// none. `p95=2goals`, which older versions wrote, means none too.
///
/// # Errors
/// The text is invalid. The error says what was expected.
pub fn parse_latency_target(text: &str) -> Result<Option<LatencyTarget>, String> {
    if text == "off" || is_of_goals(text) {
        return Ok(None);
    }
    let wrong = |error: LatencyTargetError| format!("{error}; `off` is for none");
    text.parse().map(Some).map_err(wrong)
}

/// Whether this is a percentile within two effective goals.
fn is_of_goals(text: &str) -> bool {
    let percentile = text.strip_suffix("=2goals");
    percentile
        .is_some_and(|percentile| format!("{percentile}=1ms").parse::<LatencyTarget>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_of_older_versions_are_none() {
        for text in ["off", "p95=2goals", "writes:p99.9=2goals", "reads:p50=2goals"] {
            assert_eq!(parse_latency_target(text), Ok(None), "{text}");
        }
        for text in ["2goals", "p95=3goals", "p30=2goals", "p95=2goals ", ""] {
            assert!(parse_latency_target(text).is_err(), "{text}");
        }
    }
}
