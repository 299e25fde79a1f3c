//! Requests whose owners hold others in the disk: whether one waits, and whether
//! it waits for its turn or for a limit.

use super::FairQueue;
use crate::class_tree::{NodeId, ROOT};

impl FairQueue {
    /// Whether a holder waits that no limit holds back.
    pub(crate) fn holder_waits(&self) -> bool {
        let holders = self.locals.first().map_or(0, |root| root.holders);
        holders > 0 && holders > self.held_back()
    }

    /// Whether one waits in a class.
    pub(crate) fn holder_waits_in(&self, class: NodeId) -> bool {
        self.locals[usize::from(class)].holders > 0
    }

    /// Whether a limit holds a holder back.
    pub(crate) fn holder_is_held_back(&self) -> bool {
        self.locals.first().is_some_and(|root| root.holders > 0) && self.held_back() > 0
    }

    /// How many holders' requests wait in classes and groups whose limit is
    /// used up.
    #[cold]
    fn held_back(&self) -> u32 {
        let throttled = self.throttled.iter().map(|&(_, node)| node);
        let outermost = throttled.filter(|&node| !self.is_below_throttled(node));
        outermost.map(|node| self.locals[usize::from(node)].holders).sum()
    }

    fn is_below_throttled(&self, node: NodeId) -> bool {
        let mut node = node;
        while node != ROOT {
            node = self.tree.node(node).parent();
            if self.locals[usize::from(node)].throttled {
                return true;
            }
        }
        false
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
        loop {
            let local = &mut self.locals[usize::from(node)];
            local.holders = local.holders.saturating_add_signed(change);
            if node == ROOT {
                return;
            }
            node = self.tree.node(node).parent();
        }
    }
}
