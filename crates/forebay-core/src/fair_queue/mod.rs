//! The order of classes: start-time fair queueing over classes and groups of classes (Goyal, Vin,
//! Cheng: Start-time Fair Queuing, SIGCOMM 1996).
//!
//! All shards of a group share the tags. This module is the view of one shard.

mod credit;
mod out_of_order;

use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::class_tree::{ClassError, ClassId, ClassTree, LEVELS_MAX, NodeId, ROOT};
use crate::decay::Decay;
use crate::peers::{Lead, Peers};
use crate::published::PeerFilter;
use crate::requests::{Fifo, Request, Requests};
use crate::shard_set::ShardId;
use crate::tag::{self, STEP_MAX, is_after};
use crate::tag_heap::{NOWHERE, TagHeap};
use crate::{DiskTime, Time};

/// The order in which a queue serves its classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServiceOrder {
    /// Start-time fair queueing by disk time, over all shards.
    StartTime,
    /// The fair queue of 2016, for comparisons. Each shard has its own, with weights that grow with the
    /// size of a request and decay exponentially. Shards take turns by disk time, regardless of their
    /// classes. On each shard a class gets about half a request per `tau_nanos` beyond its share,
    /// because its use is forgotten meanwhile.
    #[cfg(feature = "history")]
    ExponentialDecay {
        /// The time in which recorded use falls by a factor e, in nanoseconds.
        tau_nanos: u64,
    },
}

impl ServiceOrder {
    /// The name used in reports and options.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::StartTime => "start-time",
            #[cfg(feature = "history")]
            Self::ExponentialDecay { .. } => "exponential-decay",
        }
    }
}

/// The state of a class or group of classes on one shard.
#[derive(Debug, Default)]
struct Local {
    /// The waiting requests (classes only).
    fifo: Fifo,
    /// The class that had this slot when the shard last used it (classes only).
    owner: Option<ClassId>,
    /// How far this shard has come within the class, in units of disk time.
    shard_tag: u64,
    /// The remainder of divisions by the shares, for the next charge.
    fraction: u32,
    /// Nested requests that wait in the class, or in the classes of the group.
    nested: u32,
    /// When a request of it last completed on this shard.
    completed_at: Time,
    /// Whether this shard is counted among those that have work of it.
    awake: bool,
    /// Whether it is out of the order until its limit opens, or until a discard may go.
    throttled: bool,
}

/// The classes of one shard in the order of service.
#[derive(Debug)]
pub(crate) struct FairQueue {
    tree: Arc<ClassTree>,
    peers: Arc<Peers>,
    shard: ShardId,
    /// For each group of classes, its children with work queued here.
    heaps: Vec<TagHeap>,
    /// For each node, its position in the heap of its parent.
    positions: Vec<u16>,
    locals: Vec<Local>,
    throttled: Vec<(Time, NodeId)>,
    decay: Option<Decay>,
    /// How far other shards may be ahead within a class, in units of disk time. A shard keeps this much
    /// when its queue is empty for a moment. Otherwise a shard with one request at a time would lose it
    /// each time.
    lead_max: u64,
    /// The number of changes of the tree that this queue has applied.
    followed: u64,
}

impl FairQueue {
    pub(crate) fn new(
        tree: Arc<ClassTree>,
        peers: Arc<Peers>,
        shard: ShardId,
        order: ServiceOrder,
        lead_max: DiskTime,
    ) -> Self {
        let decay = match order {
            ServiceOrder::StartTime => None,
            #[cfg(feature = "history")]
            ServiceOrder::ExponentialDecay { tau_nanos } => Some(Decay::new(tau_nanos)),
        };
        Self {
            decay,
            lead_max: lead_max.units().min(STEP_MAX),
            followed: tree.changes(),
            tree,
            peers,
            shard,
            heaps: Vec::new(),
            positions: Vec::new(),
            locals: Vec::new(),
            throttled: Vec::new(),
        }
    }

    /// Queues a request behind the others of its class. Fails if the class was removed.
    // on the way of each request; other callers are rare
    #[inline(always)]
    pub(crate) fn push(
        &mut self,
        requests: &mut Requests,
        class: ClassId,
        index: u32,
    ) -> Result<(), ClassError> {
        match self.locals.get_mut(usize::from(class.node())) {
            Some(local) if local.awake => requests.push_back(&mut local.fifo, index),
            _ => self.push_first(requests, class, index)?,
        }
        if requests.at(index).nested {
            self.add_nested(class.node());
        }
        Ok(())
    }

