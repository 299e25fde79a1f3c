//! The state that the queues of a group share.

use alloc::sync::Arc;

use crate::budget::Budget;
use crate::class_tree::ClassTree;
use crate::discards::Discards;
use crate::peers::Peers;
use crate::seek::Head;
use crate::shard_set::ShardId;
use crate::shard_set::ShardSet;
use crate::sync::AtomicU64;
use crate::{DiskModel, ServiceOrder, Time};

/// The ticks for which others still wait for a shard that is late to poll. With fewer, a healthy shard
/// that polls a little late loses its turn. With more, others wait for an absent thread.
const PATIENCE_TICKS: u64 = 2;
/// This many shards together check once per tick what others hold in the disk without polling.
const SHARDS_PER_CHECK: u64 = 32;

/// The state that the queues of a group share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) model: DiskModel,
    pub(crate) budget: Budget,
    pub(crate) tree: Arc<ClassTree>,
    pub(crate) peers: Arc<Peers>,
    /// Shards where a nested request waits for its turn.
    pub(crate) nested: ShardSet,
    /// Shards where a limit holds a nested request back.
    pub(crate) nested_throttled: ShardSet,
    /// Requests that exceeded the window while a nested one waited for its turn.
    pub(crate) nested_bypasses: AtomicU64,
    pub(crate) discards: Discards,
    pub(crate) head: Arc<Head>,
    pub(crate) order: ServiceOrder,
    pub(crate) requests_max: u32,
    pub(crate) tick_nanos: u64,
}

impl Shared {
    /// How late a shard may poll while others still wait for it, in nanoseconds.
    pub(crate) fn patience(&self) -> u64 {
        self.tick_nanos.saturating_mul(PATIENCE_TICKS)
    }

    /// The delay of each check of other shards, in nanoseconds: one tick for every 32 further shards.
    /// So the number of checks per tick does not grow with the shards.
    pub(crate) fn stagger_nanos(&self) -> u64 {
        let many = self.peers.joined().saturating_sub(1) / SHARDS_PER_CHECK;
        self.tick_nanos.saturating_mul(many)
    }

    /// Whether a shard of the set polls by its promise, or within the patience after it.
    pub(crate) fn is_on_live_shard(&self, shards: &ShardSet, now: Time) -> bool {
        let patience = self.patience();
        shards.any_of(|shard| self.peers[shard].is_live(now, patience))
    }

    /// Removes a shard that leaves: no request of it waits any more.
    pub(crate) fn leave(&self, shard: ShardId) {
        self.head.run.give_back(shard);
        self.discards.stop_waiting(shard);
        self.nested.set(shard, false);
        self.nested_throttled.set(shard, false);
        self.peers.leave(shard);
    }
}
