//! The queues of many threads on one device: one budget, one tag per class.

use alloc::sync::Arc;
use core::fmt;
use core::time::Duration;

use crate::budget::Budget;
use crate::class_tree::ClassTree;
use crate::discards::Discards;
use crate::head::Head;
use crate::peers::Peers;
use crate::shard_id::SHARDS_MAX;
use crate::shard_set::ShardSet;
use crate::shared::Shared;
use crate::sync::AtomicU64;
use crate::{
    Ceiling, ClassError, ClassGroupId, ClassId, Control, DiskModel, DiskTime, GroupCounters,
    IoQueue, LatencyTarget, LatencyTargetStatus, Limits, Policy, ServiceOrder, Time,
};

/// What an I/O group is made of.
#[derive(Clone, Debug)]
pub struct GroupConfig {
    /// What requests cost on the disk.
    pub model: DiskModel,
    /// When requests may go to the disk.
    pub policy: Policy,
    /// In which order queues serve their classes.
    pub order: ServiceOrder,
    /// Most shards that will join, at most [`SHARDS_MAX`]. Memory is set aside
    /// for each: about 9 KiB.
    pub shards_max: usize,
    /// Most requests that one queue holds, waiting and in the disk together.
    pub requests_max: u32,
    /// How often a busy shard polls at the least, in nanoseconds.
    pub tick_nanos: u64,
    /// What decides how much work [`Policy::PaceWindow`] sends to the disk.
    pub control: Control,
    /// What requests may take in the disk. Only [`Policy::PaceWindow`] heeds
    /// it; without one, pace and window stay what the model says.
    pub latency_target: Option<LatencyTarget>,
}

impl GroupConfig {
    /// The usual configuration: at most 64 shards of a million requests each,
    /// a tick of 0.5 ms.
    pub const fn new(model: DiskModel, policy: Policy) -> Self {
        Self {
            model,
            policy,
            order: ServiceOrder::StartTime,
            shards_max: 64,
            requests_max: 1 << 20,
            tick_nanos: 500_000,
            control: Control::Adaptive,
            latency_target: None,
        }
    }
}

/// All places for shards are taken.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct GroupFull {
    /// How many there are.
    pub shards_max: usize,
}

crate::error_text::debug_as_display!(GroupFull);

impl fmt::Display for GroupFull {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "all {} shards of the I/O group have joined", self.shards_max)
    }
}

impl core::error::Error for GroupFull {}

/// One disk's budget and priority classes, shared by the [`IoQueue`]s of up to
/// [`SHARDS_MAX`] threads. Cheap to clone; every clone is the same group.
///
/// Classes may be added, changed and removed from any thread at any time; a
/// change takes effect with the next dispatch. A shard that sleeps until
/// [`IoQueue::poll_timeout`] does not notice it, so shares and limits that
/// change are to be followed by a poll of all queues. Nothing here takes a lock.
#[derive(Clone, Debug)]
pub struct IoGroup {
    shared: Arc<Shared>,
    shards_max: usize,
}

impl IoGroup {
    /// A group without classes and shards.
    pub fn new(config: GroupConfig) -> Self {
        let shards_max = config.shards_max.min(SHARDS_MAX);
        let sole = shards_max == 1;
        let shared = Shared {
            budget: Budget::new(
                &config.policy,
                &config.model,
                sole,
                config.control,
                config.latency_target,
            ),
            model: config.model,
            tree: Arc::new(ClassTree::new(sole)),
            peers: Arc::new(Peers::new(shards_max, ClassTree::NODES)),
            discards: Discards::new(&config.policy, shards_max, sole),
            head: Arc::new(Head::default()),
            nested: ShardSet::default(),
            nested_throttled: ShardSet::default(),
            nested_bypasses: AtomicU64::new(0),
            order: config.order,
            requests_max: config.requests_max,
            tick_nanos: config.tick_nanos,
        };
        Self { shared: Arc::new(shared), shards_max }
    }

    /// A queue for one more shard. Its place is free again when it is dropped.
    ///
    /// # Errors
    /// [`GroupFull`] when `shards_max` shards have joined.
    pub fn join(&self) -> Result<IoQueue, GroupFull> {
        let shard = self.shared.peers.join().ok_or(GroupFull { shards_max: self.shards_max })?;
        Ok(IoQueue::new(Arc::clone(&self.shared), shard))
    }

