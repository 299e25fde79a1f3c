//! What a queue remembers of its turns.

use crate::{DiskTime, Time};

/// Whether turns come late. A turn ends when nothing more goes.
#[derive(Debug, Default)]
pub(super) struct Lateness {
    /// Whether this turn is late.
    pub(super) late: bool,
    /// When a turn was last seen to be.
    pub(super) seen_at: Option<Time>,
    /// By how much it has overdrawn the budget in this turn.
    pub(super) overdrawn: DiskTime,
    /// Disk time of what came back since the last turn, and of the latest, which
    /// may have come back just now.
    pub(super) taken_back: DiskTime,
    pub(super) latest: DiskTime,
    /// Whether the last turn left anything in the disk.
    pub(super) left_in_disk: bool,
    /// When the last turn meant to look again, if only time was to open the budget.
    pub(super) meant_at: Option<Time>,
    /// The longest time in nanoseconds for which the thread was away lately, and when it last was:
    /// the disk had done all that it had sent.
    pub(super) away: Option<(u64, Time)>,
    /// Disk time that passed in vain before this turn, while work waited here for
    /// the thread: the pace makes up for it.
    pub(super) missed_pace_credit: DiskTime,
}

impl Lateness {
    /// A request of this cost has come back.
    pub(super) fn take_back(&mut self, cost: DiskTime) {
        self.taken_back = self.taken_back.plus(cost);
        self.latest = cost;
    }

    /// Ends the turn. `meant_at` is when the next one is to be, if only time opens
    /// the budget.
    pub(super) fn end_turn(&mut self, left_in_disk: bool, meant_at: Option<Time>) {
        let Self { seen_at, away, .. } = *self;
        *self = Self { seen_at, away, left_in_disk, meant_at, ..Self::default() };
    }

    pub(super) fn is_late(&self) -> bool {
        self.late
    }
}
