//! Which stream of a group keeps the head of a disk that seeks.

use crate::peers::Peers;
use crate::shard_id::{SHARDS_MAX, ShardId};
use crate::shard_set::{ShardSet, WakeList};
use crate::sync::{AtomicU64, Ordering};
use crate::{DiskTime, Time};

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
#[derive(Debug)]
pub(crate) struct HeadRun {
    /// A [`Held`], or zero: in the lowest bits one more than the number of the shard, then
    /// whether it has begun, and the time.
    held: AtomicU64,
    /// Shards that wait for its end.
    waiting: ShardSet,
}

impl HeadRun {
    pub(crate) fn new() -> Self {
        Self { held: AtomicU64::new(0), waiting: ShardSet::new() }
    }

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
