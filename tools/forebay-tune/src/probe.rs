//! Short measurements of a disk that other programs use too.

use serde::{Deserialize, Serialize};

use crate::phase::Work;

/// The counters of a disk, over all programs that use it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DiskCounters {
    /// When they were read, in seconds since the target was made.
    pub at: f64,
    /// The number of reads and writes.
    pub operations: u64,
    /// The number of bytes read and written.
    pub bytes: u64,
}

/// A short measurement of a disk: small requests at random offsets, as many as it does.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CreditProbe {
    /// Whether it reads or writes.
    pub work: Work,
    /// The counters when it began.
    pub before: DiskCounters,
    /// The counters when it ended.
    pub after: DiskCounters,
    /// The bytes that it wrote.
    pub bytes_written: u64,
}

impl CreditProbe {
    /// Its duration in seconds.
    pub(crate) fn seconds(&self) -> f64 {
        (self.after.at - self.before.at).max(f64::MIN_POSITIVE)
    }

    /// The operations in this time, including those of other programs.
    pub(crate) fn operations(&self) -> u64 {
        self.after.operations.saturating_sub(self.before.operations)
    }

    /// The operations per second, including those of other programs.
    pub(crate) fn rate(&self) -> f64 {
        self.operations() as f64 / self.seconds()
    }

    /// The bytes per second, including those of other programs.
    pub(crate) fn bandwidth(&self) -> f64 {
        self.after.bytes.saturating_sub(self.before.bytes) as f64 / self.seconds()
    }
}
