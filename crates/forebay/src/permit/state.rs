//! The shared queue and its waiters, guarded by the lock.
//!
//! Decision: `docs/decisions/0022-parked-grants.md`.

use std::sync::Arc;

use arrayvec::ArrayVec;
use forebay_core::{EnqueueError, IoQueue, Ticket, Time};
use slab::Slab;

use super::batch::Batch;
use super::overflow::Overflow;
use super::parking::Parking;
use super::request::PermitRequest;
use super::waiters::{GrantTarget, Waiters};
use super::wakeups::{Wakeup, Wakeups};
use crate::messages;
use crate::sys::waker::KeptWaker;

/// The age in nanoseconds from which a parked grant may be forgotten. It is forgotten only if its
/// place is needed.
const FORGOTTEN_NANOS: u64 = 1_000_000_000;

/// The most timer threads of a queue. A timer thread that runs wakers of others, which may block,
/// does not own the deadline. Then another one does.
pub(super) const TIMERS_MAX: usize = 4;

/// The thread that sleeps until the next deadline, so that the others need not.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum DeadlineOwner {
    Nobody,
    /// The blocked thread whose ticket has this index.
    Thread(u32),
    /// The timer thread with this index in [`State::timers`].
    Timer(usize),
}

pub(super) struct State {
    pub(super) queue: IoQueue,
    pub(super) model_version: u64,
    pub(super) waiters: Waiters,
    pub(super) overflow: Overflow,
    pub(super) batches: Slab<Batch>,
    /// The number of timer threads that were started.
    pub(super) timers_started: usize,
    /// The parking places of the timer threads that run.
    pub(super) timers: ArrayVec<Arc<Parking>, TIMERS_MAX>,
    owner: DeadlineOwner,
    /// The time at which the owner of the deadline wakes up.
    armed_until: Time,
    /// Whether granting stopped because the wake-ups were full: see [`State::grant_ready`].
    pub(super) has_more_to_grant: bool,
}

impl State {
    pub(super) fn new(queue: IoQueue, model_version: u64) -> Self {
        Self {
            queue,
            model_version,
            waiters: Waiters::new(),
            overflow: Overflow::default(),
            batches: Slab::new(),
            timers_started: 0,
            timers: ArrayVec::new(),
            owner: DeadlineOwner::Nobody,
            armed_until: Time::MAX,
            has_more_to_grant: false,
        }
    }

    /// Queues a request, and grants all requests that may be dispatched. Returns its ticket, and
    /// whether it is granted.
    #[inline(never)]
    pub(super) fn queue_and_grant(
        &mut self,
        now: Time,
        request: PermitRequest,
        wakeups: &mut Wakeups,
    ) -> Result<(Ticket, bool), EnqueueError> {
        let ticket = self.queue_request(now, request)?;
        let granted = self.grant_ready(now, Some(ticket), wakeups);
        Ok((ticket, granted))
    }

    /// Queues a request. If the queue is full, it takes the place of a forgotten grant, if there is
    /// one.
    pub(super) fn queue_request(
        &mut self,
        now: Time,
        request: PermitRequest,
    ) -> Result<Ticket, EnqueueError> {
        match self.queue_in_free_place(now, request) {
            Err(EnqueueError::Full) if self.forget_parked(now) => {
                self.queue_in_free_place(now, request)
            }
            queued => queued,
        }
    }

    fn queue_in_free_place(
        &mut self,
        now: Time,
        request: PermitRequest,
    ) -> Result<Ticket, EnqueueError> {
        let PermitRequest { class, access, len, holder } = request;
        if holder {
            self.queue.enqueue_nested(now, class, access, len)
        } else {
            self.queue.enqueue(now, class, access, len)
        }
    }

    /// Grants all requests that may be dispatched now, and returns whether `mine` is granted. If it
    /// sets [`State::has_more_to_grant`], call it again after the wake-ups.
    pub(super) fn grant_ready(
        &mut self,
        now: Time,
        mine: Option<Ticket>,
        wakeups: &mut Wakeups,
    ) -> bool {
        let mut granted = false;
        self.has_more_to_grant = true;
        self.park_unnoticed(now);
        if !self.overflow.is_empty() {
            self.give_places(now, wakeups);
        }
        while wakeups.has_room() {
            let Some(ticket) = self.queue.poll_dispatch(now) else {
                self.has_more_to_grant = false;
                break;
            };
            granted |= mine == Some(ticket);
            let wakeup = match self.waiters.grant(now, ticket) {
                GrantTarget::Nobody => None,
                GrantTarget::One(wakeup) => Some(wakeup),
                GrantTarget::Batch(batch) => self.grant_member(now, ticket, batch),
            };
            if self.owner == DeadlineOwner::Thread(ticket.index() as u32) {
                self.owner = DeadlineOwner::Nobody;
            }
            if mine != Some(ticket)
                && let Some(wakeup) = wakeup
            {
                self.wake(wakeups, wakeup);
            }
        }
        self.collect_shards(wakeups);
        granted
    }

