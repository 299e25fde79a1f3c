//! Requests that are dispatched without being queued, or out of order. The tags change as if they had
//! been queued.

use super::FairQueue;
use crate::class_tree::{ClassId, NodeId};
use crate::requests::{Request, Requests};
use crate::tag::{self, STEP_MAX, is_after};
use crate::{DiskTime, Time};

impl FairQueue {
    /// Prepares the tags for a request of `class` that is dispatched without being queued. They become
    /// what queueing it would have made them. The queue of this shard is empty.
    pub(crate) fn activate_unqueued(&mut self, class: ClassId, now: Time) {
        self.local_for(class);
        let class = class.node();
        let local = &mut self.locals[usize::from(class)];
        let earliest = self.tree.node(class).virtual_time().wrapping_sub(self.lead_max);
        local.shard_tag = tag::later(local.shard_tag, earliest);
        for node in self.tree.path(class) {
            self.tree.activate_unqueued(node, self.credit(node, Some(now)));
        }
    }

    /// Charges the request of [`FairQueue::activate_unqueued`] as [`FairQueue::pop`] does.
    pub(crate) fn charge_unqueued(&mut self, class: NodeId, cost: DiskTime, len: u64, now: Time) {
        if !self.peers.sole() {
            let local = &mut self.locals[usize::from(class)];
            let started = local.shard_tag;
            local.shard_tag = started.wrapping_add(cost.units().min(STEP_MAX));
            self.tree.node(class).advance_virtual_time(started);
        }
        self.charge_upwards(class, cost, len, now);
    }

    /// The first request of a class if its limits are open, even if the class is not next.
    pub(crate) fn first_of(&self, class: NodeId, now: Time) -> Option<u32> {
        let local = self.locals.get(usize::from(class))?;
        let is_open = !local.throttled && self.limited(class, now).is_none();
        local.fifo.head().filter(|_| is_open)
    }

    /// Removes the request of [`FairQueue::first_of`], and charges it as [`FairQueue::pop`] does.
    pub(crate) fn pop_out_of_turn(
        &mut self,
        requests: &mut Requests,
        class: NodeId,
        index: u32,
        now: Time,
    ) {
        let Request { cost, len, .. } = *requests.at(index);
        self.charge_unqueued(class, cost, len, now);
        self.remove(requests, class, index);
        let local = &self.locals[usize::from(class)];
        if local.awake {
            self.peers.publish_class(self.shard, class, Some(local.shard_tag));
        }
    }

    /// Charges disk time to a class and the groups above it outside of the order.
    pub(crate) fn charge(&mut self, class: NodeId, cost: DiskTime, len: u64, now: Time) {
        self.make_room_for(class);
        for node in self.tree.path(class) {
            if !self.locals[usize::from(node)].awake {
                self.tree.catch_up(node);
            }
        }
        self.charge_upwards(class, cost, len, now);
    }

    /// Charges a class and the groups above it. Virtual time advances at most to the smallest tag of
    /// those that wait here.
    fn charge_upwards(&mut self, class: NodeId, cost: DiskTime, len: u64, now: Time) {
        for child in self.tree.path(class) {
            let node = self.tree.node(child);
            let parent = node.parent();
            let (start, _) = node.charge(cost, &mut self.locals[usize::from(child)].fraction);
            let waiting = self.heaps[usize::from(parent)].first();
            let reached =
                waiting.map_or(start, |(tag, _)| if is_after(start, tag) { tag } else { start });
            self.tree.node(parent).advance_virtual_time(reached);
            if let Some(decay) = &mut self.decay {
                decay.charge(child, now, len, node.shares());
            }
        }
        self.charge_turn(cost);
    }
}
