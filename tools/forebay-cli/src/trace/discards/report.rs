//! What was counted, as JSON.

use forebay_trace::Summary;
use serde::Serialize;

/// What was counted.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub(super) version: u32,
    /// The disks; none for all.
    pub(super) devices: Vec<String>,
    #[serde(flatten)]
    pub(super) summary: Summary,
    /// Requests that are missing above.
    pub(super) lost_requests: u64,
    /// Lines of the kernel that were not understood.
    pub(super) unknown_lines: u64,
}