    /// Whether anybody waits for a grant or a place, or has not noticed a grant.
    pub(super) fn anybody_waits(&self) -> bool {
        self.waiters.any() || !self.overflow.is_empty()
    }

    /// Queues the requests that wait for a place, as long as there are free places.
    #[cold]
    fn give_places(&mut self, now: Time, wakeups: &mut Wakeups) {
        while wakeups.has_room()
            && let Some(request) = self.overflow.first()
        {
            let queued = self.queue_request(now, request);
            if matches!(queued, Err(EnqueueError::Full)) {
                return self.overflow.postpone(now);
            }
            let Some(waker) = self.overflow.leave_first(now, queued) else { return };
            match queued {
                Ok(ticket) => self.waiters.add_task(ticket, waker),
                Err(_) => self.wake(wakeups, Wakeup::Task(waker)),
            }
        }
    }

    /// Notes the grant of a request of a batch. Returns the wake-up of the batch, if it was the
    /// last request.
    fn grant_member(&mut self, now: Time, ticket: Ticket, batch: usize) -> Option<Wakeup> {
        let Some(waiting) = self.batches.get_mut(batch) else {
            messages::report_invariant("a member of a batch belongs to no batch");
            return None;
        };
        waiting.queued -= 1;
        if waiting.queued > 0 && !waiting.paid {
            self.park(now, ticket);
            return None;
        }
        self.waiters.add_unnoticed(now, ticket);
        if !self.enter(now, batch) {
            return None;
        }
        self.batches.get_mut(batch)?.waker.take().map(Wakeup::Task)
    }

    pub(super) fn park(&mut self, now: Time, ticket: Ticket) {
        self.waiters.add_paid(ticket);
        // An error means that the ticket was given up, and has no room to give back.
        let _ = self.queue.park(now, ticket);
    }

    /// Sends the parked requests of a batch to the disk, if each request of the batch has had its
    /// turn. Returns whether all of them are in the disk now. Otherwise some wait for room.
    pub(super) fn enter(&mut self, now: Time, batch: usize) -> bool {
        let Some(waiting) = self.batches.get_mut(batch) else {
            messages::report_invariant(
                "a batch is missing that was neither collected nor abandoned",
            );
            return false;
        };
        if waiting.queued > 0 {
            return false;
        }
        waiting.paid = true;
        // A refused request is queued before all others. So the order is reversed, and the first
        // request is queued last.
        for &ticket in waiting.tickets.iter().rev() {
            if !self.waiters.is_parked(ticket) {
                continue;
            }
            // An error means that the ticket was given up before it was parked.
            if self.queue.resume(now, ticket).unwrap_or(true) {
                self.waiters.add_unnoticed(now, ticket);
            } else {
                self.waiters.add_member(ticket, batch);
                waiting.queued += 1;
            }
        }
        waiting.queued == 0
    }

    /// Parks grants that their tasks have not noticed for longer than one effective goal. A parked
    /// grant gives its room back until its task is polled.
    fn park_unnoticed(&mut self, now: Time) {
        while let Some((ticket, _)) = self.waiters.oldest_unnoticed()
            && self.unnoticed_until().is_some_and(|until| until <= now)
        {
            self.waiters.parked(now, ticket);
            // An error means that the ticket was given up, and has no room to give back.
            if self.queue.park(now, ticket).is_err() {
                return;
            }
        }
    }

    /// Frees a place in the full table of requests, by forgetting the grant that was parked first.
    /// Its task did not collect it, so its future may be forgotten. Returns whether a place was
    /// freed.
    pub(super) fn forget_parked(&mut self, now: Time) -> bool {
        let Some((ticket, since)) = self.waiters.oldest_parked() else { return false };
        if now.nanos_since(since) < FORGOTTEN_NANOS {
            return false;
        }
        self.waiters.forget(ticket);
        self.queue.cancel(now, ticket);
        true
    }

