//! Requests whose owners hold others in the disk: whether one waits, and whether
//! it waits for its turn or for a limit.

use super::FairQueue;
use crate::class_tree::{NodeId, ROOT};

impl FairQueue {
    /// Whether a nested request waits that no limit holds back.
    pub(crate) fn nested_waits(&self) -> bool {
        let nested = self.locals.first().map_or(0, |root| root.nested);
        nested > 0 && nested > self.throttled_nested()
    }

    /// Whether one waits in a class.
    pub(crate) fn nested_waits_in(&self, class: NodeId) -> bool {
        self.locals[usize::from(class)].nested > 0
    }

    /// Whether a limit holds a nested request back.
    pub(crate) fn nested_is_throttled(&self) -> bool {
        self.locals.first().is_some_and(|root| root.nested > 0) && self.throttled_nested() > 0
    }

    /// How many nested requests wait in classes and groups whose limit is
    /// used up.
    #[cold]
    fn throttled_nested(&self) -> u32 {
        let throttled = self.throttled.iter().map(|&(_, node)| node);
        let outermost = throttled.filter(|&node| !self.is_below_throttled(node));
        outermost.map(|node| self.locals[usize::from(node)].nested).sum()
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

    /// A nested request was just queued in `class`.
    pub(super) fn add_nested(&mut self, class: NodeId) {
        self.change_nested(class, 1);
    }

    /// A nested request has left `class`.
    pub(super) fn remove_nested(&mut self, class: NodeId) {
        self.change_nested(class, -1);
    }

    #[cold]
    fn change_nested(&mut self, class: NodeId, change: i32) {
        let mut node = class;
        loop {
            let local = &mut self.locals[usize::from(node)];
            local.nested = local.nested.saturating_add_signed(change);
            if node == ROOT {
                return;
            }
            node = self.tree.node(node).parent();
        }
    }
}
