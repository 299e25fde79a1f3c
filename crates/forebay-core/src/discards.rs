//! How many discards are in the disk, and which shard's is next.
//!
//! A disk gives its time to a discard while reads wait behind it, and nothing that was sent is taken
//! back: so few are there at once, whatever they cost. Where several shards have some, they take
//! turns: the one that has waited for longest is next, unless it has stopped to look.
//!
//! Decision: `docs/decisions/0027-discards.md`.

use alloc::boxed::Box;

use crate::budget::Room;
use crate::shard_id::ShardId;
use crate::sync::{AtomicU64, Padded, get, set};
use crate::{Policy, Time};

/// Most discards of an [`IoGroup`](crate::IoGroup) in the disk at once, unless its policy is
/// [`Policy::Unlimited`]. With two, the disk finds the next one when it is done with one; a third
/// would only wait in the disk, where reads wait behind it.
pub const DISCARDS_MAX: u32 = 2;
/// Time after which a shard that waits for a discard looks again if no other wakes it, in
/// nanoseconds (1 ms). A shorter time costs more turns; a longer one delays a discard whose wake-up
/// did not come.
pub(crate) const RETRY_NANOS: u64 = 1_000_000;
/// Where no discard has gone for this time, one more goes, in nanoseconds (1 s). Those in the disk
/// may be of a shard that does not look whether they are done. A shorter time would send more to a
/// disk that is slow to discard.
const STUCK_NANOS: u64 = 1_000_000_000;
/// A shard that has not looked for this time does not wait for a discard any more, in nanoseconds
/// (50 ms), which are 50 looks. After a shorter time a thread that was away loses its turn; after a
/// longer one others wait for a thread that is gone.
const WAITER_TIMEOUT_NANOS: u64 = 50_000_000;

/// The discards of a group.
#[derive(Debug)]
pub(crate) struct Discards {
    in_disk: Padded<Room>,
    max: u64,
    /// When the latest went.
    entered_at: AtomicU64,
    /// By shard.
    waits: Box<[Wait]>,
}

/// What a shard says of its wait, as numbers of nanoseconds.
#[derive(Debug)]
struct Wait {
    /// Since when it has waited; zero if it does not.
    since: AtomicU64,
    looked_at: AtomicU64,
}

impl Discards {
    pub(crate) fn new(policy: &Policy, shards_max: usize, sole: bool) -> Self {
        let unlimited = matches!(policy, Policy::Unlimited);
        let wait = |_| Wait { since: AtomicU64::new(0), looked_at: AtomicU64::new(0) };
        Self {
            in_disk: Padded(Room::new(sole)),
            max: if unlimited { u64::MAX } else { u64::from(DISCARDS_MAX) },
            entered_at: AtomicU64::new(0),
            waits: (0..shards_max).map(wait).collect(),
        }
    }

    /// How many are in the disk.
    pub(crate) fn in_disk(&self) -> u64 {
        self.in_disk.0.used()
    }

    /// Takes a place if there is one that no other shard has waited for longer. If not, this one
    /// waits from now on, if it did not before.
    pub(crate) fn enter(&self, shard: ShardId, now: Time) -> bool {
        let Some(wait) = self.waits.get(shard.index()) else { return false };
        let since = get(&wait.since);
        let before = if since == 0 { u64::MAX } else { since };
        let turns = self.older(shard, before, now).count() as u64;
        if self.in_disk.0.enter(self.max.saturating_sub(turns), 1).is_some()
            || (turns == 0 && self.enter_if_stuck(now))
        {
            set(&self.entered_at, now.as_nanos());
            return true;
        }
        if since == 0 {
            set(&wait.since, now.as_nanos().max(1));
        }
        set(&wait.looked_at, now.as_nanos());
        false
    }

    /// Takes a place if none has gone for long.
    fn enter_if_stuck(&self, now: Time) -> bool {
        let is_stuck = now.as_nanos().saturating_sub(get(&self.entered_at)) >= STUCK_NANOS;
        if is_stuck {
            self.enter_anyway();
        }
        is_stuck
    }

