//! What the queues of a group share.

use alloc::sync::Arc;

use crate::budget::Budget;
use crate::class_tree::ClassTree;
use crate::discards::Discards;
use crate::head::Head;
use crate::head_run::HeadRun;
use crate::peers::Peers;
use crate::shard_id::ShardId;
use crate::shard_set::ShardSet;
use crate::{DiskModel, QueueDiscipline};

/// Ticks for which a shard that is late to poll is still waited for.
const PATIENCE_TICKS: u64 = 2;

/// Shared by the queues of a group.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) model: DiskModel,
    pub(crate) budget: Budget,
    pub(crate) tree: Arc<ClassTree>,
    pub(crate) peers: Arc<Peers>,
    /// Where one waits for its turn,
    pub(crate) nested: ShardSet,
    /// and where a limit holds one back.
    pub(crate) nested_throttled: ShardSet,
    pub(crate) discards: Discards,
    pub(crate) head: Head,
    pub(crate) head_run: HeadRun,
    pub(crate) order: QueueDiscipline,
    pub(crate) requests_max: u32,
    pub(crate) tick_nanos: u64,
}

impl Shared {
    /// By how much a shard may be late to poll and still be waited for, in
    /// nanoseconds.
    pub(crate) fn patience(&self) -> u64 {
        self.tick_nanos.saturating_mul(PATIENCE_TICKS)
    }

    /// A shard has gone: nothing of it waits any more.
    pub(crate) fn leave(&self, shard: ShardId) {
        self.head_run.give_back(shard);
        self.discards.stop_waiting(shard);
        self.nested.set(shard, false);
        self.nested_throttled.set(shard, false);
        self.peers.leave(shard);
    }
}
