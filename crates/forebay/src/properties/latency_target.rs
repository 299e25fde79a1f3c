//! Latency targets as people state them, and whether one asks for what no disk can do.

use std::time::Duration;

use forebay_core::{LatencyTarget, LatencyTargetError, Op};

/// A latency target of reads that is not above the latency of the idle disk.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the latency target {target} is not above the base latency of the disk, {base:?}: a read takes \
     that long in the idle disk; state a longer one, after `forebay explore DIR`, which shows what \
     the disk keeps under load"
)]
pub struct TargetBelowBase {
    /// The target.
    pub target: LatencyTarget,
    /// The base latency.
    pub base: Duration,
}

forebay_core::debug_as_display!(TargetBelowBase);

impl TargetBelowBase {
    /// Whether `target` is above `base`, the latency of a read in the idle disk.
    ///
    /// # Errors
    /// It is not.
    pub fn check(target: Option<LatencyTarget>, base: Option<Duration>) -> Result<(), Self> {
        let (Some(target), Some(base)) = (target, base) else { return Ok(()) };
        let is_below = target.latency().is_some_and(|latency| latency <= base);
        if target.op() == Op::Read && is_below { Err(Self { target, base }) } else { Ok(()) }
    }
}

/// Reads a latency target, such as `p95=1ms`, `writes:p99.9=5ms` or `disk:p95=1ms`, or `off` for none.
///
/// # Errors
/// It is neither: what was expected.
pub fn parse_latency_target(text: &str) -> Result<Option<LatencyTarget>, String> {
    if text == "off" {
        return Ok(None);
    }
    let wrong = |error: LatencyTargetError| format!("{error}; `off` is for none");
    text.parse().map(Some).map_err(wrong)
}
