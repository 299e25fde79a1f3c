//! The option `--latency-target`.

use std::str::FromStr;

use forebay::properties::parse_latency_target;
use forebay_core::LatencyTarget;

/// What was asked for; none is `off`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TargetOption(pub(crate) Option<LatencyTarget>);

impl FromStr for TargetOption {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        parse_latency_target(text).map(Self)
    }
}
