//! A look at a disk that others use too.

use serde::{Deserialize, Serialize};

use crate::phase::Work;

/// What a disk has done for all that use it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Counted {
    /// Until this many seconds after the target was made.
    pub at: f64,
    /// Reads and writes.
    pub operations: u64,
    /// Bytes read and written.
    pub bytes: u64,
}

/// A look at a disk: small requests at random places, as many as it does.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Look {
    /// Reads or writes.
    pub work: Work,
    /// When it began.
    pub before: Counted,
    /// When it ended.
    pub after: Counted,
    /// Bytes written by it.
    pub bytes_written: u64,
}

impl Look {
    /// How long it took.
    pub(crate) fn seconds(&self) -> f64 {
        (self.after.at - self.before.at).max(f64::MIN_POSITIVE)
    }

    /// Operations, of others too.
    pub(crate) fn operations(&self) -> u64 {
        self.after.operations.saturating_sub(self.before.operations)
    }

    /// Operations per second.
    pub(crate) fn rate(&self) -> f64 {
        self.operations() as f64 / self.seconds()
    }

    /// Bytes per second.
    pub(crate) fn bandwidth(&self) -> f64 {
        self.after.bytes.saturating_sub(self.before.bytes) as f64 / self.seconds()
    }
}
