//! One shard's queue: the verbs by which a thread drives the scheduler.

mod at_once;
mod attempt;
mod completion;
mod discards;
mod end_of_turn;
mod in_disk;
mod late_turn;
mod lateness;
mod lead;
mod looks;
mod mix;
mod notice;
mod outcome;
mod park;
mod peers;
mod run;
mod samples;
mod seek;
mod stop;
mod streams;
mod unattended;
mod unreported;
mod wake_ups;
mod window_bypass;

use alloc::sync::Arc;
use alloc::vec::Vec;

use lateness::Lateness;
use looks::PollGapTracker;
pub use outcome::{
    COST_UNCHECKED_LEN, Completion, EnqueueError, Outcome, REQUEST_COST_MAX, StaleTicket,
};
use stop::{Stop, Wait};
use streams::Streams;
use unattended::StalePeerInflight;
use unreported::UnreportedDispatch;

use crate::budget::Sampler;
use crate::fair_queue::FairQueue;
use crate::flow::FlowRatio;
use crate::requests::{Fifo, Request, Requests, State, Ticket};
use crate::shard_id::ShardId;
use crate::shard_set::WakeList;
use crate::shared::Shared;
use crate::{
    Access, Blocked, ClassCounters, ClassId, DiskModel, DiskTime, Op, Parts, QueueCounters, Time,
};

/// All parts of a single request are at most this part of what a queue holds.
const PARTS_OF_QUEUE: u32 = 8;

/// One shard's queue in an [`IoGroup`](crate::IoGroup).
///
/// The owner calls the verbs and never the other way round. After each
/// [`enqueue`](Self::enqueue), [`complete`](Self::complete),
/// [`cancel`](Self::cancel), wake-up, and at the time that
/// [`poll_timeout`](Self::poll_timeout) names, it calls
/// [`poll_dispatch`](Self::poll_dispatch) until that returns `None`, starts
/// what was returned, and wakes whom [`poll_wake`](Self::poll_wake) names.
#[derive(Debug)]
pub struct IoQueue {
    shared: Arc<Shared>,
    shard: ShardId,
    model: DiskModel,
    grants_permits: bool,
    requests: Requests,
    streams: Streams,
    fair: FairQueue,
    /// Requests in the disk that the window counts, oldest first.
    in_disk: Fifo,
    /// Those that it counts no more, the longest given up first.
    given_up: Fifo,
    /// Disk time of these.
    held: DiskTime,
    /// How long the disk kept the latest that came back, in nanoseconds.
    latest_disk_nanos: u64,
    lateness: Lateness,
    looks: PollGapTracker,
    /// Since when it has waited for others on an open budget, and what of it was spent.
    waits_since: Option<Wait>,
    /// Whom it woke last since they are behind, and what was spent then.
    woken_for: Option<(u64, ShardId)>,
    unattended: StalePeerInflight,
    /// When it looks what others hold unattended, for all who wait for room.
    planned_look: Time,
    /// Since when its next request, or a fresh one, has found the window full.
    full_since: Option<Time>,
    /// Asking to give up an overdue request is pointless before.
    give_up_after: Time,
    /// When it last looked for overdue requests.
    looked_at: Time,
    /// Until then its owner, who was away, may say what has come back.
    away_until: Time,
    classes: Vec<ClassCounters>,
    totals: QueueCounters,
    unreported: UnreportedDispatch,
    flow: FlowRatio,
    stopped: Option<(Stop, Time)>,
    wakes: WakeList,
    /// When it last freed room that nobody was told of.
    room_freed_at: Option<Time>,
    /// Requests in the disk when it last passed on room.
    in_disk_before: u32,
    /// Whether the others know that a nested request waits here, for its turn or for a
    /// limit.
    nested_reported: (bool, bool),
    sampler: Sampler,
}

