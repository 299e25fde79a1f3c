//! Where on its disk a group is.

use crate::peers::Peers;
use crate::shard_id::{SHARDS_MAX, ShardId};
use crate::sync::{AtomicU64, Ordering};
use crate::wakes::{Marks, Wakes};
use crate::{Op, Place, Time};

/// The place of a request that says none.
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
    /// Which stream has the head, as [`Held`]; zero if none has it. In the lowest bits
    /// one more than the number of the shard, then whether it has begun, and the time.
    run: AtomicU64,
    /// Shards that wait for the end of that.
    waiting: Marks,
}

/// The bits of [`Head::run`] that are not the time, which is exact to 1024 ns.
const RUN_SHARD: u64 = 0x1ff;
const RUN_BEGUN: u64 = 0x200;
const _: () = assert!(SHARDS_MAX as u64 <= RUN_SHARD, "a shard fits into its bits");

/// A stream that has the head.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Held {
    pub(crate) shard: ShardId,
    pub(crate) until: Time,
    /// Whether some of it went; until then it waits for what is in the disk.
    pub(crate) has_begun: bool,
}

impl Head {
    pub(crate) fn new() -> Self {
        Self {
            latest_end: AtomicU64::new(NOWHERE),
            random_at: AtomicU64::new(0),
            flush: AtomicU64::new(NOWHERE),
            run: AtomicU64::new(0),
            waiting: Marks::new(),
        }
    }

    /// Which stream has the head.
    pub(crate) fn run(&self, now: Time) -> Option<Held> {
        let run = self.run.load(Ordering::Acquire);
        let until = Time::from_nanos(run & !(RUN_SHARD | RUN_BEGUN));
        let shard = ShardId((run & RUN_SHARD).checked_sub(1)? as u16);
        (until > now).then_some(Held { shard, until, has_begun: run & RUN_BEGUN != 0 })
    }

    /// Gives the head to a stream, unless one of another shard has it.
    pub(crate) fn begin_run(&self, now: Time, run: Held) -> bool {
        let Held { shard, until, has_begun } = run;
        let found = self.run.load(Ordering::Acquire);
        let is_free = self.run(now).is_none_or(|held| held.shard == shard);
        let begun = if has_begun { RUN_BEGUN } else { 0 };
        let until = until.as_nanos() & !(RUN_SHARD | RUN_BEGUN);
        let run = until | begun | (shard.index() as u64 + 1);
        let order = (Ordering::AcqRel, Ordering::Relaxed);
        is_free && self.run.compare_exchange(found, run, order.0, order.1).is_ok()
    }

    /// The stream of `shard` gives the head back, if it has it.
    pub(crate) fn end_run(&self, shard: ShardId) {
        let found = self.run.load(Ordering::Acquire);
        if found & RUN_SHARD == shard.index() as u64 + 1 {
            let _ = self.run.compare_exchange(found, 0, Ordering::AcqRel, Ordering::Relaxed);
        }
    }

    /// A shard asks to be woken when the head is given back.
    pub(crate) fn wait_for_run(&self, shard: ShardId) {
        self.waiting.set(shard);
    }

    /// Moves the shards that asked so into `wakes`. From now on they are expected to poll.
    pub(crate) fn take_waiting(&self, peers: &Peers, now: Time, wakes: &mut Wakes) {
        let mut waiting = Wakes::default();
        self.waiting.take_into(&mut waiting);
        while let Some(shard) = waiting.pop() {
            peers.promise(shard, now);
            wakes.push(shard);
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
