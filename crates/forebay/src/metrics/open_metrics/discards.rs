//! Metrics of deleters and their backlogs.

use super::metric::{Metric, seconds};
use crate::metrics::Discards;

pub(super) const DISCARD_COUNTERS: &[Metric<Discards, u64>] = &[
    ("files", "Files that were deleted", |discards| discards.files),
    ("unlinked_files", "Of these, files unlinked at once, without pacing", |discards| {
        discards.unlinked
    }),
    ("errors", "Files that could not be deleted", |discards| discards.errors),
    ("bytes", "Bytes that were freed in steps", |discards| discards.bytes),
    ("commands", "Extents that were freed in steps", |discards| discards.commands),
    ("steps", "Steps, each with a flush", |discards| discards.steps),
];

pub(super) const DISCARD_GAUGES: &[Metric<Discards, f64>] = &[
    ("backlog_files", "Files that wait to be freed", |discards| discards.backlog_files as f64),
    (
        "backlog_bytes",
        "Bytes that wait to be freed; healthy below half of the ceiling, above which the rate and \
         the shares rise",
        |discards| discards.backlog_bytes as f64,
    ),
    ("oldest_seconds", "Age of the oldest of them", |discards| seconds(discards.oldest_nanos)),
    ("rate", "Bytes per second of the last steps", |discards| discards.rate as f64),
    ("rate_limit", "The rate in force in bytes per second; 0 if there is none", |discards| {
        discards.rate_limit as f64
    }),
];
