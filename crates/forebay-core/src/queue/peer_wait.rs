//! The other shards for which this one waits, and those that it wakes for freed room.
//!
//! Shards that are behind go first, unless the disk would idle. What others hold in the disk without
//! polling is stale: the disk has done most of it long ago, but the completions have not been taken.
//!
//! Decision: `docs/decisions/0019-coalesced-wake-ups.md`.

use crate::published::ANSWER_PART;
use crate::shard_set::{ShardId, WakeList};
use crate::{DiskTime, Time};

/// In groups of more shards than this, one shard checks on behalf of all what others hold in the disk
/// without polling. At 8 shards that each check for themselves, a request costs about one check.
const CROWD_ABOVE: u64 = 8;
/// A queue for which another one checks also checks itself after this multiple of the time that it has
/// waited. The other shard may be late.
const RECHECK_FACTOR: u64 = 3;
/// The least number of ticks before such a check. Any shard that polls takes over the check of a late
/// one. With 1 tick a request costs 3.6 wake-ups where 16 shards share a small window, and with 4 ticks
/// 2.9. With 8, shards of equal shares are more than four requests apart.
const RECHECK_TICKS: u64 = 4;

/// The wait of a shard for another one while the budget is open.
#[derive(Clone, Copy, Debug)]
struct Wait {
    since: Time,
    until: Time,
    /// The counter of spent budget when the wait began.
    spent: u64,
    /// The shard that is waited for, and the disk time that it had dispatched in all when the wait
    /// began, in units.
    other: ShardId,
    dispatched: u64,
}

impl Wait {
    /// Whether this is a wait for `other`, which has used some of the budget since the wait began, but
    /// less than `enough`. `dispatched` is the disk time that it has dispatched in all, in units.
    fn has_used_less(&self, other: ShardId, dispatched: u64, enough: DiskTime) -> bool {
        let since = dispatched.wrapping_sub(self.dispatched);
        self.other == other && since > 0 && since < enough.units()
    }
}

/// The published state of the shard that is waited for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lagging {
    pub(super) shard: ShardId,
    /// Disk time that it has dispatched in all, in units.
    pub(super) dispatched: u64,
    /// When it polled last, and whether it was late then.
    pub(super) polled_at: Time,
    pub(super) is_late: bool,
    /// The time by which it has promised to poll.
    pub(super) polls_by: Time,
}

/// What other shards hold in the disk without polling, as this shard has last seen it.
#[derive(Clone, Copy, Debug)]
struct StalePeerInflight {
    held: DiskTime,
    /// When `held` grows, unless a shard polls before.
    grows_at: Time,
    /// When to check again.
    refresh_at: Time,
}

/// The waits of a shard for others.
#[derive(Debug)]
pub(super) struct PeerWait {
    /// The wait for another shard on an open budget, if there is one.
    wait: Option<Wait>,
    /// The shard behind that was woken last, and the counter of spent budget then.
    woken_for: Option<(u64, ShardId)>,
    stale: StalePeerInflight,
    /// When this shard checks what others hold, for all shards that wait for room.
    planned_refresh: Time,
    /// Since when its requests have found the window full, without a dispatch or a fresh request in
    /// between.
    full_since: Option<Time>,
}

impl PeerWait {
    pub(super) const NONE: Self = Self {
        wait: None,
        woken_for: None,
        stale: StalePeerInflight {
            held: DiskTime::ZERO,
            grows_at: Time::MAX,
            refresh_at: Time::ZERO,
        },
        planned_refresh: Time::ZERO,
        full_since: None,
    };

    /// Ends the wait for another shard.
    #[inline]
    pub(super) fn end(&mut self) {
        self.wait = None;
    }

    /// Until when this shard waits for one that is behind while the budget is open: for one tick. The
    /// tick begins when the budget was found open, at `open_since`, if nothing has been taken since. It
    /// begins at the promise of the other shard, if that is later. A promise later than `now` counts as
    /// `now`, because that shard is woken then. A late shard is waited for until half a tick after its
    /// last poll.
    ///
    /// If that shard has taken less than `enough` since an earlier wait for it began, the end stays the
    /// same. Otherwise a shard that asks for little would be waited for again after every small
    /// request.
    pub(super) fn until(
        &mut self,
        now: Time,
        other: Lagging,
        (enough, spent): (DiskTime, u64),
        (open_since, tick_nanos): (Time, u64),
    ) -> Time {
        let Lagging { shard, dispatched, is_late, polled_at, polls_by } = other;
        let since = match self.wait {
            Some(wait) if wait.spent == spent => wait.since,
            Some(wait) if wait.has_used_less(shard, dispatched, enough) => return wait.until,
            _ => open_since,
        };
        let until = match is_late {
            true => since.max(polled_at.plus_nanos(tick_nanos / ANSWER_PART)),
            false => since.max(polls_by.min(now)).plus_nanos(tick_nanos),
        };
        self.wait = Some(Wait { since, until, spent, other: shard, dispatched });
        until
    }

