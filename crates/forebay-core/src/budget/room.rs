//! A bound on what is unfinished in the disk, in whatever it is counted.

use crate::DiskTime;
use crate::sync::{Ordering, Tally};

/// Counts what has entered and not left.
#[derive(Debug)]
pub(crate) struct Room {
    used: Tally,
}

impl Room {
    /// An empty room; `sole` if a single shard uses it.
    pub(crate) fn new(sole: bool) -> Self {
        Self { used: Tally::new(sole) }
    }

    pub(crate) fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// Enters while less than `limit` is used, overshooting it by this one at
    /// most; returns what was used before.
    pub(crate) fn enter(&self, limit: u64, amount: u64) -> Option<u64> {
        self.used.update(|used| (used < limit).then(|| used.wrapping_add(amount)))
    }

    /// Enters whatever is used; returns what was used before.
    pub(crate) fn enter_anyway(&self, amount: u64) -> u64 {
        self.used.fetch_add(amount, Ordering::AcqRel)
    }

    /// An atomic read-modify-write with AcqRel: see [`Room::open_after_mark`].
    pub(crate) fn leave(&self, amount: u64) {
        let before = self.used.fetch_sub(amount, Ordering::AcqRel);
        debug_assert!(before >= amount, "what leaves has entered: {amount} of {before}");
    }

    /// Whether one more may enter, asked by a queue that has just left a mark
    /// and would otherwise sleep. This is a read-modify-write on the number
    /// that `leave` changes: either it comes later and sees the room, or
    /// `leave` comes later and its caller sees the mark.
    pub(super) fn open_after_mark(&self, limit: u64) -> bool {
        self.used.fetch_add(0, Ordering::AcqRel) < limit
    }

    /// The part of `limit` that is free, scaled to `whole`, where `uncounted` of
    /// what is used does not count. Rounded up: it is zero only where nothing more enters.
    pub(super) fn part_free(&self, limit: u64, uncounted: u64, whole: DiskTime) -> DiskTime {
        let free = limit.saturating_sub(self.used().saturating_sub(uncounted));
        let scaled = u128::from(whole.units()) * u128::from(free);
        let scaled = scaled.div_ceil(u128::from(limit.max(1)));
        DiskTime::from_units(u64::try_from(scaled).unwrap_or(u64::MAX))
    }
}
