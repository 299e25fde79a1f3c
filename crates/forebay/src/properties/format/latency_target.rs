//! The latency target of a disk.

use std::time::Duration;

use forebay_config::{ConfigError, Located, Source};
use forebay_core::LatencyTarget;

use crate::properties::{TargetBelowBase, parse_latency_target};

/// Checks the target for a disk with this base latency.
pub(super) fn check(
    source: Source<'_>,
    stated: Option<&Located<String>>,
    base: Option<Duration>,
) -> Result<Option<LatencyTarget>, ConfigError> {
    let Some(Located { value, at }) = stated else { return Ok(None) };
    let target = parse_latency_target(value)
        .map_err(|error| source.error(*at, format!("found `{}`; {error}", value.escape_debug())))?;
    let checked = TargetBelowBase::check(target, base);
    checked.map_err(|error| source.error(*at, error.to_string()))?;
    Ok(target)
}
