//! Which other shards are to be woken for room that this queue has freed.
//!
//! Decision: `docs/decisions/0019-coalesced-wake-ups.md`.

use crate::Time;
use crate::shard_set::WakeList;

/// Wake-ups of other shards.
#[derive(Debug, Default)]
pub(super) struct Wakeups {
    /// The shards that the owner is to wake.
    pub(super) list: WakeList,
    /// When this queue last freed room for which it has woken none yet.
    room_freed_at: Option<Time>,
    /// Requests in the disk when it last passed on room.
    in_disk_before: u32,
    /// Whether the others know that a nested request waits here, for its turn or for a limit.
    nested_reported: (bool, bool),
}

impl Wakeups {
    /// Room was freed. Requests of this queue may use it themselves, so others are woken after its turn.
    pub(super) fn room_freed(&mut self, now: Time) {
        self.room_freed_at = Some(now);
    }

    /// When room was freed for which none was woken yet.
    pub(super) fn room_freed_at(&self) -> Option<Time> {
        self.room_freed_at
    }

    /// Whether there is nobody to wake. True nearly always.
    #[inline]
    pub(super) fn none(&self) -> bool {
        self.room_freed_at.is_none() && self.list.is_empty()
    }

    /// By how many requests there are less in the disk than when this queue passed on room before.
    pub(super) fn take_freed(&mut self, in_disk: u32) -> usize {
        self.room_freed_at = None;
        let before = core::mem::replace(&mut self.in_disk_before, in_disk);
        before.saturating_sub(in_disk) as usize
    }

    /// Whether it is news that a nested request waits here, or that a limit holds one back.
    pub(super) fn is_news(&mut self, waits: bool, is_throttled: bool) -> bool {
        let reported = core::mem::replace(&mut self.nested_reported, (waits, is_throttled));
        reported != (waits, is_throttled)
    }
}
