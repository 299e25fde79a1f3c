//! The queue of one shard: the verbs by which a thread drives the scheduler.
//!
//! The queue owns its components, and only it calls across them: the waiting requests
//! ([`fair`](IoQueue::fair)), the requests in the disk, the attendance of the thread, the waits for
//! other shards and their wake-ups, the prices, and the counters. [`dispatch`] has the steps of a
//! request to the disk.
//!
//! Decision: `docs/decisions/0001-sans-io-verbs.md`.

mod attendance;
mod dispatch;
mod in_disk;
mod peer_wait;
mod report;
mod turn;
mod types;

use alloc::sync::Arc;

use attendance::Attendance;
use in_disk::InDisk;
use peer_wait::{PeerWait, Wakeups};
use report::{DiskNanos, Report};
pub use types::{
    COST_UNCHECKED_LEN, Completion, EnqueueError, Outcome, REQUEST_COST_MAX, StaleTicket,
};
use types::{Stop, demand};

use crate::budget::{Budget, Demand, Reservation};
use crate::fair_queue::FairQueue;
use crate::requests::{Requests, State, Ticket};
use crate::seek::SeekPricer;
use crate::shard_set::ShardId;
use crate::shared::Shared;
use crate::{
    Access, Blocked, ClassCounters, ClassId, DiskModel, DiskTime, Op, Parts, QueueCounters, Time,
};

/// A request is split into at most the maximum of requests of a queue divided by this. With a smaller
/// number, one large request fills the queue.
const PARTS_OF_QUEUE: u32 = 8;

/// The queue of one shard in an [`IoGroup`](crate::IoGroup).
///
/// The owner calls the verbs; the queue never calls the owner. Call
/// [`poll_dispatch`](Self::poll_dispatch) after each [`enqueue`](Self::enqueue),
/// [`complete`](Self::complete) and [`cancel`](Self::cancel), after a wake-up, and at the time of
/// [`poll_timeout`](Self::poll_timeout). Call it until it returns `None`, start the requests that it
/// returned, and wake the shards that [`poll_wake`](Self::poll_wake) returns.
#[derive(Debug)]
pub struct IoQueue {
    shared: Arc<Shared>,
    shard: ShardId,
    requests: Requests,
    fair: FairQueue,
    in_disk: InDisk,
    attendance: Attendance,
    peer_wait: PeerWait,
    wakeups: Wakeups,
    pricer: SeekPricer,
    report: Report,
}

impl IoQueue {
    pub(crate) fn new(shared: Arc<Shared>, shard: ShardId) -> Self {
        let (tree, peers) = (Arc::clone(&shared.tree), Arc::clone(&shared.peers));
        let lead_max = shared.budget.effective_goal();
        let model = shared.model.clone();
        Self {
            requests: Requests::new(shared.requests_max),
            fair: FairQueue::new(tree, peers, shard, shared.order, lead_max),
            in_disk: InDisk::default(),
            attendance: Attendance::default(),
            peer_wait: PeerWait::NONE,
            wakeups: Wakeups::default(),
            report: Report::new(has_prices(&model, &shared.budget)),
            pricer: SeekPricer::new(model, Arc::clone(&shared.head), shard),
            shared,
            shard,
        }
    }

    /// Leaves the group, as a drop does. Returns the shards to wake, because they wait for budget that
    /// this queue held.
    pub fn leave(mut self, now: Time) -> impl Iterator<Item = ShardId> + Send + use<> {
        let mut wakes = core::mem::take(&mut self.wakeups.list);
        let shared = Arc::clone(&self.shared);
        // a shard that is woken must find that this one has left
        drop(self);
        shared.head.run.take_waiting(&shared.peers, now, &mut wakes);
        shared.peers.take_waiting_for_room(now, &mut wakes);
        core::iter::from_fn(move || wakes.pop())
    }

    /// Makes this a queue of permits: their holders, and not the owner of the queue, do the I/O and
    /// report its end. A permit that is held for long while no other I/O is in the disk is no
    /// [stall](crate::GroupCounters).
    pub fn grant_permits(&mut self) {
        self.in_disk.is_of_permits = true;
    }

    /// The number of this queue in its group.
    pub fn shard(&self) -> ShardId {
        self.shard
    }