    /// Queues a request of a class that has none waiting here.
    #[inline(never)]
    fn push_first(
        &mut self,
        requests: &mut Requests,
        class: ClassId,
        index: u32,
    ) -> Result<(), ClassError> {
        let node = class.node();
        self.local_for(class);
        let now = requests.at(index).enqueued_at;
        self.tree.wake(class, self.credit(node, Some(now)))?;
        let local = &mut self.locals[usize::from(node)];
        local.awake = true;
        requests.push_back(&mut local.fifo, index);
        self.relink(node, Some(now));
        Ok(())
    }

    /// Queues a request ahead of the others of its class. Fails if the class was removed.
    pub(crate) fn push_front(
        &mut self,
        requests: &mut Requests,
        class: ClassId,
        index: u32,
    ) -> Result<(), ClassError> {
        self.push(requests, class, index)?;
        let fifo = &mut self.locals[usize::from(class.node())].fifo;
        requests.unlink(fifo, index);
        requests.push_front(fifo, index);
        Ok(())
    }

    /// Removes a waiting request from any position in its class.
    pub(crate) fn remove(&mut self, requests: &mut Requests, class: NodeId, index: u32) {
        let nested = requests.at(index).nested;
        let local = &mut self.locals[usize::from(class)];
        requests.unlink(&mut local.fifo, index);
        let is_last = local.fifo.is_empty();
        if nested {
            self.remove_nested(class);
        }
        if is_last {
            self.relink(class, None);
        }
    }

    /// The class to serve next, and its first request.
    #[inline(always)]
    pub(crate) fn first(&mut self, now: Time) -> Option<(NodeId, u32)> {
        let mut node = ROOT;
        for _ in 0..LEVELS_MAX {
            node = match &self.decay {
                None => self.refreshed_first(node)?,
                Some(decay) => decay.least(self.heaps.get(usize::from(node))?.nodes(), now)?,
            };
            if ClassTree::is_class(node) {
                return Some((node, self.locals[usize::from(node)].fifo.head()?));
            }
        }
        None
    }

    /// Removes the request that [`FairQueue::first`] returned, and charges it to its class and the
    /// groups above.
    // on the way of each request; other callers are rare
    #[inline(always)]
    pub(crate) fn pop(&mut self, requests: &mut Requests, class: NodeId, index: u32, now: Time) {
        let Request { cost, len, nested, already_charged, .. } = *requests.at(index);
        let cost = if already_charged { DiskTime::ZERO } else { cost };
        if nested {
            self.remove_nested(class);
        }
        let sole = self.peers.sole();
        let local = &mut self.locals[usize::from(class)];
        requests.unlink_first(&mut local.fifo, index);
        let mut leaves = local.fifo.is_empty();
        if !sole {
            let started = local.shard_tag;
            local.shard_tag = started.wrapping_add(cost.units().min(STEP_MAX));
            let shard_tag = (!leaves).then_some(local.shard_tag);
            self.tree.node(class).advance_virtual_time(started);
            self.peers.publish_class(self.shard, class, shard_tag);
        }
        let mut child = class;
        while child != ROOT {
            let node = self.tree.node(child);
            let parent = node.parent();
            let local = &mut self.locals[usize::from(child)];
            let (start, next) = node.charge(cost, &mut local.fraction);
            self.tree.node(parent).advance_virtual_time(start);
            let heap = &mut self.heaps[usize::from(parent)];
            if leaves {
                local.awake = false;
                heap.remove(&mut self.positions, child);
                self.tree.sleep(child);
            } else if self.decay.is_none() {
                heap.raise_first(&mut self.positions, next);
            }
            if let Some(decay) = &mut self.decay {
                decay.charge(child, now, len, node.shares());
            }
            leaves = heap.is_empty();
            if !sole {
                self.publish_next(parent);
            }
            child = parent;
        }
        self.charge_turn(cost);
    }

    /// Sets how far other shards may be ahead within a class.
    pub(crate) fn set_lead_max(&mut self, lead_max: DiskTime) {
        self.lead_max = lead_max.units().min(STEP_MAX);
    }

    /// How far the next request of `class` leads the requests that other shards have queued; see
    /// [`Peers::lead`].
    pub(crate) fn lead(&self, class: NodeId, turn: u64, filter: PeerFilter) -> Lead {
        if let Some(decay) = &self.decay {
            return self.peers.lead_of_turn(self.shard, decay.shard_tag(), turn, filter);
        }
        let shard_tag = self.locals[usize::from(class)].shard_tag;
        self.peers.lead(&self.tree, self.shard, class, shard_tag, turn, filter)
    }

    /// The class, or a group above it, whose limit is used up, and the time until then.
    #[inline]
    pub(crate) fn limited(&self, class: NodeId, now: Time) -> Option<(NodeId, Time)> {
        if self.tree.is_limited() { self.limited_until(class, now) } else { None }
    }

