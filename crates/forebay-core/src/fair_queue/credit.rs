//! The credit of a shard: how much of the disk time owed to it the shard keeps while its queue is empty
//! or its thread is absent.
//!
//! Decision: `docs/decisions/0015-late-shard-shares.md`.

use core::cmp::Reverse;

use super::FairQueue;
use crate::Time;
use crate::class_tree::{ClassTree, Credit, NodeId};
use crate::tag;

/// The longest time from a completion to the next request of a class that was not idle, in nanoseconds
/// (0.1 ms). All requests of the class were in the disk, so it keeps the disk time owed to it, up to
/// the credit. With a longer time, idle classes would save up disk time.
const REISSUE_NANOS: u64 = 100_000;
/// The most credit that a shard keeps, in halves of an effective goal (7 are 3.5 goals). With six, a
/// heavy class on a thread that polls every 2 ms is served 0.82 of its due. With eight, the p99 time in
/// the disk is 1.08 times as long where a thread is absent now and then.
const CREDIT_HALF_GOALS: u64 = 7;

impl FairQueue {
    /// A request of `class` has completed on this shard.
    pub(crate) fn completed(&mut self, class: NodeId, now: Time) {
        if self.peers.sole() {
            return;
        }
        for node in self.tree.path(class) {
            self.locals[usize::from(node)].completed_at = now;
        }
    }

    /// The credit of a node that becomes backlogged on this shard. `now` is the time of the new
    /// request, or `None` if the request is not new. A node that is backlogged on no other shard keeps
    /// credit only if the request follows within [`REISSUE_NANOS`] after a completion.
    pub(super) fn credit(&self, node: NodeId, now: Option<Time>) -> Credit {
        if self.peers.sole() {
            return Credit { exclusive: 0, shared: self.lead_max };
        }
        let completed_at = self.locals[usize::from(node)].completed_at;
        let at_once = now.is_some_and(|now| now.nanos_since(completed_at) <= REISSUE_NANOS);
        let exclusive = if completed_at > Time::ZERO && at_once { self.credit_max() } else { 0 };
        Credit { exclusive, shared: self.lead_max }
    }

    /// Disk time owed to `class` on this shard, in units. It is the largest lag of the class or of a
    /// group above it behind the siblings, or of this shard behind the others within the class. In a
    /// late turn [`FairQueue::catch_up`] has limited it to the credit.
    pub(crate) fn owed(&self, class: NodeId) -> u64 {
        if self.decay.is_some() {
            return 0;
        }
        let shard_tag = self.locals[usize::from(class)].shard_tag;
        let owed = tag::ahead(self.tree.node(class).virtual_time(), shard_tag);
        self.tree.path(class).map(|node| self.tree.owed(node)).fold(owed, u64::max)
    }

    /// Limits the disk time owed to this shard, after an absence for which the others did not wait. All
    /// siblings together keep the credit of one shard, divided by their shares. If each sibling kept
    /// the whole credit, those with few shares would go first in every turn, and would use all of it.
    pub(crate) fn catch_up(&mut self) {
        let credit = self.credit_max();
        for heap in &self.heaps {
            let shares = |id: NodeId| u64::from(self.tree.node(id).shares());
            let all: u64 = heap.nodes().map(shares).sum();
            for id in heap.nodes() {
                let part = u128::from(credit) * u128::from(shares(id)) / u128::from(all.max(1));
                self.tree.keep_credit(id, part as u64);
                if ClassTree::is_class(id) {
                    let earliest = self.tree.node(id).virtual_time().wrapping_sub(credit);
                    let local = &mut self.locals[usize::from(id)];
                    local.shard_tag = tag::later(local.shard_tag, earliest);
                    self.peers.publish_class(self.shard, id, Some(local.shard_tag));
                }
            }
        }
    }

    /// Publishes at the end of a turn, for each group, the waiting child to which most disk time is
    /// owed. The child that is next may be owed little, and would hide the larger debt from the other
    /// shards.
    pub(crate) fn publish_owed(&self) {
        for (parent, heap) in self.heaps.iter().enumerate().filter(|(_, heap)| heap.len() > 1) {
            // among equals, for example where nothing is owed, the first
            let most = heap.nodes().min_by_key(|&id| Reverse(self.tree.owed(id)));
            self.peers.publish_next(self.shard, parent as NodeId, most);
        }
    }

    /// The most credit that a shard keeps, in units of disk time.
    pub(super) const fn credit_max(&self) -> u64 {
        self.lead_max.saturating_mul(CREDIT_HALF_GOALS) / 2
    }
}