    /// Takes a place however many are taken.
    pub(crate) fn enter_anyway(&self) {
        self.in_disk.0.enter_anyway(1);
    }

    /// Gives a place back: one discard less is in the disk.
    pub(crate) fn leave(&self) {
        self.in_disk.0.leave(1);
    }

    /// What the shard waited for has gone, or the shard itself.
    pub(crate) fn stop_waiting(&self, shard: ShardId) {
        if let Some(wait) = self.waits.get(shard.index()) {
            set(&wait.since, 0);
        }
    }

    /// The shard alongside `shard` that has waited for longest.
    pub(crate) fn next(&self, shard: ShardId, now: Time) -> Option<ShardId> {
        self.older(shard, u64::MAX, now).min().map(|(_, other)| ShardId(other as u16))
    }

    /// Since when others than `shard` have waited that began earlier, and which they are.
    fn older(
        &self,
        shard: ShardId,
        before: u64,
        now: Time,
    ) -> impl Iterator<Item = (u64, usize)> + '_ {
        let this = (before, shard.index());
        self.waits.iter().enumerate().filter_map(move |(other, wait)| {
            let since = get(&wait.since);
            let looks = now.as_nanos().saturating_sub(get(&wait.looked_at)) < WAITER_TIMEOUT_NANOS;
            let is_before = since != 0 && looks && (since, other) < this;
            (is_before && other != this.1).then_some((since, other))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHARDS: usize = 4;

    fn discards() -> Discards {
        Discards::new(&Policy::pace_window(), SHARDS, false)
    }

    fn enters(discards: &Discards, shard: u16, nanos: u64) -> bool {
        discards.enter(ShardId(shard), Time::from_nanos(nanos))
    }

    #[test]
    fn the_longest_waiter_is_next() {
        let discards = discards();
        assert!(enters(&discards, 0, 1) && enters(&discards, 0, 2));
        for (shard, nanos) in [(2, 10), (1, 20), (3, 30), (1, 40)] {
            assert!(!enters(&discards, shard, nanos), "{shard}");
        }
        assert_eq!(discards.next(ShardId(0), Time::from_nanos(41)), Some(ShardId(2)));
        assert_eq!(discards.next(ShardId(2), Time::from_nanos(41)), Some(ShardId(1)));
        discards.leave();
        // neither a new one nor one that has waited for less goes before it
        assert!(!enters(&discards, 0, 42) && !enters(&discards, 1, 42) && enters(&discards, 2, 43));
        discards.stop_waiting(ShardId(2));
        discards.leave();
        assert!(!enters(&discards, 2, 44) && enters(&discards, 1, 45));
        assert_eq!(discards.in_disk(), u64::from(DISCARDS_MAX));
    }

    #[test]
    fn a_shard_that_stopped_polling_delays_no_other() {
        let discards = discards();
        assert!(enters(&discards, 0, 1) && enters(&discards, 0, 1));
        assert!(!enters(&discards, 1, 2));
        discards.leave();
        assert!(!enters(&discards, 0, WAITER_TIMEOUT_NANOS));
        assert!(enters(&discards, 0, WAITER_TIMEOUT_NANOS + 2));
        assert_eq!(discards.next(ShardId(0), Time::from_nanos(WAITER_TIMEOUT_NANOS + 2)), None);
    }

    #[test]
    fn where_none_comes_back_one_goes_each_second() {
        let discards = discards();
        let went = (0..100).filter(|step| enters(&discards, 0, 1 + step * STUCK_NANOS / 10));
        assert_eq!(went.count(), 2 + 9);
    }

    #[test]
    fn nothing_bounds_them_where_nothing_is_bounded() {
        let discards = Discards::new(&Policy::Unlimited, SHARDS, false);
        assert!((0..100).all(|nanos| enters(&discards, 0, nanos)));
        discards.enter_anyway();
        assert_eq!(discards.in_disk(), 101);
    }
}
