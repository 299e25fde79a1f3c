//! An I/O group: the queues of many threads for one disk, with one budget and one tag per class.

use alloc::sync::Arc;
use core::fmt;
use core::time::Duration;

use crate::budget::Budget;
use crate::class_tree::ClassTree;
use crate::discards::Discards;
use crate::peers::Peers;
use crate::seek::Head;
use crate::shard_set::{SHARDS_MAX, ShardSet};
use crate::shared::Shared;
use crate::sync::AtomicU64;
use crate::{
    Ceiling, ClassError, ClassGroupId, ClassId, ClassNode, Control, DiskModel, DiskTime,
    GroupCounters, IoQueue, LatencyTarget, LatencyTargetStatus, Limits, Policy, ServiceOrder, Time,
};

/// The settings of an I/O group.
#[derive(Clone, Debug)]
pub struct GroupConfig {
    /// The costs of requests on the disk.
    pub model: DiskModel,
    /// The policy that decides when requests may be dispatched.
    pub policy: Policy,
    /// The order in which queues serve their classes.
    pub order: ServiceOrder,
    /// The maximum number of shards, at most [`SHARDS_MAX`]. Each reserves about 9 KiB of memory.
    pub shards_max: usize,
    /// The maximum number of requests of one queue, waiting and in the disk together.
    pub requests_max: u32,
    /// The longest time between polls of a busy shard, in nanoseconds: the tick.
    pub tick_nanos: u64,
    /// How [`Policy::PaceWindow`] determines the amount of work in the disk.
    pub control: Control,
    /// The longest latency that a percentile of the requests may have; `None` for no target. Only
    /// [`Policy::PaceWindow`] follows it.
    pub latency_target: Option<LatencyTarget>,
}

impl GroupConfig {
    /// The usual configuration: at most 64 shards of 2^20 requests each, and a tick of 0.5 ms.
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

/// The error of [`IoGroup::join`] if all shards of the group have joined.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct GroupFull {
    /// The maximum number of shards.
    pub shards_max: usize,
}

crate::error_text::debug_as_display!(GroupFull);

impl fmt::Display for GroupFull {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "all {} shards of the I/O group have joined", self.shards_max)
    }
}

impl core::error::Error for GroupFull {}

/// The budget and the priority classes of one disk, shared by the [`IoQueue`]s of up to [`SHARDS_MAX`]
/// threads. A clone is cheap, and is the same group.
///
/// Classes may be added, changed and removed from any thread at any time. A change takes effect with
/// the next dispatch. A shard that sleeps until [`IoQueue::poll_timeout`] does not notice it: poll all
/// queues after a change of shares or limits. No method takes a lock.
#[derive(Clone, Debug)]
pub struct IoGroup {
    shared: Arc<Shared>,
    shards_max: usize,
}

impl IoGroup {
    /// Creates a group without classes and shards.
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

    /// Adds a shard. Returns its queue; when that is dropped, the slot of the shard is free again.
    ///
    /// # Errors
    /// [`GroupFull`] if `shards_max` shards have joined.
    pub fn join(&self) -> Result<IoQueue, GroupFull> {
        let shard = self.shared.peers.join().ok_or(GroupFull { shards_max: self.shards_max })?;
        Ok(IoQueue::new(Arc::clone(&self.shared), shard))
    }

    /// Adds a class of `shares` (1 to [`SHARES_MAX`](crate::SHARES_MAX)): in the group `parent`, or at
    /// the top level.
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

    /// Adds a group of classes, which competes with its siblings like one class of `shares`.
    ///
    /// # Errors
    /// As for [`IoGroup::add_class`]; also if groups nest too deep.
    pub fn add_class_group(
        &self,
        parent: Option<ClassGroupId>,
        shares: u32,
    ) -> Result<ClassGroupId, ClassError> {
        self.shared.tree.add_class_group(parent, shares)
    }

    /// Checks whether [`IoGroup::remove`] would succeed now.
    ///
    /// # Errors
    /// As for [`IoGroup::remove`].
    pub fn check_removable(&self, of: impl Into<ClassNode>) -> Result<(), ClassError> {
        self.shared.tree.live(of)?.check_removable()
    }

