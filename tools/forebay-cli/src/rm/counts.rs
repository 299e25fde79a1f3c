//! What was deleted.

use std::collections::BTreeMap;

/// What was deleted, or would be.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) files: u64,
    pub(super) directories: u64,
    /// Bytes that were freed in steps.
    pub(super) freed: u64,
    pub(super) steps: u64,
    /// Files that were only unlinked, by the reason.
    pub(super) unlinked: BTreeMap<&'static str, u64>,
    /// Paths that were not deleted.
    pub(super) failed: u64,
}