    /// Adds a class of `shares` (1 to [`SHARES_MAX`](crate::SHARES_MAX)), in
    /// `parent` or alongside the groups.
    ///
    /// # Errors
    /// Shares out of range, no room, or a parent that was removed.
    pub fn add_class(
        &self,
        parent: Option<ClassGroupId>,
        shares: u32,
    ) -> Result<ClassId, ClassError> {
        self.shared.tree.add_class(parent, shares)
    }

    /// Adds a group of classes, which competes with its siblings as one class
    /// of `shares`.
    ///
    /// # Errors
    /// As for [`IoGroup::add_class`]; also when groups nest too deep.
    pub fn add_class_group(
        &self,
        parent: Option<ClassGroupId>,
        shares: u32,
    ) -> Result<ClassGroupId, ClassError> {
        self.shared.tree.add_class_group(parent, shares)
    }

    /// Whether [`IoGroup::remove_class`] would remove it now.
    ///
    /// # Errors
    /// As of that.
    pub fn check_class_removable(&self, class: ClassId) -> Result<(), ClassError> {
        self.shared.tree.class(class)?.check_removable()
    }

    /// Whether [`IoGroup::remove_class_group`] would remove it now.
    ///
    /// # Errors
    /// As of that.
    pub fn check_class_group_removable(&self, group: ClassGroupId) -> Result<(), ClassError> {
        self.shared.tree.class_group(group)?.check_removable()
    }

    /// Removes a class.
    ///
    /// # Errors
    /// [`ClassError::InUse`] while it has work queued on any shard.
    pub fn remove_class(&self, class: ClassId) -> Result<(), ClassError> {
        self.shared.tree.remove_class(class)
    }

    /// Removes a group of classes.
    ///
    /// # Errors
    /// [`ClassError::InUse`] while it has classes.
    pub fn remove_class_group(&self, group: ClassGroupId) -> Result<(), ClassError> {
        self.shared.tree.remove_class_group(group)
    }

    /// Changes the shares of a class. What it is ahead of others, or behind,
    /// stays as much disk time.
    ///
    /// # Errors
    /// Shares out of range, or a class that was removed.
    pub fn set_shares(&self, class: ClassId, shares: u32) -> Result<(), ClassError> {
        let tree = &self.shared.tree;
        tree.set_shares(tree.class(class)?, shares)
    }

    /// Changes the shares of a group of classes.
    ///
    /// # Errors
    /// Shares out of range, or a group that was removed.
    pub fn set_group_shares(&self, group: ClassGroupId, shares: u32) -> Result<(), ClassError> {
        let tree = &self.shared.tree;
        tree.set_shares(tree.class_group(group)?, shares)
    }

    /// Changes the upper limits of a class, over all shards. Of what it owes
    /// under the old ones, 10 ms remain at most.
    ///
    /// # Errors
    /// A limit out of range, or a class that was removed.
    pub fn set_limits(&self, class: ClassId, limits: &Limits) -> Result<(), ClassError> {
        let tree = &self.shared.tree;
        tree.set_limits(tree.class(class)?, limits)
    }

    /// Changes the upper limits of a group of classes together, over all shards.
    ///
    /// # Errors
    /// A limit out of range, or a group that was removed.
    pub fn set_group_limits(&self, group: ClassGroupId, limits: &Limits) -> Result<(), ClassError> {
        let tree = &self.shared.tree;
        tree.set_limits(tree.class_group(group)?, limits)
    }

    /// The present shares of a class.
    ///
    /// # Errors
    /// The class was removed.
    pub fn shares(&self, class: ClassId) -> Result<u32, ClassError> {
        Ok(self.shared.tree.class(class)?.shares())
    }

    /// What requests cost, unless its queues were told otherwise later.
    pub fn model(&self) -> &DiskModel {
        &self.shared.model
    }

    /// How much disk time may wait in the disk and go in one burst: the
    /// latency goal, or more where the disk itself needs more.
    /// [`DiskTime::MAX`] when the policy is open.
    pub fn effective_goal(&self) -> DiskTime {
        self.shared.budget.effective_goal()
    }

    /// The latency of the idle disk is known from now on, and not learnt any
    /// more; only [`Policy::PaceWindow`] uses it.
    pub fn set_base_latency(&self, base: Duration) {
        self.shared.budget.set_base_latency(base);
    }