    /// Removes a class or a group of classes.
    ///
    /// # Errors
    /// [`ClassError::InUse`] while the class has work queued on any shard, or the group has classes.
    pub fn remove(&self, of: impl Into<ClassNode>) -> Result<(), ClassError> {
        self.shared.tree.remove(of)
    }

    /// Changes the shares of a class or a group. Its lead or lag over others remains the same disk
    /// time.
    ///
    /// # Errors
    /// Shares out of range, or a class that was removed.
    pub fn set_shares(&self, of: impl Into<ClassNode>, shares: u32) -> Result<(), ClassError> {
        let tree = &self.shared.tree;
        tree.set_shares(tree.live(of)?, shares)
    }

    /// Changes the upper limits of a class or a group over all shards together. At most 10 ms of its
    /// debt under the old limits remain.
    ///
    /// # Errors
    /// A limit out of range, or a class that was removed.
    pub fn set_limits(&self, of: impl Into<ClassNode>, limits: &Limits) -> Result<(), ClassError> {
        let tree = &self.shared.tree;
        tree.set_limits(tree.live(of)?, limits)
    }

    /// The present shares of a class.
    ///
    /// # Errors
    /// The class was removed.
    pub fn shares(&self, class: ClassId) -> Result<u32, ClassError> {
        Ok(self.shared.tree.live(class)?.shares())
    }

    /// The costs of requests with which the group was made. Queues may have got others since.
    pub fn model(&self) -> &DiskModel {
        &self.shared.model
    }

    /// The most disk time that may wait in the disk, and be dispatched in one burst: the effective
    /// goal. It is the latency goal, or more if the disk needs more. [`DiskTime::MAX`] if the policy is
    /// open.
    pub fn effective_goal(&self) -> DiskTime {
        self.shared.budget.effective_goal()
    }

    /// Sets the base latency, the latency of the idle disk, which is then no longer learnt. Only
    /// [`Policy::PaceWindow`] uses it.
    pub fn set_base_latency(&self, base: Duration) {
        self.shared.budget.set_base_latency(base);
    }

    /// The base latency that the effective goal allows for, stated or learnt. Zero if it is unknown, or
    /// if the policy does not use it.
    pub fn base_latency(&self) -> DiskTime {
        self.shared.budget.base_latency()
    }

    /// The window: the most disk time in flight when another request is dispatched. A window found by
    /// trials counts as at least two effective goals here, because timeouts for the disk are multiples
    /// of this value.
    pub fn window(&self) -> DiskTime {
        self.shared.budget.window()
    }

    /// The window in force, which trials have found or a latency target limits.
    pub fn window_in_force(&self) -> DiskTime {
        self.shared.budget.window_in_force()
    }

    /// Whether trials find the window now, and not the figures or constants.
    pub fn finds_window(&self) -> bool {
        self.shared.budget.searches_knee()
    }

    /// The disk time in flight that keeps the disk busy according to its figures: at least two
    /// effective goals of [`LATENCY_GOAL_DEFAULT`](crate::LATENCY_GOAL_DEFAULT).
    pub fn busy_window(&self) -> DiskTime {
        self.shared.budget.busy_window()
    }

    /// The status of the latency target; `None` if there is none.
    pub fn latency_target(&self) -> Option<LatencyTargetStatus> {
        self.shared.budget.latency_target()
    }

    /// Replaces the latency target; `None` removes it. Only [`Policy::PaceWindow`] follows it.
    pub fn set_latency_target(&self, target: Option<LatencyTarget>) {
        self.shared.budget.set_latency_target(target);
    }

    /// Sets when the figures are a ceiling. Only [`Policy::PaceWindow`] follows it.
    pub fn set_ceiling(&self, ceiling: Ceiling) {
        self.shared.budget.set_ceiling(ceiling);
    }

    /// Sets the part of the disk that this process has from `now` on, in millionths of its figures, at
    /// most 16,000,000; `None` is the whole disk. While a part is in force, the pace is that part of
    /// the figures. The window is that part of two effective goals, or of the [busy
    /// window](Self::busy_window) if no base latency is known. Trials pause, because those of one
    /// process would take the disk from the others. Only [`Policy::PaceWindow`] and
    /// [`Policy::TokenBucket`] follow it. When the part grows, poll all queues.
    pub fn set_part(&self, now: Time, millionths: Option<u32>) {
        self.shared.budget.set_part(now, millionths);
    }

