//! Where on its disk a group is.
//!
//! Decision: `docs/decisions/0004-head-runs.md`.

use crate::peers::Peers;
use crate::shard_id::{SHARDS_MAX, ShardId};
use crate::shard_set::{ShardSet, WakeList};
use crate::sync::{AtomicU64, Ordering};
use crate::{DiskTime, Op, Place, Time};

/// Encoding: The place of a request that says none.
pub(crate) const NOWHERE: u64 = 0;

/// Where the head of a group's disk is.
#[derive(Debug, Default)]
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

/// The longest that a stream keeps the head of a disk that seeks, in nanoseconds of disk time (50
/// ms). The way there and back is two seeks and two half turns, on a slow disk 20 ms: less than a
/// third of the disk's time. A longer run delays the requests of others by as much.
pub const RUN_NANOS: u64 = 50_000_000;

/// The most that the shares of a stream are charged for a run, in nanoseconds of disk time (500
/// ms). Each request may be charged a seek, and small ones would keep their class from the disk for
/// many seconds after it.
pub const RUN_CHARGED_NANOS: u64 = 10 * RUN_NANOS;

/// Encoding: The bits of [`HeadRun::held`] for one more than the number of the shard. With the next
/// bit they take the place of the lowest bits of the time, which is exact to 1024 ns.
const SHARD: u64 = 0x1ff;
/// Encoding: The bit of [`HeadRun::held`] that says whether the run has begun.
const BEGUN: u64 = 0x200;
const _: () = assert!(SHARDS_MAX as u64 <= SHARD, "a shard fits into its bits");

/// The run that a queue has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    pub(crate) class: u16,
    /// Where the next request of the stream begins.
    pub(crate) next: u64,
    /// What may still go.
    pub(crate) left: DiskTime,
    /// Disk time that its class may still be charged for it.
    pub(crate) chargeable: DiskTime,
    /// Until when it waits for what is in the disk, if nothing of it went.
    pub(crate) begins_by: Option<Time>,
    /// Whether its requests pay for their bytes alone.
    pub(crate) pays_bytes: bool,
}

/// A stream that has the head.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Held {
    pub(crate) shard: ShardId,
    pub(crate) until: Time,
    /// Whether some of it went; until then it waits for what is in the disk.
    pub(crate) has_begun: bool,
}

/// What the shards of a group know of its run.
#[derive(Debug, Default)]
pub(crate) struct HeadRun {
    /// A [`Held`], or zero: in the lowest bits one more than the number of the shard, then
    /// whether it has begun, and the time.
    held: AtomicU64,
    /// Shards that wait for its end.
    waiting: ShardSet,
}

impl HeadRun {
    /// Which stream has the head.
    pub(crate) fn held(&self, now: Time) -> Option<Held> {
        Self::decoded(self.held.load(Ordering::Acquire), now)
    }

    fn decoded(held: u64, now: Time) -> Option<Held> {
        let until = Time::from_nanos(held & !(SHARD | BEGUN));
        let shard = ShardId((held & SHARD).checked_sub(1)? as u16);
        (until > now).then_some(Held { shard, until, has_begun: held & BEGUN != 0 })
    }

    /// Gives the head to a stream, unless one of another shard has it.
    pub(crate) fn give(&self, now: Time, to: Held) -> bool {
        let Held { shard, until, has_begun } = to;
        let found = self.held.load(Ordering::Acquire);
        let is_free = Self::decoded(found, now).is_none_or(|held| held.shard == shard);
        let begun = if has_begun { BEGUN } else { 0 };
        let given = until.as_nanos() & !(SHARD | BEGUN) | begun | (shard.index() as u64 + 1);
        let order = (Ordering::AcqRel, Ordering::Relaxed);
        is_free && self.held.compare_exchange(found, given, order.0, order.1).is_ok()
    }

    /// The stream of `shard` gives the head back, if it has it.
    pub(crate) fn give_back(&self, shard: ShardId) {
        let found = self.held.load(Ordering::Acquire);
        if found & SHARD == shard.index() as u64 + 1 {
            let _ = self.held.compare_exchange(found, 0, Ordering::AcqRel, Ordering::Relaxed);
        }
    }

    /// A shard asks to be woken when the head is given back.
    pub(crate) fn wait(&self, shard: ShardId) {
        self.waiting.insert(shard);
    }

    /// Moves the shards that wait for the end of the run into `wakes`.
    pub(crate) fn take_waiting(&self, peers: &Peers, now: Time, wakes: &mut WakeList) {
        peers.take_all(&self.waiting, now, wakes);
    }
}