    #[inline(never)]
    fn limited_until(&self, class: NodeId, now: Time) -> Option<(NodeId, Time)> {
        let closed_until = |node| self.tree.node(node).limiter.closed_until(now);
        self.tree.path(class).find_map(|node| Some((node, closed_until(node)?)))
    }

    /// Charges a request of `bytes` bytes to the limits of a class and of the groups above it.
    #[inline]
    pub(crate) fn charge_limits(&self, class: NodeId, now: Time, bytes: u64) {
        if self.tree.is_limited() {
            self.charge_limits_upwards(class, now, bytes);
        }
    }

    #[inline(never)]
    fn charge_limits_upwards(&self, class: NodeId, now: Time, bytes: u64) {
        self.tree.path(class).for_each(|node| self.tree.node(node).limiter.charge(now, bytes));
    }

    /// Counts no class as backlogged on this shard any more.
    pub(crate) fn abandon(&mut self) {
        for (id, local) in self.locals.iter_mut().enumerate() {
            if core::mem::take(&mut local.awake) {
                self.tree.sleep(id as NodeId);
            }
        }
    }

    /// The child of `parent` with the smallest tag. Other shards may have raised tags since they were
    /// entered into the heap. Tags fall only by changes of classes, and [`FairQueue::follow_changes`]
    /// then enters them again. So only the first entries need a check.
    #[inline(always)]
    fn refreshed_first(&mut self, parent: NodeId) -> Option<NodeId> {
        let (entered, child) = self.heaps.get(usize::from(parent))?.first()?;
        let tag = self.tree.node(child).tag();
        if is_after(tag, entered) { self.raise_first(parent, tag) } else { Some(child) }
    }

    /// Sets the entry of the first child of `parent` to `tag`. Returns the child that is first now.
    #[inline(never)]
    fn raise_first(&mut self, parent: NodeId, mut tag: u64) -> Option<NodeId> {
        let heap = self.heaps.get_mut(usize::from(parent))?;
        loop {
            heap.raise_first(&mut self.positions, tag);
            let (entered, child) = heap.first()?;
            tag = self.tree.node(child).tag();
            if !is_after(tag, entered) {
                self.publish_next(parent);
                return Some(child);
            }
        }
    }

    /// Updates the order for a node and the groups above it after a change of its work or its limit.
    /// `now` is the time of a new request, or `None` if there is none.
    fn relink(&mut self, node: NodeId, now: Option<Time>) {
        for child in self.tree.path(node) {
            let local = &mut self.locals[usize::from(child)];
            let has_work = if ClassTree::is_class(child) {
                !local.fifo.is_empty()
            } else {
                !self.heaps[usize::from(child)].is_empty()
            };
            let wanted = has_work && !local.throttled;
            if has_work != core::mem::replace(&mut local.awake, has_work) {
                self.wake_or_sleep(child, has_work, now);
            }
            if wanted == (self.positions[usize::from(child)] != NOWHERE) {
                return;
            }
            let shared = self.tree.node(child);
            let (parent, tag_now) = (shared.parent(), shared.tag());
            let earliest = shared.virtual_time().wrapping_sub(self.lead_max);
            if wanted {
                self.heaps[usize::from(parent)].insert(&mut self.positions, child, tag_now);
            } else {
                self.heaps[usize::from(parent)].remove(&mut self.positions, child);
            }
            if ClassTree::is_class(child) {
                let local = &mut self.locals[usize::from(child)];
                local.shard_tag = tag::later(local.shard_tag, earliest);
                let tag = wanted.then_some(local.shard_tag);
                self.peers.publish_class(self.shard, child, tag);
            }
            self.publish_next(parent);
        }
        self.publish_turn();
    }

    #[inline(never)]
    fn wake_or_sleep(&self, node: NodeId, has_work: bool, now: Option<Time>) {
        if has_work {
            self.tree.wake_group(node, self.credit(node, now));
        } else {
            self.tree.sleep(node);
        }
    }

    fn publish_next(&self, parent: NodeId) {
        let next = self.heaps[usize::from(parent)].first().map(|(_, child)| child);
        self.peers.publish_next(self.shard, parent, next);
    }

    /// Prepares the local state for `class`. State of an earlier class in the same slot is discarded.
    #[inline]
    fn local_for(&mut self, class: ClassId) {
        let known = self.locals.get(usize::from(class.node()));
        if known.is_none_or(|local| local.owner != Some(class)) {
            self.reset_local(class);
        }
    }

    #[cold]
    fn reset_local(&mut self, class: ClassId) {
        self.make_room_for(class.node());
        let local = &mut self.locals[usize::from(class.node())];
        let shard_tag = self.tree.node(class.node()).virtual_time();
        (local.owner, local.shard_tag, local.fraction) = (Some(class), shard_tag, 0);
    }

