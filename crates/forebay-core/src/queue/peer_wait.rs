//! For which other shards this one waits, and until when; and which it wakes for room that it has
//! freed.
//!
//! Shards that are behind go first, unless the disk would idle for it. What others hold in the disk
//! without polling for it is stale: most of it has long been done, and waits to be noticed.
//!
//! Decision: `docs/decisions/0019-coalesced-wake-ups.md`.

use crate::published::ANSWER_PART;
use crate::shard_set::{ShardId, WakeList};
use crate::{DiskTime, Time};

/// In groups of more shards than this, one looks for all what others hold in the disk without polling.
/// At 8 a request costs about one look where each shard looks for itself.
const CROWD_ABOVE: u64 = 8;
/// A queue for which another one looks does so too, after this multiple of the time for which it has
/// waited, in case that one is late.
const RECHECK_FACTOR: u64 = 3;
/// It waits at least this number of ticks for that: any shard that polls takes over what the late one had
/// planned. With 1 there are 3.6 wake-ups per request where 16 shards share a small window, with this 2.9.
/// With 8 shards of equal shares are further apart than four requests.
const RECHECK_TICKS: u64 = 4;

/// A shard's wait for another on an open budget.
#[derive(Clone, Copy, Debug)]
struct Wait {
    since: Time,
    until: Time,
    /// What was spent of the budget when it began.
    spent: u64,
    /// The shard that is waited for, and the disk time that it had dispatched in all then.
    other: ShardId,
    dispatched: u64,
}

impl Wait {
    /// Whether it is a wait for `other`, which has `dispatched` this much in all now, and has used
    /// something since the wait began but less than `enough`.
    fn has_used_less(&self, other: ShardId, dispatched: u64, enough: DiskTime) -> bool {
        let since = dispatched.wrapping_sub(self.dispatched);
        self.other == other && since > 0 && since < enough.units()
    }
}

/// The shard that is waited for, as the group sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lagging {
    pub(super) shard: ShardId,
    /// Disk time that it has dispatched in all, in units.
    pub(super) dispatched: u64,
    /// When it polled last, and whether it was late then.
    pub(super) polled_at: Time,
    pub(super) is_late: bool,
    /// When it has promised to poll.
    pub(super) polls_by: Time,
}

/// What other shards hold in the disk without polling for it, as this shard has seen it last.
#[derive(Clone, Copy, Debug)]
struct StalePeerInflight {
    held: DiskTime,
    /// When the next shard will not have polled for long.
    grows_at: Time,
    /// When to look again.
    refresh_at: Time,
}

/// For whom this shard waits.
#[derive(Debug)]
pub(super) struct PeerWait {
    /// Since when it has waited for another shard on an open budget, and what of it was spent then.
    wait: Option<Wait>,
    /// The shard that it woke last since that is behind, and what was spent then.
    woken_for: Option<(u64, ShardId)>,
    stale: StalePeerInflight,
    /// When it looks what others hold, for all shards that wait for room.
    planned_refresh: Time,
    /// Since when its next request, or a fresh one, has found the window full.
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

    /// The shard waits for no other any more.
    #[inline]
    pub(super) fn end(&mut self) {
        self.wait = None;
    }

    /// Until when this shard waits for one that is behind, while the budget is open: for a tick. The
    /// tick begins when the budget was found open, at `open_since`, with nothing taken of it since, or
    /// when the other shard has promised to poll if that is later. A promise beyond `now` counts as
    /// `now`, since that shard is woken then. A late shard is waited for until half a tick after it
    /// polled.
    ///
    /// If that shard was waited for before and has taken less than `enough` since, the end stays as it
    /// was. Otherwise a shard that asks for little would be waited for again after each little that it
    /// takes.
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

    /// Since when it has waited.
    pub(super) fn since(&self) -> Option<Time> {
        self.wait.map(|wait| wait.since)
    }

    /// Whether a shard that is behind is to be woken: once for what has been spent. Otherwise two that
    /// wait for each other would wake each other until the time is over.
    pub(super) fn wakes(&mut self, shard: ShardId, spent: u64) -> bool {
        let woken = Some((spent, shard));
        let again = self.woken_for == woken;
        self.woken_for = woken;
        !again
    }

    /// Whether it is time to look what others hold without polling.
    pub(super) fn is_refresh_due(&self, now: Time) -> bool {
        now >= self.stale.refresh_at
    }

    /// The next question is answered by a new look.
    pub(super) fn refresh_at_once(&mut self) {
        self.stale.refresh_at = Time::ZERO;
    }

    /// Others hold this much without polling, and more from `grows_at` on. Many shards look the less
    /// often: `stagger_nanos` later.
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

    /// How much of what late shards hold does not count in the window: the disk has done it.
    pub(super) fn uncounted(&self) -> DiskTime {
        self.stale.held
    }

    /// When a queue that finds the window full looks again what others hold. Of many shards one looks in
    /// time, as `plan` decides, and wakes those that are behind. The others look the less often the
    /// longer they have waited, in case that one is late.
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

    /// A request went, or a fresh one has come: none has found the window full.
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
