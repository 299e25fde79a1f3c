//! Taming discard latency spikes: XFS, `-o discard` and an i3.2xlarge.

pub(crate) mod deletes;
pub(crate) mod tables;

/// What they were published in.
pub(crate) const SOURCE: &str =
    "Patryk Wróbel (ScyllaDB), Taming Discard Latency Spikes, P99 CONF (2024)";