    fn make_room_for(&mut self, class: NodeId) {
        let nodes = usize::from(class) + 1;
        if self.locals.len() >= nodes {
            return;
        }
        self.positions.resize(nodes, NOWHERE);
        self.locals.resize_with(nodes, Local::default);
        self.heaps.resize_with(ClassTree::GROUP_NODES, TagHeap::default);
    }
}

impl FairQueue {
    /// Takes a class or group out of the order until `until`. When it returns, it has no credit for
    /// that time, as after idleness.
    pub(crate) fn throttle(&mut self, node: NodeId, until: Time) {
        self.locals[usize::from(node)].throttled = true;
        self.throttled.push((until, node));
        self.relink(node, None);
    }

    /// Returns those classes and groups to the order whose throttling has ended by `now`.
    #[inline]
    pub(crate) fn unthrottle(&mut self, now: Time) {
        if !self.throttled.is_empty() {
            self.unthrottle_until(now);
        }
    }

    #[inline(never)]
    fn unthrottle_until(&mut self, now: Time) {
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

    /// Ends all throttling at the next [`FairQueue::unthrottle`], because its reason may have changed.
    #[cold]
    pub(crate) fn recheck_throttled(&mut self) {
        self.throttled.iter_mut().for_each(|(until, _)| *until = Time::ZERO);
    }

    /// When the next throttled class or group returns that has work. All requests of one may have been
    /// cancelled.
    pub(crate) fn throttled_until(&self) -> Option<Time> {
        let has_work = |&&(_, node): &&(Time, NodeId)| self.locals[usize::from(node)].awake;
        self.throttled.iter().filter(has_work).map(|&(until, _)| until).min()
    }

    /// Whether no class or group is throttled.
    pub(crate) fn nothing_throttled(&self) -> bool {
        self.throttled.is_empty()
    }

    /// Applies changes of classes: limits may have opened, and tags may have fallen. Returns whether
    /// there was a change.
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

impl FairQueue {
    /// Whether a nested request waits that no limit holds back.
    pub(crate) fn nested_waits(&self) -> bool {
        let nested = self.locals.first().map_or(0, |root| root.nested);
        nested > 0 && nested > self.throttled_nested()
    }

    /// Whether a nested request waits in a class.
    pub(crate) fn nested_waits_in(&self, class: NodeId) -> bool {
        self.locals[usize::from(class)].nested > 0
    }

    /// Whether a limit holds a nested request back.
    pub(crate) fn nested_is_throttled(&self) -> bool {
        self.locals.first().is_some_and(|root| root.nested > 0) && self.throttled_nested() > 0
    }

    /// The number of nested requests that wait in classes and groups whose limit is used up.
    #[cold]
    fn throttled_nested(&self) -> u32 {
        let throttled = self.throttled.iter().map(|&(_, node)| node);
        let outermost = throttled.filter(|&node| !self.is_below_throttled(node));
        outermost.map(|node| self.locals[usize::from(node)].nested).sum()
    }

    fn is_below_throttled(&self, node: NodeId) -> bool {
        self.tree.path(node).skip(1).any(|group| self.locals[usize::from(group)].throttled)
    }

    /// A nested request was just queued in `class`.
    #[cold]
    pub(super) fn add_nested(&mut self, class: NodeId) {
        self.change_nested(class, 1);
        self.recheck_throttled();
    }

    /// A nested request has left `class`.
    pub(super) fn remove_nested(&mut self, class: NodeId) {
        self.change_nested(class, -1);
    }

    #[cold]
    fn change_nested(&mut self, class: NodeId, change: i32) {
        for node in self.tree.path(class).chain([ROOT]) {
            let local = &mut self.locals[usize::from(node)];
            local.nested = local.nested.saturating_add_signed(change);
        }
    }
}

impl FairQueue {
    /// Whether shards take turns by disk time (exponential decay only).
    pub(crate) fn has_turns(&self) -> bool {
        self.decay.is_some()
    }

    /// Publishes whether this shard waits for its turn.
    #[inline]
    pub(super) fn publish_turn(&mut self) {
        let Some(decay) = &mut self.decay else { return };
        let waits = self.heaps.get(usize::from(ROOT)).is_some_and(|heap| !heap.is_empty());
        let earliest = self.peers.turns_reached().wrapping_sub(self.lead_max);
        self.peers[self.shard].publish_turn(decay.set_waits(waits, earliest));
    }

    /// Charges this shard a turn of this cost.
    #[inline]
    pub(super) fn charge_turn(&mut self, cost: DiskTime) {
        let Some(decay) = &mut self.decay else { return };
        self.peers.advance_turns(decay.charge_shard(cost));
        self.publish_turn();
    }
}
