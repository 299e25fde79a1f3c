//! Where on its disk a group is.

use crate::head_run::HeadRun;
use crate::sync::{AtomicU64, Ordering};
use crate::{Op, Place, Time};

/// Encoding: The place of a request that says none.
pub(crate) const NOWHERE: u64 = 0;

/// Where the head of a group's disk is.
#[derive(Debug)]
pub(crate) struct Head {
    /// Where the last request ends that went.
    latest_end: AtomicU64,
    /// When the disk last got or finished one that goes on nowhere, in nanoseconds.
    random_at: AtomicU64,
    /// The flush in the disk that covers all finished writes, by its mark; or [`NOWHERE`].
    flush: AtomicU64,
    /// Which stream keeps it.
    pub(crate) run: HeadRun,
}

impl Head {
    pub(crate) fn new() -> Self {
        Self {
            latest_end: AtomicU64::new(NOWHERE),
            random_at: AtomicU64::new(0),
            flush: AtomicU64::new(NOWHERE),
            run: HeadRun::new(),
        }
    }

    pub(crate) fn is_at(&self, place: u64) -> bool {
        place != NOWHERE && self.latest_end.load(Ordering::Relaxed) == place
    }

    pub(crate) fn meets_random(&self, now: Time) {
        self.random_at.store(now.as_nanos(), Ordering::Relaxed);
    }

    pub(crate) fn random_at(&self) -> Time {
        Time::from_nanos(self.random_at.load(Ordering::Relaxed))
    }

    pub(crate) fn moves_to(&self, place: u64) {
        self.latest_end.store(place, Ordering::Relaxed);
    }

    /// Whether a flush is in the disk that covers all finished writes.
    pub(crate) fn flush_covers(&self) -> bool {
        self.flush.load(Ordering::Relaxed) != NOWHERE
    }

    /// A flush goes to the disk. It covers all finished writes unless an earlier one does.
    pub(crate) fn flush_begins(&self, mark: u64) {
        let _ = self.flush.compare_exchange(NOWHERE, mark, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// The flush is no longer in the disk, or not yet.
    pub(crate) fn flush_ends(&self, mark: u64) {
        let _ = self.flush.compare_exchange(mark, NOWHERE, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// A write has finished, so flushes in the disk do not cover all finished writes.
    pub(crate) fn write_ends(&self) {
        self.flush.store(NOWHERE, Ordering::Relaxed);
    }
}

/// A number for a place and what is done there, never [`NOWHERE`].
pub(crate) fn mark(op: Op, Place { file, offset }: Place) -> u64 {
    // splitmix64: what is next to each other must not be so in the table
    let mut mixed = file.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ offset ^ (op.index() as u64) << 62;
    for factor in [0xbf58_476d_1ce4_e5b9, 0x94d0_49bb_1331_11eb] {
        mixed = (mixed ^ mixed >> 30).wrapping_mul(factor);
    }
    (mixed ^ mixed >> 31).max(1)
}