    /// Sets the costs of later requests. Requests that are already queued keep their cost.
    ///
    /// The effective goal of the group follows at once. Set the model on each queue of the group, also
    /// on those that join later. [`Policy::LittlesLaw`] keeps the rates that it was made with.
    ///
    /// [`Policy::LittlesLaw`]: crate::Policy::LittlesLaw
    pub fn set_model(&mut self, model: DiskModel) {
        self.shared.budget.set_model(&model);
        self.fair.set_lead_max(self.shared.budget.effective_goal());
        self.report.set_prices(has_prices(&model, &self.shared.budget));
        self.pricer.set_model(model);
    }

    /// The most disk time that may wait in the disk and be dispatched in one burst, as
    /// [`IoGroup::effective_goal`](crate::IoGroup::effective_goal) says.
    #[inline]
    pub fn effective_goal(&self) -> DiskTime {
        self.shared.budget.effective_goal()
    }

    /// The present cost of a request of `len` bytes that is not sequential: it does not begin where
    /// another one ended.
    pub fn cost(&self, op: Op, len: u64) -> DiskTime {
        self.pricer.model().cost(op, len)
    }

    /// The cost of a request in the disk; `None` if the ticket names no request. If the model depends
    /// on positions, the cost of a waiting request is final only when it is dispatched.
    pub fn cost_of(&self, ticket: Ticket) -> Option<DiskTime> {
        self.requests.get(ticket).map(|request| request.cost)
    }

    /// Queues a request of `len` bytes behind the others of its class: an [`Op`], or one [at an
    /// offset](Op::at).
    ///
    /// The request stays in one piece at any cost; see [`IoQueue::split`].
    ///
    /// Some models have another price for a sequential request, which begins where another one of the
    /// same [`Op`] and file ended. A request has that price in two cases. Either the other one was the
    /// last read or write dispatched from any queue of the group. Or the other one is in the disk from
    /// this queue, and the group has dispatched only sequential requests for a window.
    ///
    /// # Errors
    /// The queue is full, the class was removed, or the request costs more than
    /// [`REQUEST_COST_MAX`](crate::REQUEST_COST_MAX).
    pub fn enqueue(
        &mut self,
        now: Time,
        class: ClassId,
        access: impl Into<Access>,
        len: u64,
    ) -> Result<Ticket, EnqueueError> {
        self.queue(now, class, access.into(), len, false)
    }

    /// Like [`enqueue`](Self::enqueue), for a nested request: its owner has another request in the
    /// disk, and will not complete that before this one is done. Two such owners would wait for each
    /// other if their requests filled the window.
    ///
    /// The request has its place in the order like any other. But while it waits, the window binds no
    /// shard of the group: the requests before it are dispatched at the pace, and then it is. So the
    /// excess over the window is at most what the pace hands out while it waits.
    /// [`QueueCounters::window_bypasses`] counts these requests. With a policy without a rate, all
    /// requests before it are dispatched at once.
    ///
    /// [`Limits`](crate::Limits) bind it like any other. While one holds it back, the requests of its
    /// owner would keep others out of the disk. So those may exceed the window meanwhile, at the pace,
    /// by at most eight windows.
    ///
    /// [`QueueCounters::window_bypasses`]: crate::QueueCounters::window_bypasses
    ///
    /// # Errors
    /// As for [`enqueue`](Self::enqueue).
    pub fn enqueue_nested(
        &mut self,
        now: Time,
        class: ClassId,
        access: impl Into<Access>,
        len: u64,
    ) -> Result<Ticket, EnqueueError> {
        self.queue(now, class, access.into(), len, true)
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
        self.shared.tree.live(class).map_err(EnqueueError::Class)?;
        let ticket = self.insert(now, class, access, len, nested)?;
        if let Err(removed) = self.fair.push(&mut self.requests, class, ticket.slot()) {
            self.requests.remove(ticket.slot());
            return Err(EnqueueError::Class(removed));
        }
        let peers = &self.shared.peers;
        if !peers.alone() && peers[self.shard].is_idle() {
            // the others may expect a poll of this shard from now on, but not for ever
            peers[self.shard].promise(now);
        }
        let is_fresh = self.report.class_mut(class).enqueued(now, access, len);
        if is_fresh {
            self.peer_wait.is_not_full();
        }
        self.requests.at_mut(ticket.slot()).fresh = is_fresh;
        self.attendance.resume_at_once();
        Ok(ticket)
    }

