//! What other shards hold in the disk and do not attend to.

use crate::{DiskTime, Time};

/// What others hold unattended, as this shard has seen it last.
#[derive(Clone, Copy, Debug)]
pub(super) struct StalePeerInflight {
    pub(super) held: DiskTime,
    /// When the next shard will not have attended for long.
    pub(super) grows_at: Time,
    /// When to look again.
    pub(super) look_at: Time,
}

impl StalePeerInflight {
    pub(super) const UNKNOWN: Self =
        Self { held: DiskTime::ZERO, grows_at: Time::MAX, look_at: Time::ZERO };
}
