//! The flushes between the writes of a file.

use std::num::NonZeroU64;

/// Counts the completed writes of a file towards its next flush.
///
/// The fiber whose write makes a flush due sends it, and writes no more until it is done; the
/// other fibers write on. At most one flush is in flight.
#[derive(Clone, Debug)]
pub(super) struct FlushCounter {
    every: NonZeroU64,
    writes_since: u64,
    in_flight: bool,
}

impl FlushCounter {
    /// A flush after `every` completed writes.
    pub(super) fn new(every: NonZeroU64) -> Self {
        Self { every, writes_since: 0, in_flight: false }
    }

    /// A write has succeeded.
    pub(super) fn written(&mut self) {
        self.writes_since = self.writes_since.saturating_add(1);
    }

    /// The flush has completed.
    pub(super) fn flushed(&mut self) {
        self.in_flight = false;
    }

    /// Whether a flush is due; if so it is now in flight.
    pub(super) fn take(&mut self) -> bool {
        let due = !self.in_flight && self.writes_since >= self.every.get();
        if due {
            self.in_flight = true;
            self.writes_since = 0;
        }
        due
    }
}