    /// Dispatches a request at once if this queue has none waiting and the budget allows it. The result
    /// is that of [`enqueue`](Self::enqueue) followed by [`poll_dispatch`](Self::poll_dispatch) until
    /// that returns `None`, in fewer instructions. Wake the shards that [`poll_wake`](Self::poll_wake)
    /// returns.
    ///
    /// `None` does not mean that the request has to wait. It is neither queued nor charged: enqueue it.
    ///
    /// # Errors
    /// As for [`enqueue`](Self::enqueue).
    pub fn dispatch_at_once(
        &mut self,
        now: Time,
        class: ClassId,
        access: impl Into<Access>,
        len: u64,
    ) -> Result<Option<Ticket>, EnqueueError> {
        let access = access.into();
        self.shared.tree.live(class).map_err(EnqueueError::Class)?;
        let Some(idle_since) = self.idle_since(now) else { return Ok(None) };
        if access.op == Op::Discard {
            // few discards may be in the disk at once, so they are queued
            return Ok(None);
        }
        let ticket = self.insert(now, class, access, len, false)?;
        let index = ticket.slot();
        self.report.class_mut(class);
        self.price(now, index);
        let cost = self.requests.at(index).cost;
        let demand = Demand::new(cost, access.op, len, true);
        let Some(nearly_idle) = self.reserve_at_once(now, class, demand) else {
            self.requests.remove(index);
            return Ok(None);
        };
        self.requests.at_mut(index).fresh = true;
        self.fair.charge_unqueued(class.node(), cost, len, now);
        self.enter_disk(now, index, nearly_idle);
        self.report.class_mut(class).passed(access, len, cost);
        self.mark_idle(now, idle_since);
        Ok(Some(ticket))
    }

    /// Since when this queue has been empty, if no shard expects anything of it.
    fn idle_since(&self, now: Time) -> Option<Time> {
        let (stop, since) = self.attendance.last_stop()?;
        let peers = &self.shared.peers;
        // where shards take turns, all requests are queued for them
        let is_idle = stop.reason == Blocked::Empty
            && !self.fair.has_turns()
            && self.pricer.head_held(now).is_none()
            && self.requests.len() == self.report.totals.in_disk
            && self.fair.nothing_throttled()
            && !self.in_disk.may_be_overdue(&self.requests, now)
            && (peers.alone()
                || (peers[self.shard].is_idle()
                    && !self.attendance.would_be_late(&self.turn_facts(now))));
        is_idle.then_some(since)
    }

    /// Takes the budget for `demand` if that is open. Returns whether the disk was nearly idle.
    fn reserve_at_once(&mut self, now: Time, class: ClassId, mut demand: Demand) -> Option<bool> {
        if self.fair.limited(class.node(), now).is_some() {
            return None;
        }
        self.fair.activate_unqueued(class, now);
        self.follow_changes(now);
        self.check_lead(class.node(), demand.cost, now).ok()?;
        self.check_reserve(class.node(), &mut demand, now);
        match self.reserve(now, class.node(), &demand) {
            Reservation::Granted { nearly_idle } => Some(nearly_idle),
            Reservation::Refused(_) => None,
            Reservation::LostRace => {
                self.collect_wakes(now);
                None
            }
        }
    }

    /// Ends the turn as [`IoQueue::poll_dispatch`] does for an empty queue.
    fn mark_idle(&mut self, now: Time, idle_since: Time) {
        self.report.blocked_unsampled(Blocked::Empty, now.nanos_since(idle_since));
        self.leave_turn(now, Stop::new(Blocked::Empty, None));
    }

    /// Splits a request of `len` bytes into parts that each cost at most one effective goal. Their
    /// lengths are powers of two, at most 16 MiB, except for the last. The parts are larger if they
    /// would otherwise take more than an eighth of the queue. A request of several parts is counted for
    /// the class.
    pub fn split(&mut self, class: ClassId, op: Op, len: u64) -> Parts {
        let goal = self.shared.budget.effective_goal();
        let part_max = self.pricer.model().part_max(op, len, goal);
        if len <= part_max {
            return Parts::new(len, part_max);
        }
        if self.shared.tree.live(class).is_ok() {
            let counters = self.report.class_mut(class);
            counters.splits += 1;
            counters.split_bytes = counters.split_bytes.wrapping_add(len);
        }
        let parts_max = u64::from(self.requests.max() / PARTS_OF_QUEUE).max(1);
        let least = len.div_ceil(parts_max).checked_next_power_of_two();
        Parts::new(len, part_max.max(least.unwrap_or(len)))
    }

