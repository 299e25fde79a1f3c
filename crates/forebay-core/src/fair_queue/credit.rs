//! What a shard keeps of what it is owed for a time in which it could not ask.
//!
//! Decision: `docs/decisions/0015-late-shard-shares.md`.

use core::cmp::Reverse;

use super::FairQueue;
use crate::Time;
use crate::class_tree::{ClassTree, Credit, NodeId};
use crate::tag;

/// A class that asks for more within this time after a request has come back was not idle, in
/// nanoseconds (0.1 ms). It keeps what it is owed for the time in which it could not ask. After a
/// longer time a class that was idle would save up disk time.
const REISSUE_NANOS: u64 = 100_000;
/// The most credit that a shard keeps for a time in which it could not ask, in halves of an effective
/// goal. With six, a heavy class on a thread that turns each 2 ms is served 0.82 of its due; with eight, requests
/// wait 1.08 times as long in the disk (p99) where a thread is away now and then.
const CREDIT_HALF_GOALS: u64 = 7;

impl FairQueue {
    /// A request of `class` has come back to this shard.
    pub(crate) fn completed(&mut self, class: NodeId, now: Time) {
        if self.peers.sole() {
            return;
        }
        for node in self.tree.path(class) {
            self.locals[usize::from(node)].completed_at = now;
        }
    }

    /// The credit of a node that has work here again, since `now` if it is new. Who asks for the
    /// next as soon as one comes back was not idle: it had no chance to request what the others
    /// took in that time.
    pub(super) fn credit(&self, node: NodeId, now: Option<Time>) -> Credit {
        if self.peers.sole() {
            return Credit { exclusive: 0, shared: self.lead_max };
        }
        let completed_at = self.locals[usize::from(node)].completed_at;
        let at_once = now.is_some_and(|now| now.nanos_since(completed_at) <= REISSUE_NANOS);
        let exclusive = if completed_at > Time::ZERO && at_once { self.credit_max() } else { 0 };
        Credit { exclusive, shared: self.lead_max }
    }

    /// Disk time that `class` on this shard is owed: how far it, or a group it
    /// is in, is behind its siblings, or this shard behind the others of the
    /// class. It is owed no more than the credit that a shard keeps.
    pub(crate) fn owed(&self, class: NodeId) -> u64 {
        if self.decay.is_some() {
            return 0;
        }
        let shard_tag = self.locals[usize::from(class)].shard_tag;
        let owed = tag::ahead(self.tree.node(class).virtual_time(), shard_tag);
        self.tree.path(class).map(|node| self.tree.owed(node)).fold(owed, u64::max)
    }

    /// After a pause in which the others did not wait for this shard: of what
    /// it is owed for that time, as much is kept as a shard may overdraw, for
    /// all siblings together by their shares. If each kept as much, those with
    /// few shares would go first with it in each turn, and use all of that.
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

    /// Nothing more goes from here now: of siblings that wait, the others see the
    /// one that is owed most. The next one may be owed little, and hide that.
    pub(crate) fn publish_owed(&self) {
        for (parent, heap) in self.heaps.iter().enumerate().filter(|(_, heap)| heap.len() > 1) {
            // of equals, as of those that are owed nothing, the first
            let most = heap.nodes().min_by_key(|&id| Reverse(self.tree.owed(id)));
            self.peers.publish_next(self.shard, parent as NodeId, most);
        }
    }

    /// The most credit that a shard keeps for a time in which it could not ask.
    pub(super) const fn credit_max(&self) -> u64 {
        self.lead_max.saturating_mul(CREDIT_HALF_GOALS) / 2
    }
}
