//! Why nothing goes, and until when.

use crate::shard_id::ShardId;
use crate::{Blocked, DiskTime, Time};

/// Why nothing goes, and when to look again without being told.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stop {
    pub(super) reason: Blocked,
    pub(super) resume_at: Option<Time>,
}

impl Stop {
    /// When to look again, if only time is waited for.
    pub(super) fn waits_for_time(&self) -> Option<Time> {
        match self.reason {
            Blocked::Pace | Blocked::PaceDiskIdle | Blocked::FairnessLead => self.resume_at,
            Blocked::Empty | Blocked::Window | Blocked::ClassLimit => None,
        }
    }
}

/// A shard's wait for another on an open budget.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wait {
    pub(super) since: Time,
    pub(super) until: Time,
    /// What was spent of the budget when it began.
    pub(super) spent: u64,
    /// Who is waited for, and the disk time that it had dispatched in all then.
    pub(super) other: ShardId,
    pub(super) dispatched: u64,
}

impl Wait {
    /// Whether it is a wait for `other`, which has `dispatched` so much in all
    /// now, and has used something since the wait began but less than `enough`.
    pub(super) fn has_used_less(&self, other: ShardId, dispatched: u64, enough: DiskTime) -> bool {
        let meanwhile = dispatched.wrapping_sub(self.dispatched);
        self.other == other && meanwhile > 0 && meanwhile < enough.units()
    }
}