impl IoQueue {
    pub(crate) fn new(shared: Arc<Shared>, shard: ShardId) -> Self {
        let (tree, peers) = (Arc::clone(&shared.tree), Arc::clone(&shared.peers));
        let lead_max = shared.budget.effective_goal();
        let fair = FairQueue::new(tree, peers, shard, shared.order, lead_max);
        Self {
            requests: Requests::new(shared.requests_max),
            streams: Streams::default(),
            fair,
            in_disk: Fifo::EMPTY,
            given_up: Fifo::EMPTY,
            held: DiskTime::ZERO,
            latest_disk_nanos: 0,
            lateness: Lateness::default(),
            looks: PollGapTracker::BEGIN,
            waits_since: None,
            woken_for: None,
            unattended: StalePeerInflight::UNKNOWN,
            planned_look: Time::ZERO,
            full_since: None,
            give_up_after: Time::ZERO,
            looked_at: Time::ZERO,
            away_until: Time::ZERO,
            classes: Vec::new(),
            totals: QueueCounters::default(),
            unreported: UnreportedDispatch::new(&shared.model, &shared.budget),
            flow: FlowRatio::new(),
            stopped: None,
            wakes: WakeList::default(),
            room_freed_at: None,
            in_disk_before: 0,
            nested_reported: (false, false),
            sampler: Sampler::default(),
            model: shared.model.clone(),
            grants_permits: false,
            shared,
            shard,
        }
    }

    /// This queue's place in its group.
    pub fn shard(&self) -> ShardId {
        self.shard
    }

    /// What requests cost from now on; those that were queued keep their cost.
    ///
    /// The group's effective goal follows at once. Each queue of the group has
    /// to be told, also one that joins later. [`Policy::LittlesLaw`] keeps the
    /// rates that it was made with.
    ///
    /// [`Policy::LittlesLaw`]: crate::Policy::LittlesLaw
    pub fn set_model(&mut self, model: DiskModel) {
        self.shared.budget.set_model(&model);
        self.fair.set_lead_max(self.shared.budget.effective_goal());
        self.unreported = UnreportedDispatch::new(&model, &self.shared.budget);
        self.model = model;
    }

    /// How much disk time may wait in the disk and go in one burst, as
    /// [`IoGroup::effective_goal`](crate::IoGroup::effective_goal) says.
    pub fn effective_goal(&self) -> DiskTime {
        self.shared.budget.effective_goal()
    }

    /// What a request costs now, unless it goes on where another ended.
    pub fn cost(&self, op: Op, len: u64) -> DiskTime {
        self.model.cost(op, len)
    }

    /// What a request costs that is in the disk; that of one which waits is only
    /// known when it goes, if the model looks at places. `None` for no such.
    pub fn cost_of(&self, ticket: Ticket) -> Option<DiskTime> {
        self.requests.get(ticket).map(|request| request.cost)
    }

    /// Queues a request of `len` bytes behind the others of its class: an
    /// [`Op`], or one [at a place](Op::at).
    ///
    /// The request stays one piece whatever it costs; see [`IoQueue::split`].
    /// Where the model has another price for requests that go on where one of
    /// the same [`Op`] and file ended, this one has that price if, when it goes,
    /// the other was the last read or write that went from any queue of the
    /// group; or if the other is in the disk from this queue, and all that went
    /// from the group for a window went on where others ended.
    ///
    /// # Errors
    /// The queue is full, the class was removed, or the request costs more
    /// than [`REQUEST_COST_MAX`](crate::REQUEST_COST_MAX).
    pub fn enqueue(
        &mut self,
        now: Time,
        class: ClassId,
        access: impl Into<Access>,
        len: u64,
    ) -> Result<Ticket, EnqueueError> {
        self.queue(now, class, access.into(), len, false)
    }

    #[inline(always)]
    fn queue(
        &mut self,
        now: Time,
        class: ClassId,
        access: Access,
        len: u64,
        nested: bool,
    ) -> Result<Ticket, EnqueueError> {
        self.shared.tree.class(class).map_err(EnqueueError::Class)?;
        let ticket = self.insert(now, class, access, len)?;
        self.requests.at_mut(ticket.slot()).nested = nested;
        if let Err(removed) = self.fair.push(&mut self.requests, class, ticket.slot()) {
            self.requests.remove(ticket.slot());
            return Err(EnqueueError::Class(removed));
        }
        self.mark_busy(now);
        let is_fresh = self.note_class(class).enqueued(now, access, len);
        if is_fresh {
            self.full_since = None;
        }
        self.requests.at_mut(ticket.slot()).fresh = is_fresh;
        self.resume_at_once();
        Ok(ticket)
    }

