//! Requests whose owners hold others in the disk: whether one waits in the
//! order, where it moves on as those before it go.

use super::FairQueue;
use crate::class_tree::{NodeId, ROOT};
use crate::tag_heap::NOWHERE;

impl FairQueue {
    /// Whether a holder waits that no limit holds back.
    pub(crate) fn holder_waits(&self) -> bool {
        self.locals.first().is_some_and(|root| root.holders > 0)
    }

    /// A request that was just queued in `class` is a holder's.
    pub(crate) fn add_holder(&mut self, class: NodeId) {
        self.change_holders(class, 1);
    }

    /// A holder's request is about to leave `class`.
    pub(super) fn remove_holder(&mut self, class: NodeId) {
        self.change_holders(class, -1);
    }

    fn change_holders(&mut self, class: NodeId, change: i32) {
        let local = &mut self.locals[usize::from(class)];
        local.holders = local.holders.saturating_add_signed(change);
        self.change_holders_above(class, change);
    }

    /// The same for the groups above `node`, as far up as it is in the order.
    #[inline]
    pub(super) fn change_holders_above(&mut self, node: NodeId, change: i32) {
        if change != 0 {
            self.add_to_holders_above(node, change);
        }
    }

    #[cold]
    fn add_to_holders_above(&mut self, node: NodeId, change: i32) {
        let mut child = node;
        while child != ROOT && self.positions[usize::from(child)] != NOWHERE {
            child = self.tree.node(child).parent();
            let local = &mut self.locals[usize::from(child)];
            local.holders = local.holders.saturating_add_signed(change);
        }
    }
}