    /// The time at which the oldest unnoticed grant is parked.
    fn unnoticed_until(&self) -> Option<Time> {
        let (_, since) = self.waiters.oldest_unnoticed()?;
        Some(since.plus_nanos(self.queue.effective_goal().as_nanos_ceil()))
    }

    /// Notes a thread or a task of this queue to wake.
    fn wake(&mut self, wakeups: &mut Wakeups, wakeup: Wakeup) {
        self.queue.note_wake_ups(1);
        wakeups.push(wakeup);
    }

    /// Notes the shards of the group to wake.
    #[inline]
    pub(super) fn collect_shards(&mut self, wakeups: &mut Wakeups) {
        while wakeups.has_room() {
            let Some(shard) = self.queue.poll_wake() else { return };
            wakeups.push(Wakeup::Shard(shard));
        }
        self.has_more_to_grant = true;
    }

    /// Cancels a ticket. Returns whether it still waited, and the waker of its task, to be dropped
    /// outside the lock.
    pub(super) fn withdraw(&mut self, now: Time, ticket: Ticket) -> (bool, Option<KeptWaker>) {
        let waker = self.waiters.forget(ticket);
        if self.owner == DeadlineOwner::Thread(ticket.index() as u32) {
            self.owner = DeadlineOwner::Nobody;
        }
        (self.queue.cancel(now, ticket), waker)
    }

    /// Makes sure that a thread wakes up when the queue must be polled next. `me` is the role of
    /// the calling thread, if it is about to sleep. If the caller becomes the owner of the
    /// deadline, this returns the time until which it sleeps.
    pub(super) fn arm_deadline(
        &mut self,
        now: Time,
        me: DeadlineOwner,
        wakeups: &mut Wakeups,
    ) -> Option<Time> {
        let polled = if self.waiters.any() { self.queue.poll_timeout(now) } else { None };
        let looked = [polled, self.unnoticed_until(), self.overflow.retry_at()];
        let due = looked.into_iter().flatten().min();
        if self.owner == me {
            // The owner is awake, so the role is assigned again.
            self.owner = DeadlineOwner::Nobody;
        }
        let due = due?;
        if self.owner == DeadlineOwner::Nobody {
            self.owner = self.choose_owner(me);
        } else if due >= self.armed_until {
            return None;
        } else if let DeadlineOwner::Thread(_) = me {
            // The calling thread is about to sleep, so it takes the role without a wake-up.
            self.owner = me;
        }
        self.armed_until = due;
        if self.owner == me {
            return Some(due);
        }
        if let Some(parking) = self.owner_slot().map(Arc::clone) {
            self.wake(wakeups, Wakeup::Thread(parking));
        }
        None
    }

    /// [`Self::arm_deadline`] for a thread that is about to sleep at `parking`. While it runs
    /// wakers of others, which may block, it does not own the deadline. Another thread does, and this
    /// one looks again at once.
    pub(super) fn arm_deadline_between(
        &mut self,
        now: Time,
        (me, parking): (DeadlineOwner, &Parking),
        wakeups: &mut Wakeups,
    ) -> Option<Time> {
        if !wakeups.any_of_others() && !self.has_more_to_grant {
            return self.arm_deadline(now, me, wakeups);
        }
        parking.go_away();
        if self.owner == me {
            self.owner = DeadlineOwner::Nobody;
        }
        self.arm_deadline(now, DeadlineOwner::Nobody, wakeups);
        Some(now)
    }

    fn owner_slot(&self) -> Option<&Arc<Parking>> {
        match self.owner {
            DeadlineOwner::Thread(index) => self.waiters.thread(index),
            DeadlineOwner::Timer(number) => self.timers.get(number),
            DeadlineOwner::Nobody => None,
        }
    }

    /// The caller if it is a thread, else another blocked thread, else a timer thread.
    fn choose_owner(&self, me: DeadlineOwner) -> DeadlineOwner {
        match (me, self.waiters.newest_thread()) {
            (DeadlineOwner::Thread(_), _) => me,
            (_, Some(newest)) => DeadlineOwner::Thread(newest),
            (_, None) => {
                let timer = self.timers.iter().position(|timer| !timer.is_away());
                timer.map_or(DeadlineOwner::Nobody, DeadlineOwner::Timer)
            }
        }
    }
}
