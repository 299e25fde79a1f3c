//! Classes whose limit is used up, and changes that others make.

use super::FairQueue;
use crate::Time;
use crate::class_tree::NodeId;

impl FairQueue {
    /// Takes a class or group out of the order until `until`. When it returns
    /// it has no credit for the time, as after idleness.
    pub(crate) fn throttle(&mut self, node: NodeId, until: Time) {
        self.locals[usize::from(node)].throttled = true;
        self.throttled.push((until, node));
        self.relink(node, None);
    }

    /// Brings back whatever was throttled until `now` or earlier.
    pub(crate) fn unthrottle(&mut self, now: Time) {
        let mut at = 0;
        while let Some(&(until, node)) = self.throttled.get(at) {
            if until > now {
                at += 1;
                continue;
            }
            self.throttled.swap_remove(at);
            self.bring_back(node);
        }
    }

    fn bring_back(&mut self, node: NodeId) {
        self.locals[usize::from(node)].throttled = false;
        self.tree.catch_up(node);
        self.relink(node, None);
    }

    /// Brings back all that is throttled with the next [`FairQueue::unthrottle`]:
    /// what kept it out may have changed.
    #[cold]
    pub(crate) fn recheck_throttled(&mut self) {
        self.throttled.iter_mut().for_each(|(until, _)| *until = Time::ZERO);
    }

    /// When the next throttled class or group returns that has work: what it had
    /// may have been cancelled.
    pub(crate) fn throttled_until(&self) -> Option<Time> {
        let has_work = |&&(_, node): &&(Time, NodeId)| self.locals[usize::from(node)].awake;
        self.throttled.iter().filter(has_work).map(|&(until, _)| until).min()
    }

    /// Whether everything that has work is in the order.
    pub(crate) fn nothing_throttled(&self) -> bool {
        self.throttled.is_empty()
    }

    /// PollGapTracker anew at limits and tags if classes have changed: limits may have
    /// opened, and tags moved back. Returns whether anything had changed.
    #[inline]
    pub(crate) fn follow_changes(&mut self) -> bool {
        let changes = self.tree.changes();
        if changes == self.followed {
            return false;
        }
        self.followed = changes;
        self.rebuild();
        true
    }

    #[cold]
    fn rebuild(&mut self) {
        while let Some((_, node)) = self.throttled.pop() {
            self.bring_back(node);
        }
        for parent in 0..self.heaps.len() {
            let heap = &mut self.heaps[parent];
            heap.nodes().for_each(|node| self.tree.rescale_tag(node, true));
            heap.renew(&mut self.positions, |node| self.tree.node(node).tag());
            self.publish_next(parent as NodeId);
        }
    }
}