    /// The next request to start now, if any may go.
    ///
    /// The answer can change with every other verb, with time (see
    /// [`poll_timeout`](Self::poll_timeout)), and when another shard frees
    /// room, which its owner tells through [`poll_wake`](Self::poll_wake).
    pub fn poll_dispatch(&mut self, now: Time) -> Option<Ticket> {
        self.note_timer(now);
        self.follow_changes(now);
        self.begin_turn(now);
        self.give_up_overdue(now);
        self.fair.unthrottle(now);
        let mut attempt = self.attempt(now);
        if let Err(stop) = attempt
            && self.waits_for_room(now, &stop)
            && self.self_wake_deadline() <= now
            && !self.nested_waits(now)
        {
            // too little of its own will come back to rely on, so others must
            // wake it
            self.shared.peers.wait_for_room(self.shard);
            if self.shared.budget.room_after_mark() {
                attempt = self.attempt(now);
            }
        }
        if attempt.is_err() {
            self.report_nested(now);
        }
        self.note_stop(now, attempt.err());
        debug_assert_eq!(
            attempt.is_err(),
            self.stopped.is_some(),
            "where nothing goes there is a reason"
        );
        attempt.ok()
    }

    /// Takes a request back that still waits, and for which nothing was charged,
    /// or that was [set aside](Self::park).
    /// Returns whether it was still waiting. Takes constant time, plus a
    /// logarithm of the number of classes if it was the last of its class.
    pub fn cancel(&mut self, now: Time, ticket: Ticket) -> bool {
        let Some(&request) = self.requests.get(ticket) else { return false };
        match request.state {
            State::Queued => {
                self.fair.remove(&mut self.requests, request.class, ticket.slot());
            }
            State::Parked => {}
            State::Free | State::InDisk | State::Overdue => return false,
        }
        // it went once
        self.totals.completed += u64::from(request.already_charged);
        self.requests.remove(ticket.slot());
        self.class_counters(&request).cancelled(now);
        self.resume_at_once();
        true
    }

    /// Cuts a request into parts that each cost at most one effective goal:
    /// powers of two, at most 16 MiB. Larger ones only where more than an
    /// eighth of what the queue holds would be parts of this request. Counted
    /// for the class if there are several.
    pub fn split(&mut self, class: ClassId, op: Op, len: u64) -> Parts {
        let goal = self.shared.budget.effective_goal();
        let part_max = self.model.part_max(op, len, goal);
        if len <= part_max {
            return Parts::new(len, part_max);
        }
        if self.shared.tree.class(class).is_ok() {
            let counters = self.note_class(class);
            counters.splits += 1;
            counters.split_bytes = counters.split_bytes.wrapping_add(len);
        }
        let parts_max = u64::from(self.requests.max() / PARTS_OF_QUEUE).max(1);
        let least = len.div_ceil(parts_max).checked_next_power_of_two();
        Parts::new(len, part_max.max(least.unwrap_or(len)))
    }

    /// Requests that wait or are in the disk.
    pub fn len(&self) -> usize {
        self.requests.len() as usize
    }

    /// Whether nothing waits and nothing is in the disk.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Why `poll_dispatch` last returned `None`, if it did.
    pub fn blocked(&self) -> Option<Blocked> {
        self.stopped.map(|(stop, _)| stop.reason)
    }

    /// What this queue has counted for a class; `None` if it never had any of it.
    pub fn class(&self, class: ClassId) -> Option<&ClassCounters> {
        self.classes.get(class.index())
    }

    /// What this queue has counted for every class, by [`ClassId::index`].
    pub fn classes(&self) -> &[ClassCounters] {
        &self.classes
    }

    /// What this queue has counted in all.
    pub fn counters(&self) -> QueueCounters {
        QueueCounters { flow_ratio_permille: self.flow.permille(), ..self.totals.clone() }
    }

    /// The counters of a class, for which there is room from now on.
    #[inline(always)]
    fn note_class(&mut self, class: ClassId) -> &mut ClassCounters {
        if self.classes.len() <= class.index() {
            self.classes.resize_with(class.index() + 1, ClassCounters::default);
        }
        let counters = &mut self.classes[class.index()];
        counters.belong_to(class.to_bits());
        counters
    }

    fn class_counters(&mut self, request: &Request) -> &mut ClassCounters {
        &mut self.classes[ClassId::index_of(request.class)]
    }
}

impl Drop for IoQueue {
    /// Gives back what the queue holds of the budget: nobody will tell it of
    /// completions any more. Shards that wait for it find out when another
    /// polls or completes; [`IoQueue::leave`] tells whom to wake at once.
    fn drop(&mut self) {
        while let Some(oldest) = self.in_disk.head() {
            self.leave_window(oldest);
        }
        self.fair.abandon();
        self.shared.leave(self.shard);
        self.shared.tree.note_change();
    }
}
