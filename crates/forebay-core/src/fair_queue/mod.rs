//! Who is next: start-time fair queueing over classes and groups of classes
//! (Goyal, Vin, Cheng: Start-time Fair Queuing, SIGCOMM 1996).
//!
//! The tags belong to the group of shards; this is one shard's view of them.

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

/// In which order a queue serves its classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServiceOrder {
    /// Start-time fair queueing by disk time, over all shards.
    StartTime,
    /// The fair queue of 2016, to compare with: per shard, by weights that
    /// grow with the size of a request, forgotten exponentially. Shards take
    /// turns by disk time, whatever their classes. On each shard a class has
    /// about half a request per `tau_nanos` beyond its share, since what it used
    /// is forgotten meanwhile.
    #[cfg(feature = "history")]
    ExponentialDecay {
        /// Time in which what was used falls by a factor e, in nanoseconds.
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

/// What one shard keeps of a class or group of classes.
#[derive(Debug, Default)]
struct Local {
    /// Of a class, its requests.
    fifo: Fifo,
    /// Of a class, which one had the place when this shard last had to do with
    /// it.
    owner: Option<ClassId>,
    /// How far this shard has come within the class, in disk time.
    shard_tag: u64,
    /// What dividing by the shares left over so far.
    fraction: u32,
    /// Holders' requests that wait in the class, or in those of the group.
    nested: u32,
    /// When a request of it last came back to this shard.
    completed_at: Time,
    /// Counted among the shards that have work of it.
    awake: bool,
    /// Its limit is used up: until it is open again it is out of the order.
    throttled: bool,
}

/// The order in which one shard serves its classes.
#[derive(Debug)]
pub(crate) struct FairQueue {
    tree: Arc<ClassTree>,
    peers: Arc<Peers>,
    shard: ShardId,
    /// Per group of classes, its children with work queued here.
    heaps: Vec<TagHeap>,
    /// Per node, its place in the heap of its parent.
    positions: Vec<u16>,
    locals: Vec<Local>,
    throttled: Vec<(Time, NodeId)>,
    decay: Option<Decay>,
    /// How far other shards may be ahead within a class without having taken
    /// what is this shard's: it keeps that much when it has nothing queued for
    /// a moment, or a shard with one request at a time would lose it each time.
    lead_max: u64,
    /// The tree's changes that were followed.
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

    /// Queues a request behind the others of its class, unless that was
    /// removed.
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

    /// Queues the only request of its class.
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

    /// Queues a request before the others of its class, unless that was
    /// removed.
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

    /// Takes a request out of the middle of its class.
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

    /// The class whose turn it is, and its first request.
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

    /// Takes the first request of the class that [`FairQueue::first`] named,
    /// and charges it to the class and the groups above.
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

    /// Sets how far other shards may be ahead of this one's turn.
    pub(crate) fn set_lead_max(&mut self, lead_max: DiskTime) {
        self.lead_max = lead_max.units().min(STEP_MAX);
    }

    /// How far the next request of `class` leads what other shards have
    /// queued; see [`Peers::lead`].
    pub(crate) fn lead(&self, class: NodeId, turn: u64, filter: PeerFilter) -> Lead {
        if let Some(decay) = &self.decay {
            return self.peers.lead_of_turn(self.shard, decay.shard_tag(), turn, filter);
        }
        let shard_tag = self.locals[usize::from(class)].shard_tag;
        self.peers.lead(&self.tree, self.shard, class, shard_tag, turn, filter)
    }

    /// The class, or a group it is in, whose limit is used up, and until when.
    #[inline]
    pub(crate) fn limited(&self, class: NodeId, now: Time) -> Option<(NodeId, Time)> {
        if self.tree.is_limited() { self.limited_until(class, now) } else { None }
    }

    #[inline(never)]
    fn limited_until(&self, class: NodeId, now: Time) -> Option<(NodeId, Time)> {
        let closed_until = |node| self.tree.node(node).limiter.closed_until(now);
        self.tree.path(class).find_map(|node| Some((node, closed_until(node)?)))
    }

    /// Charges the limits of a class and of the groups it is in.
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

    /// Nothing of this queue counts as backlogged any more.
    pub(crate) fn abandon(&mut self) {
        for (id, local) in self.locals.iter_mut().enumerate() {
            if core::mem::take(&mut local.awake) {
                self.tree.sleep(id as NodeId);
            }
        }
    }

    /// The child of `parent` with the smallest tag. Other shards may have
    /// moved tags on since they were entered into the heap; they do not move
    /// back but where [`FairQueue::follow_changes`] enters them again, so only
    /// the first entries need another look.
    #[inline(always)]
    fn refreshed_first(&mut self, parent: NodeId) -> Option<NodeId> {
        let (entered, child) = self.heaps.get(usize::from(parent))?.first()?;
        let tag = self.tree.node(child).tag();
        if is_after(tag, entered) { self.raise_first(parent, tag) } else { Some(child) }
    }

    /// The tag of the first child of `parent` has become `tag`. Returns which child is the first now.
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

    /// Enters a node into the order or takes it out, after its work or its
    /// limit has changed, and the groups above it with it; `now` if that is new.
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

    /// What this shard keeps of `class`: nothing of one that had its place.
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
    /// Takes a class or group out of the order until `until`. When it returns
    /// it has no credit for the time, as after idleness.
    pub(crate) fn throttle(&mut self, node: NodeId, until: Time) {
        self.locals[usize::from(node)].throttled = true;
        self.throttled.push((until, node));
        self.relink(node, None);
    }

    /// Brings back whatever was throttled until `now` or earlier.
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

    /// Reads limits and tags if classes have changed: limits may have
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
    /// Whether shards take turns.
    pub(crate) fn has_turns(&self) -> bool {
        self.decay.is_some()
    }

    /// Tells the other shards whether this one waits for its turn.
    #[inline]
    pub(super) fn publish_turn(&mut self) {
        let Some(decay) = &mut self.decay else { return };
        let waits = self.heaps.get(usize::from(ROOT)).is_some_and(|heap| !heap.is_empty());
        let earliest = self.peers.turns_reached().wrapping_sub(self.lead_max);
        self.peers[self.shard].publish_turn(decay.set_waits(waits, earliest));
    }

    /// This shard has had a turn of this cost.
    #[inline]
    pub(super) fn charge_turn(&mut self, cost: DiskTime) {
        let Some(decay) = &mut self.decay else { return };
        self.peers.advance_turns(decay.charge_shard(cost));
        self.publish_turn();
    }
}
