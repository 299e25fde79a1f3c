//! Shards that take turns by disk time, whatever their classes are: the order of 2016 says which
//! class of one shard is next, and nothing of the other shards.

use super::FairQueue;
use crate::DiskTime;
use crate::class_tree::ROOT;

impl FairQueue {
    /// Whether shards take turns.
    pub(crate) fn has_turns(&self) -> bool {
        self.decay.is_some()
    }

    /// Tells the other shards whether this one waits for its turn.
    #[inline]
    pub(super) fn publish_turn(&mut self) {
        if !self.has_turns() {
            return;
        }
        let waits = self.heaps.get(usize::from(ROOT)).is_some_and(|heap| !heap.is_empty());
        if let Some(tag) = self.set_waits(waits) {
            self.peers.publish_turn(self.shard, tag);
        }
    }

    /// Whether this shard waits for its turn; its tag while it does, if shards take turns.
    #[inline]
    pub(super) fn set_waits(&mut self, waits: bool) -> Option<Option<u64>> {
        let decay = self.decay.as_mut()?;
        let earliest = self.peers.turns_reached().wrapping_sub(self.lead_max);
        Some(decay.set_waits(waits, earliest))
    }

    /// This shard has had a turn of this cost.
    #[inline]
    pub(super) fn charge_turn(&mut self, cost: DiskTime) {
        let Some(decay) = &mut self.decay else { return };
        self.peers.advance_turns(decay.charge_shard(cost));
        self.publish_turn();
    }
}