    /// The latency of the idle disk that the goal allows for, stated or learnt;
    /// zero if it is not known, or the policy has no use for it.
    pub fn base_latency(&self) -> DiskTime {
        self.shared.budget.base_latency()
    }

    /// The most disk time that may be unfinished when another request goes. Where
    /// trials find the window it is theirs, but never less than two effective goals: this is what
    /// patience with the disk is counted in.
    pub fn window(&self) -> DiskTime {
        self.shared.budget.window()
    }

    /// The window in force: as trials have found it, or as a latency target caps it.
    pub fn window_in_force(&self) -> DiskTime {
        self.shared.budget.window_in_force()
    }

    /// Whether trials find the window now, and not the figures or constants.
    pub fn finds_window(&self) -> bool {
        self.shared.budget.searches_knee()
    }

    /// Disk time that keeps the disk busy, as far as its figures say: two effective goals of
    /// [`LATENCY_GOAL_DEFAULT`](crate::LATENCY_GOAL_DEFAULT) or more.
    pub fn busy_window(&self) -> DiskTime {
        self.shared.budget.busy_window()
    }

    /// What became of the latency target; `None` where there is none.
    pub fn latency_target(&self) -> Option<LatencyTargetStatus> {
        self.shared.budget.latency_target()
    }

    /// Another latency target, or none, from now on. [`Policy::PaceWindow`] alone follows it.
    pub fn set_latency_target(&self, target: Option<LatencyTarget>) {
        self.shared.budget.set_latency_target(target);
    }

    /// When the figures are a ceiling, from now on. [`Policy::PaceWindow`] alone follows it.
    pub fn set_ceiling(&self, ceiling: Ceiling) {
        self.shared.budget.set_ceiling(ceiling);
    }

    /// The disk is this process's to this part from `now` on: in millionths of what its figures
    /// say, up to 16,000,000, or alone. While a part is in force, the pace is that part of the
    /// figures, and the window that part of two effective goals, or of the [busy
    /// window](Self::busy_window) where no base latency is known. Trials pause, as one process
    /// would take the disk from the others by them. [`Policy::PaceWindow`] and
    /// [`Policy::TokenBucket`] alone follow it. Where the part grows, queues are to be polled.
    pub fn set_part(&self, now: Time, millionths: Option<u32>) {
        self.shared.budget.set_part(now, millionths);
    }

    /// What became of the load until `now`, to compare with a later look.
    pub fn counters(&self, now: Time) -> GroupCounters {
        self.shared.budget.counters(now)
    }

    /// For how long the disk has [stalled](GroupCounters) `now`, in
    /// nanoseconds; `None` where it answers or has nothing to do.
    pub fn stalled_nanos(&self, now: Time) -> Option<u64> {
        self.shared.budget.overdue.stalled_nanos(now)
    }

    /// Thousandths of the model's rate that the disk delivered when work last
    /// waited for it; 1000 until some has. Where the pace is that of the figures, a
    /// disk that is faster than they say is not seen to be.
    pub fn speed_permille(&self) -> u64 {
        self.shared.budget.speed_permille()
    }

    /// Disk time of the requests in the disk now.
    pub fn in_flight(&self) -> DiskTime {
        self.shared.budget.in_flight()
    }

    /// How many discards are in the disk now, at most [`DISCARDS_MAX`](crate::DISCARDS_MAX)
    /// and those of [nested requests](IoQueue::enqueue_nested).
    pub fn discards_in_disk(&self) -> u64 {
        self.shared.discards.in_disk()
    }

    /// Whether requests were given up within the last second and did not come
    /// back: the disk hangs, or a part of it, or permits were forgotten.
    pub fn hangs(&self, now: Time) -> bool {
        self.shared.budget.overdue.hangs(now)
    }

    /// Queues that have joined.
    pub fn queues(&self) -> u64 {
        self.shared.peers.joined()
    }

    /// By how much the latest of several shards is later than it meant to poll, in nanoseconds.
    /// More than some tenths of a second is a thread that is stuck, or has no processor.
    pub fn turn_overdue_nanos(&self, now: Time) -> u64 {
        self.shared.peers.overdue_nanos(now)
    }

    /// Disk time that could be dispatched at `now`, at most one effective goal.
    pub fn unused(&self, now: Time) -> DiskTime {
        self.shared.budget.unused(now, DiskTime::ZERO)
    }
}