    /// Cancels a request that waits in the queue, or that was [parked](Self::park). Returns whether it
    /// was still waiting. A request that was never dispatched is not charged. Takes constant time, plus
    /// a logarithm of the number of classes if it was the last of its class.
    pub fn cancel(&mut self, now: Time, ticket: Ticket) -> bool {
        let Some(&request) = self.requests.get(ticket) else { return false };
        match request.state {
            State::Queued => {
                self.fair.remove(&mut self.requests, request.class, ticket.slot());
            }
            State::Parked => {}
            State::Free | State::InDisk | State::Overdue => return false,
        }
        // it was dispatched once
        self.report.totals.completed += u64::from(request.already_charged);
        self.requests.remove(ticket.slot());
        self.report.class_of(&request).cancelled(now);
        self.attendance.resume_at_once();
        true
    }

    /// Returns the room of a dispatched request that its owner has not started yet, because others wait
    /// for room. The charges for the request stay. It keeps its ticket, for [`resume`](Self::resume) or
    /// [`cancel`](Self::cancel). Call `poll_dispatch` next, here and on the shards that `poll_wake`
    /// returns.
    ///
    /// # Errors
    /// [`StaleTicket`] if the request is not in the disk, or was given up.
    pub fn park(&mut self, now: Time, ticket: Ticket) -> Result<(), StaleTicket> {
        let request = *self.requests.get(ticket).ok_or(StaleTicket)?;
        if request.state != State::InDisk {
            return Err(StaleTicket);
        }
        self.leave_window(now, ticket.slot(), &request);
        self.pricer.end_flush(ticket.slot(), request.op);
        self.collect_wakes(now);
        let kept = self.requests.at_mut(ticket.slot());
        kept.state = State::Parked;
        kept.already_charged = true;
        self.report.totals.in_disk -= 1;
        self.report.class_of(&request).park(request.len);
        self.attendance.resume_at_once();
        Ok(())
    }

    /// Dispatches a request that was [parked](Self::park), when its owner is ready. Returns true if it
    /// is dispatched now: the window has room, or the excess stays within one effective goal and the
    /// rate of the disk. Otherwise it waits ahead of its class, and `poll_dispatch` returns it later.
    /// It is not charged again.
    ///
    /// # Errors
    /// [`StaleTicket`] if the request was not parked.
    pub fn resume(&mut self, now: Time, ticket: Ticket) -> Result<bool, StaleTicket> {
        let request = *self.requests.get(ticket).ok_or(StaleTicket)?;
        if request.state != State::Parked {
            return Err(StaleTicket);
        }
        let (index, demand) = (ticket.slot(), demand(&request));
        if !self.shared.budget.reenter(now, &demand) {
            let class = self.report.class_of(&request).class();
            let queued = class.map(|class| self.fair.push_front(&mut self.requests, class, index));
            if let Some(Ok(())) = queued {
                self.requests.at_mut(index).state = State::Queued;
                self.attendance.resume_at_once();
                return Ok(false);
            }
            // its class was removed
            self.shared.budget.enter_anyway(&demand);
        }
        if request.op == Op::Discard {
            self.shared.discards.enter_anyway();
        }
        self.enter_disk(now, index, false);
        let waited = now.nanos_since(request.enqueued_at);
        self.report.class_of(&request).dispatched(now, waited, request.len, DiskTime::ZERO);
        Ok(true)
    }

    /// Completes a dispatched request, and returns its part of the budget. Call `poll_dispatch` next,
    /// here and on the shards that `poll_wake` returns.
    ///
    /// # Errors
    /// [`StaleTicket`] if the request was not dispatched or has completed.
    #[inline]
    pub fn complete(
        &mut self,
        now: Time,
        ticket: Ticket,
        outcome: Outcome,
    ) -> Result<Completion, StaleTicket> {
        self.complete_polled(now, ticket, outcome, Time::ZERO)
    }

