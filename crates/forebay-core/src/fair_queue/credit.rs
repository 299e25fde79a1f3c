//! What a shard keeps of what it is owed for a time in which it could not ask.

use super::FairQueue;
use crate::Time;
use crate::class_tree::{ClassTree, Credit, NodeId, ROOT};
use crate::tag;
use crate::tag_heap::NOWHERE;

/// Who asks for more at most so long after a request has come back was not idle.
const AT_ONCE_NANOS: u64 = 100_000;

impl FairQueue {
    /// A request of `class` has come back to this shard.
    pub(crate) fn completed(&mut self, class: NodeId, now: Time) {
        if self.peers.sole() {
            return;
        }
        let mut child = class;
        while child != ROOT {
            self.locals[usize::from(child)].completed_at = now;
            child = self.tree.node(child).parent();
        }
    }

    /// The credit of a node that has work here again, since `now` if it is new.
    /// Who asks for the next as soon as one comes back was not idle: it had no
    /// chance to ask for what the others took meanwhile.
    pub(super) fn credit(&self, node: NodeId, now: Option<Time>) -> Credit {
        let completed_at = self.locals[usize::from(node)].completed_at;
        let at_once = now.is_some_and(|now| now.nanos_since(completed_at) <= AT_ONCE_NANOS);
        let alone = if completed_at > Time::ZERO && at_once { self.credit_max() } else { 0 };
        Credit { alone, beside_others: self.lead_max }
    }

    /// Disk time that `class` on this shard is owed: how far it, or a group it
    /// is in, is behind its siblings, or this shard behind the others of the
    /// class. It is owed no more than the credit that a shard keeps.
    pub(crate) fn owed(&self, class: NodeId) -> u64 {
        if self.decay.is_some() {
            return 0;
        }
        let shard_tag = self.locals[usize::from(class)].shard_tag;
        let mut owed = tag::ahead(self.tree.node(class).virtual_time(), shard_tag);
        let mut child = class;
        while child != ROOT {
            let node = self.tree.node(child);
            let behind = tag::ahead(self.tree.node(node.parent()).virtual_time(), node.tag());
            owed = owed.max(behind.saturating_mul(u64::from(node.shares())));
            child = node.parent();
        }
        owed
    }

    /// After a pause in which the others did not wait for this shard: of what
    /// it is owed for that time, as much is kept as a shard may overdraw.
    pub(crate) fn catch_up(&mut self) {
        let credit = self.credit_max();
        for (id, local) in self.locals.iter_mut().enumerate() {
            if self.positions[id] == NOWHERE {
                continue;
            }
            let id = id as NodeId;
            self.tree.keep_credit(id, credit);
            if ClassTree::is_class(id) {
                let earliest = self.tree.node(id).virtual_time().wrapping_sub(credit);
                local.shard_tag = tag::later(local.shard_tag, earliest);
                self.peers.publish_class(self.shard, id, Some(local.shard_tag));
            }
        }
    }

    /// Of what it is owed for a time in which it could not ask, a shard keeps
    /// what it may overdraw in two turns.
    pub(super) const fn credit_max(&self) -> u64 {
        self.lead_max.saturating_mul(2)
    }
}