    /// The counters of the load until `now`, to compare with later ones.
    pub fn counters(&self, now: Time) -> GroupCounters {
        self.shared.budget.counters(now)
    }

    /// How long the disk has [stalled](GroupCounters) at `now`, in nanoseconds; `None` while it answers
    /// or has nothing to do.
    pub fn stalled_nanos(&self, now: Time) -> Option<u64> {
        self.shared.budget.overdue.stalled_nanos(now)
    }

    /// The speed of the disk when work last waited for it, in thousandths of the rates of the model;
    /// 1000 until some has waited. If the pace follows the figures, a faster disk is not detected.
    pub fn speed_permille(&self) -> u64 {
        self.shared.budget.speed_permille()
    }

    /// The disk time of the requests in the disk now.
    pub fn in_flight(&self) -> DiskTime {
        self.shared.budget.in_flight()
    }

    /// The number of discards in the disk now, at most [`DISCARDS_MAX`](crate::DISCARDS_MAX) plus
    /// those of [nested requests](IoQueue::enqueue_nested).
    pub fn discards_in_disk(&self) -> u64 {
        self.shared.discards.in_disk()
    }

    /// Whether requests were given up within the last second and have not completed. Then the disk or a
    /// part of it hangs, or permits were never dropped.
    pub fn hangs(&self, now: Time) -> bool {
        self.shared.budget.overdue.hangs(now)
    }

    /// The number of queues that have joined.
    pub fn queues(&self) -> u64 {
        self.shared.peers.joined()
    }

    /// How late the latest of several shards is to poll, in nanoseconds; 0 for a lone shard. More than
    /// some tenths of a second mean that a thread is blocked, or has no processor.
    pub fn turn_overdue_nanos(&self, now: Time) -> u64 {
        self.shared.peers.overdue_nanos(now)
    }

    /// The disk time that could be dispatched at `now`, at most one effective goal.
    pub fn unused(&self, now: Time) -> DiskTime {
        self.shared.budget.unused(now, DiskTime::ZERO)
    }
}

/// The status of a disk under load: whether it reaches its figures and keeps its latency target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LoadStatus {
    /// The speed of the disk when work last waited for it, in thousandths of its figures; `None` before
    /// any has. 900 or more is healthy. Much less means that the figures are wrong for this mix, or
    /// that the disk is slower than usual. Of several groups the lowest counts. Zero while the disk
    /// [stalls](GroupCounters).
    pub speed_permille: Option<u64>,
    /// The status of the latency target, if there is one. With several groups, it holds or is
    /// attainable if that is so in all, and the window is the smallest one. It does not hold while the
    /// disk stalls.
    pub target: Option<LatencyTargetStatus>,
    /// How long work has waited, and how many requests were within the target.
    pub counters: GroupCounters,
}

impl LoadStatus {
    /// The status at `now` of the disk that these groups share.
    pub fn of<'a>(groups: impl IntoIterator<Item = &'a IoGroup>, now: Time) -> Self {
        let of_groups = groups.into_iter().map(|group| Self::of_group(group, now));
        of_groups.reduce(Self::with).unwrap_or_default()
    }

    fn of_group(group: &IoGroup, now: Time) -> Self {
        let counters = group.counters(now);
        let stands_still = group.stalled_nanos(now).is_some();
        let speed = if stands_still { 0 } else { group.speed_permille() };
        let holds = |target: LatencyTargetStatus| LatencyTargetStatus {
            holds: target.holds && !stands_still,
            ..target
        };
        Self {
            speed_permille: (counters.waited_nanos > 0).then_some(speed),
            target: group.latency_target().map(holds),
            counters,
        }
    }

    fn with(mut self, other: Self) -> Self {
        let speeds = [self.speed_permille, other.speed_permille];
        self.speed_permille = speeds.into_iter().flatten().min();
        if let (Some(all), Some(one)) = (&mut self.target, other.target) {
            all.holds &= one.holds;
            all.attainable &= one.attainable;
            all.window = all.window.min(one.window);
        }
        self.counters.merge(&other.counters);
        self
    }
}
