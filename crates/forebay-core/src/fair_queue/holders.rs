//! Requests whose owners hold others in the disk: whether one waits, and how it
//! goes although the limit of its class is used up.

use super::{FairQueue, Local};
use crate::class_tree::{NodeId, ROOT};
use crate::requests::{Fifo, Requests};
use crate::tag::is_after;
use crate::tag_heap::NOWHERE;
use crate::{DiskTime, Time};

impl FairQueue {
    /// Whether a holder waits.
    pub(crate) fn holder_waits(&self) -> bool {
        self.locals.first().is_some_and(|root| root.holders > 0)
    }

    /// A holder's request was just queued in `class`.
    pub(super) fn add_holder(&mut self, class: NodeId) {
        self.change_holders(class, 1);
    }

    /// A holder's request has left `class`.
    pub(super) fn remove_holder(&mut self, class: NodeId) {
        self.change_holders(class, -1);
    }

    #[cold]
    fn change_holders(&mut self, class: NodeId, change: i32) {
        let mut node = class;
        let mut throttled = false;
        loop {
            let local = &mut self.locals[usize::from(node)];
            local.holders = local.holders.saturating_add_signed(change);
            throttled |= local.throttled;
            if node == ROOT {
                break;
            }
            node = self.tree.node(node).parent();
        }
        node = class;
        while throttled && node != ROOT {
            // what has no work any more can be removed, and its place given away
            let parent = self.tree.node(node).parent();
            if self.locals[usize::from(node)].throttled {
                self.reorder_throttled(node);
            }
            node = parent;
        }
    }

    /// A node that is or was throttled comes back into the order, without
    /// credit for the time, or leaves it.
    pub(super) fn reorder_throttled(&mut self, node: NodeId) {
        if self.positions[usize::from(node)] == NOWHERE {
            self.tree.catch_up(node);
        }
        self.relink(node, None);
    }

    /// Of the children of `parent` in which a holder waits, the one whose turn
    /// it is. Looks at all that have work here.
    #[cold]
    pub(super) fn first_with_holders(&self, parent: NodeId, now: Time) -> Option<NodeId> {
        let nodes = self.heaps.get(usize::from(parent))?.nodes();
        let mut nodes = nodes.filter(|&node| self.locals[usize::from(node)].holders > 0);
        match &self.decay {
            Some(decay) => decay.least(nodes, now),
            None => {
                let tag = |node| self.tree.node(node).tag();
                let least = nodes.next()?;
                Some(nodes.fold(
                    least,
                    |least, node| {
                        if is_after(tag(least), tag(node)) { node } else { least }
                    },
                ))
            }
        }
    }

    /// [`pop`](Self::pop) of a holder's request, which others of its class, and
    /// classes of its group, may be before: they wait for a limit.
    #[cold]
    pub(super) fn pop_holder(
        &mut self,
        requests: &mut Requests,
        class: NodeId,
        (index, cost, len): (u32, DiskTime, u64),
        now: Time,
    ) {
        self.charge_passed(class, cost, len, now);
        let shard_tag = self.locals[usize::from(class)].shard_tag;
        self.peers.publish_class(self.shard, class, Some(shard_tag));
        self.remove(requests, class, index);
    }
}

impl Local {
    #[inline]
    pub(super) fn of_kind(&mut self, holder: bool) -> &mut Fifo {
        if holder { &mut self.further } else { &mut self.fifo }
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.fifo.is_empty() && self.further.is_empty()
    }

    /// The request of a class that has waited for longest.
    #[inline]
    pub(super) fn first(&self, requests: &Requests) -> Option<u32> {
        let Some(further) = self.further.head() else { return self.fifo.head() };
        let Some(first) = self.fifo.head() else { return Some(further) };
        let since = |index| requests.at(index).enqueued_at;
        Some(if since(further) <= since(first) { further } else { first })
    }
}
