//! The shared queue and those who wait at it, as the lock guards them.
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

/// A grant that was parked is forgotten when its place is needed, if it was so
/// long ago.
const FORGOTTEN_NANOS: u64 = 1_000_000_000;

/// Timer threads at most. One that runs wakers of others, which may block, keeps no time: then the
/// next does.
pub(super) const TIMERS_MAX: usize = 4;

/// Who sleeps until the next deadline, so that the others need not.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum DeadlineOwner {
    Nobody,
    /// The blocked thread whose ticket has this index.
    Thread(u32),
    /// The timer thread that is this one of [`State::timers`].
    Timer(usize),
}

pub(super) struct State {
    pub(super) queue: IoQueue,
    pub(super) model_version: u64,
    pub(super) waiters: Waiters,
    pub(super) overflow: Overflow,
    pub(super) batches: Slab<Batch>,
    /// Timer threads that were started.
    pub(super) timers_started: usize,
    /// The parking places of those that run.
    pub(super) timers: ArrayVec<Arc<Parking>, TIMERS_MAX>,
    owner: DeadlineOwner,
    /// When the owner of the deadline wakes up.
    armed_until: Time,
    /// There was no room for more wake-ups: see [`State::grant_ready`].
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

    /// Queues a request and grants what may go: its ticket, and whether that is among it.
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

    /// Queues a request, if necessary at the place of one that was given up.
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

    /// Grants whatever may go now, and returns whether `mine` was among it.
    /// To be repeated after the wake-ups if [`State::has_more_to_grant`].
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

    /// Whether anybody waits for a grant or a place, or has not noticed his grant.
    pub(super) fn anybody_waits(&self) -> bool {
        self.waiters.any() || !self.overflow.is_empty()
    }

    /// Queues those that wait for a place, as long as there are places.
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

    /// A request of a batch is granted. Returns whom to wake, if it was the last.
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
        // Stale only if it was given up: then it has no room to give back.
        let _ = self.queue.park(now, ticket);
    }

    /// What was parked of a batch goes, if each of it has had its turn.
    /// Whether all of it is in the disk now; else some waits for room.
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
        // What is refused waits before all others: the first of them last.
        for &ticket in waiting.tickets.iter().rev() {
            if !self.waiters.is_parked(ticket) {
                continue;
            }
            // Stale if it was given up before it was parked.
            if self.queue.resume(now, ticket).unwrap_or(true) {
                self.waiters.add_unnoticed(now, ticket);
            } else {
                self.waiters.add_member(ticket, batch);
                waiting.queued += 1;
            }
        }
        waiting.queued == 0
    }

    /// Grants that their tasks have not noticed for longer than a goal give
    /// their room back, until the tasks are polled.
    fn park_unnoticed(&mut self, now: Time) {
        while let Some((ticket, _)) = self.waiters.oldest_unnoticed()
            && self.unnoticed_until().is_some_and(|until| until <= now)
        {
            self.waiters.parked(now, ticket);
            // Stale only if it was given up: then it has no room to give back.
            if self.queue.park(now, ticket).is_err() {
                return;
            }
        }
    }

    /// Makes place in the table of requests, which is full, by forgetting the
    /// grant that was parked first: nobody came for it, so its future may
    /// have been forgotten. Whether there was one.
    pub(super) fn forget_parked(&mut self, now: Time) -> bool {
        let Some((ticket, since)) = self.waiters.oldest_parked() else { return false };
        if now.nanos_since(since) < FORGOTTEN_NANOS {
            return false;
        }
        self.waiters.forget(ticket);
        self.queue.cancel(now, ticket);
        true
    }

    /// Until when the oldest unnoticed grant is waited for.
    fn unnoticed_until(&self) -> Option<Time> {
        let (_, since) = self.waiters.oldest_unnoticed()?;
        Some(since.plus_nanos(self.queue.effective_goal().as_nanos_ceil()))
    }

    /// Notes a thread or task to wake that waits here.
    fn wake(&mut self, wakeups: &mut Wakeups, wakeup: Wakeup) {
        self.queue.note_wake_ups(1);
        wakeups.push(wakeup);
    }

    /// Notes which shards of the group are to be woken.
    #[inline]
    pub(super) fn collect_shards(&mut self, wakeups: &mut Wakeups) {
        while wakeups.has_room() {
            let Some(shard) = self.queue.poll_wake() else { return };
            wakeups.push(Wakeup::Shard(shard));
        }
        self.has_more_to_grant = true;
    }

    /// Takes a ticket back that waits; returns whether it still did. The waker
    /// of a task is to be dropped outside the lock.
    pub(super) fn withdraw(&mut self, now: Time, ticket: Ticket) -> (bool, Option<KeptWaker>) {
        let waker = self.waiters.forget(ticket);
        if self.owner == DeadlineOwner::Thread(ticket.index() as u32) {
            self.owner = DeadlineOwner::Nobody;
        }
        (self.queue.cancel(now, ticket), waker)
    }

    /// Sees to it that somebody wakes up when the queue must be polled next.
    /// `me` is what the calling thread could be, or is, if it is going to
    /// sleep; then this returns until when.
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
            // It is awake, and decides again.
            self.owner = DeadlineOwner::Nobody;
        }
        let due = due?;
        if self.owner == DeadlineOwner::Nobody {
            self.owner = self.choose_owner(me);
        } else if due >= self.armed_until {
            return None;
        } else if let DeadlineOwner::Thread(_) = me {
            // It is about to sleep, so nobody need be woken for the role.
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

    /// A blocked thread, which is there anyway; the timer when there is none.
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