    /// Since when this shard has waited.
    pub(super) fn since(&self) -> Option<Time> {
        self.wait.map(|wait| wait.since)
    }

    /// Whether to wake a shard that is behind: once for each value of `spent`. Otherwise two shards
    /// that wait for each other would wake each other until the wait ends.
    pub(super) fn wakes(&mut self, shard: ShardId, spent: u64) -> bool {
        let woken = Some((spent, shard));
        let again = self.woken_for == woken;
        self.woken_for = woken;
        !again
    }

    /// Whether it is time to check what others hold without polling.
    pub(super) fn is_refresh_due(&self, now: Time) -> bool {
        now >= self.stale.refresh_at
    }

    /// Makes the next check due at once.
    pub(super) fn refresh_at_once(&mut self) {
        self.stale.refresh_at = Time::ZERO;
    }

    /// Stores that others hold `held` without polling, and more from `grows_at` on. The more shards
    /// there are, the less often each checks: `stagger_nanos` later.
    pub(super) fn refresh(
        &mut self,
        now: Time,
        (held, grows_at): (DiskTime, Time),
        (stagger_nanos, tick_nanos): (u64, u64),
    ) {
        let turns_at = now.plus_nanos(stagger_nanos);
        let grows_at = grows_at.max(turns_at);
        let refresh_at = grows_at.min(turns_at.plus_nanos(tick_nanos));
        self.stale = StalePeerInflight { held, grows_at, refresh_at };
    }

    /// The disk time held by late shards that the window does not count, because the disk has done it.
    pub(super) fn uncounted(&self) -> DiskTime {
        self.stale.held
    }

    /// When a queue that finds the window full checks again what others hold. Among many shards, one
    /// checks in time, as `plan` decides, and wakes those that are behind. The longer the others have
    /// waited, the later they check, in case that shard is late.
    pub(super) fn next_refresh(
        &mut self,
        now: Time,
        (shards, tick_nanos): (u64, u64),
        plan: impl FnOnce(Time, Time) -> Option<Time>,
    ) -> Time {
        let grows_at = self.stale.grows_at.max(now);
        if shards <= CROWD_ABOVE {
            return grows_at;
        }
        // on whole ticks, so that shards do not replace each other's plans by slightly earlier ones
        let ticks = grows_at.as_nanos().div_ceil(tick_nanos.max(1));
        let grows_at = Time::from_nanos(ticks.saturating_mul(tick_nanos));
        if let Some(at) = plan(grows_at, self.planned_refresh) {
            self.planned_refresh = at;
            return at;
        }
        let waited = now.nanos_since(*self.full_since.get_or_insert(now));
        let least = tick_nanos.saturating_mul(RECHECK_TICKS);
        let rests = waited.saturating_mul(RECHECK_FACTOR).max(least);
        grows_at.max(now.plus_nanos(rests))
    }

    /// Records a dispatch or a fresh request: none of them has found the window full.
    #[inline]
    pub(super) fn is_not_full(&mut self) {
        self.full_since = None;
    }
}

/// Wake-ups of other shards.
#[derive(Debug, Default)]
pub(super) struct Wakeups {
    /// The shards that the owner is to wake.
    pub(super) list: WakeList,
    /// When this queue last freed room, if no shard was woken for that yet.
    room_freed_at: Option<Time>,
    /// The number of its requests in the disk when it last passed on room.
    in_disk_before: u32,
    /// Whether the others know that a nested request waits for its turn here, and that a limit holds
    /// one back.
    nested_reported: (bool, bool),
}

impl Wakeups {
    /// Records freed room. Requests of this queue may use it, so others are woken after its turn.
    pub(super) fn room_freed(&mut self, now: Time) {
        self.room_freed_at = Some(now);
    }

    /// When room was freed, if no shard was woken for that yet.
    pub(super) fn room_freed_at(&self) -> Option<Time> {
        self.room_freed_at
    }

    /// Whether there is no shard to wake, which is true nearly always.
    #[inline]
    pub(super) fn none(&self) -> bool {
        self.room_freed_at.is_none() && self.list.is_empty()
    }

    /// How many fewer requests are in the disk than when this queue last passed on room.
    pub(super) fn take_freed(&mut self, in_disk: u32) -> usize {
        self.room_freed_at = None;
        let before = core::mem::replace(&mut self.in_disk_before, in_disk);
        before.saturating_sub(in_disk) as usize
    }

    /// Whether it has changed that a nested request waits here, or that a limit holds one back.
    pub(super) fn is_news(&mut self, waits: bool, is_throttled: bool) -> bool {
        let reported = core::mem::replace(&mut self.nested_reported, (waits, is_throttled));
        reported != (waits, is_throttled)
    }
}