    /// Like [`complete`](Self::complete), for an owner that knows when the disk answered: after
    /// `previous_poll`, when the owner last checked. From these completions the group learns the
    /// latency of an idle disk. An owner does not know the time if the request runs elsewhere and its
    /// end is reported at any later time.
    ///
    /// # Errors
    /// As for [`complete`](Self::complete).
    pub fn complete_polled(
        &mut self,
        now: Time,
        ticket: Ticket,
        outcome: Outcome,
        previous_poll: Time,
    ) -> Result<Completion, StaleTicket> {
        let request = *self.requests.get(ticket).ok_or(StaleTicket)?;
        let overdue = request.state == State::Overdue;
        if !overdue && request.state != State::InDisk {
            return Err(StaleTicket);
        }
        let took = DiskNanos::between(&request, previous_poll, now);
        let disk_nanos = took.most;
        self.shared.budget.completed(now, disk_nanos);
        if overdue {
            self.return_late(ticket.slot());
        } else {
            self.leave_window(now, ticket.slot(), &request);
            self.free_room(now);
        }
        if self.pricer.seeks() {
            self.pricer.leave_disk(now, ticket.slot(), request.op);
            self.wake_run(now);
        }
        self.requests.remove(ticket.slot());
        self.attendance.take_back(request.cost);
        self.in_disk.came_back(now, request.due_at);
        let done = outcome == Outcome::Done;
        if request.nearly_idle && done && !overdue && took.is_known {
            let transfer = request.cost.as_nanos_ceil();
            let service_nanos = disk_nanos.saturating_sub(transfer);
            self.shared.budget.observe_idle_service(now, service_nanos);
        }
        self.report_completion(now, &request, done, took);
        self.fair.completed(request.class, now);
        self.report.left_disk();
        let counters = self.report.class_of(&request);
        counters.completed(now, request.op, request.len, disk_nanos, done);
        let class = counters.class().ok_or(StaleTicket)?;
        self.attendance.resume_at_once();
        let queue_nanos = request.dispatched_at.nanos_since(request.enqueued_at);
        let (op, len) = (request.op, request.len);
        Ok(Completion { class, queue_nanos, disk_nanos, overdue, op, len })
    }

    /// Records the completion of a request that had been given up.
    #[cold]
    fn return_late(&mut self, index: u32) {
        self.shared.budget.overdue.returned_late();
        self.in_disk.returned_late(&mut self.requests, index);
    }

    /// Returns another shard of the group to wake, which waits for room that this queue has freed. Call
    /// this until it returns `None`, after each [`complete`](Self::complete) and
    /// [`poll_dispatch`](Self::poll_dispatch).
    #[inline]
    pub fn poll_wake(&mut self) -> Option<ShardId> {
        if self.wakeups.none() { None } else { self.next_wake() }
    }

    #[inline(never)]
    fn next_wake(&mut self) -> Option<ShardId> {
        if let Some(freed_at) = self.wakeups.room_freed_at() {
            let freed = self.wakeups.take_freed(self.report.totals.in_disk);
            let share = self.shared.budget.room_share().at_least(freed);
            self.collect_some_wakes(freed_at, share);
        }
        let shard = self.wakeups.list.pop()?;
        self.report.woken(1);
        Some(shard)
    }

    /// Adds `count` to the [wake-ups](crate::QueueCounters::wake_ups): the owner has woken that many
    /// threads or tasks whose requests are in the queue.
    pub fn note_wake_ups(&mut self, count: u64) {
        self.report.woken(count);
    }

    /// When to call [`poll_dispatch`](Self::poll_dispatch) next, if nothing happens before. `None`
    /// means that only another verb or a wake-up can change its result. Never earlier than `now`.
    pub fn poll_timeout(&self, now: Time) -> Option<Time> {
        Some(self.timer(now)?.max(now))
    }

    /// The number of requests that wait or are in the disk.
    pub fn len(&self) -> usize {
        self.requests.len() as usize
    }

    /// Whether no request waits or is in the disk.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Why `poll_dispatch` last returned `None`, if it did.
    pub fn blocked(&self) -> Option<Blocked> {
        self.attendance.blocked()
    }

    /// The counters of a class; `None` if this queue never had a request of it.
    pub fn class(&self, class: ClassId) -> Option<&ClassCounters> {
        self.report.classes.get(class.index())
    }

    /// The counters of all classes, by [`ClassId::index`].
    pub fn classes(&self) -> &[ClassCounters] {
        &self.report.classes
    }

    /// The counters of this queue over all classes.
    pub fn counters(&self) -> QueueCounters {
        self.report.counters()
    }
}

impl Drop for IoQueue {
    /// Returns the budget that the queue holds, because no completions will follow. Shards that wait
    /// for it notice when another shard polls or completes a request. [`IoQueue::leave`] returns the
    /// shards to wake at once.
    fn drop(&mut self) {
        while let Some(oldest) = self.in_disk.oldest() {
            let request = *self.requests.at(oldest);
            self.give_back(oldest, &request);
        }
        self.fair.abandon();
        self.shared.leave(self.shard);
        self.shared.tree.note_change();
    }
}

/// Whether the disk prices mixes of reads and writes.
fn has_prices(model: &DiskModel, budget: &Budget) -> bool {
    model.mix_prices().is_some() && budget.counts_disk_time()
}
