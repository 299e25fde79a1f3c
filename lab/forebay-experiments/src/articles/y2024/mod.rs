//! Taming discard latency spikes: XFS, `-o discard` and an i3.2xlarge.

pub(crate) mod deletes;
pub(crate) mod tables;

/// The disk of all tables.
pub(crate) const DISK: &str =
    "the drive of an i3.2xlarge under XFS, fitted to the first and the last row of each table";
/// What they were published in.
pub(crate) const SOURCE: &str =
    "Patryk Wróbel (ScyllaDB), Taming Discard Latency Spikes, P99 CONF (2024)";
