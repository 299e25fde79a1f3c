//! The queue of an I/O group's permits, and how threads wait in it.

use std::fmt;
use std::sync::Arc;

use forebay_core::{Completion, EnqueueError, IoQueue, Outcome, Ticket, Time};

use super::parking::Parking;
use super::request::{NoGrant, PermitRequest};
use super::state::{DeadlineOwner, State};
use super::wakeups::Wakeups;
use crate::group::GroupState;
use crate::sys::sync::{Clock, Lock, LockGuard};

/// The permits of one I/O group.
pub(crate) struct PermitQueue {
    pub(super) clock: Clock,
    state: Lock<State>,
}

impl PermitQueue {
    pub(crate) fn new(queue: IoQueue, model_version: u64) -> Self {
        Self { clock: Clock::of_process(), state: Lock::new(State::new(queue, model_version)) }
    }

    /// Grants all requests that may be dispatched, after another queue has freed room or the model
    /// has changed.
    pub(crate) fn poll(&self, group: &GroupState) {
        let now = self.clock.now();
        let mut state = self.lock();
        if let Some(model) = group.newer_model(&mut state.model_version) {
            state.queue.set_model(model);
        }
        self.grant_and_release(group, state, now);
    }

    /// The queue, to read its counters.
    pub(crate) fn with_queue<R>(&self, read: impl FnOnce(&IoQueue) -> R) -> R {
        read(&self.lock().queue)
    }

    /// A grant, if one is possible at `now`.
    pub(crate) fn try_admit(
        &self,
        group: &GroupState,
        now: Time,
        request: PermitRequest,
    ) -> Result<(Ticket, Time), NoGrant> {
        let mut wakeups = Wakeups::new();
        let mut state = self.lock();
        let (ticket, granted) = enqueue(&mut state, now, request, &mut wakeups)?;
        if !granted {
            state.queue.cancel(now, ticket);
        }
        if state.anybody_waits() {
            state.arm_deadline(now, DeadlineOwner::Nobody, &mut wakeups);
        }
        self.release(group, state, now, &mut wakeups);
        if granted { Ok((ticket, now)) } else { Err(NoGrant::TimedOut) }
    }

    /// Waits for a grant, until `deadline` at most. Returns the ticket and the time of the grant.
    pub(crate) fn admit(
        &self,
        group: &GroupState,
        now: Time,
        request: PermitRequest,
        deadline: Option<Time>,
    ) -> Result<(Ticket, Time), NoGrant> {
        let mut wakeups = Wakeups::of_single();
        let mut state = self.lock();
        let (ticket, granted) = enqueue(&mut state, now, request, &mut wakeups)?;
        if granted {
            if state.anybody_waits() {
                state.arm_deadline(now, DeadlineOwner::Nobody, &mut wakeups);
            }
            self.release(group, state, now, &mut wakeups);
            return Ok((ticket, now));
        }
        self.wait(group, state, (now, &mut wakeups), ticket, deadline)
    }

    /// Puts the thread to sleep, with the lock released, until its ticket is granted or `deadline`
    /// has passed.
    #[inline(never)]
    fn wait<'a>(
        &'a self,
        group: &GroupState,
        mut state: LockGuard<'a, State>,
        (mut now, wakeups): (Time, &mut Wakeups),
        ticket: Ticket,
        deadline: Option<Time>,
    ) -> Result<(Ticket, Time), NoGrant> {
        let parking = Parking::take_place();
        state.waiters.add_thread(ticket, Arc::clone(&parking));
        let me = DeadlineOwner::Thread(ticket.index() as u32);
        loop {
            let until = state.arm_deadline_between(now, (me, &*parking), wakeups);
            self.release(group, state, now, wakeups);
            parking.come_back();
            group.report_overdue(now);
            let until = match (until, deadline) {
                (Some(until), Some(deadline)) => Some(until.min(deadline)),
                (one, other) => one.or(other),
            };
            if !parking.is_granted() {
                parking.park(self.clock, until);
            }
            now = self.clock.now();
            if parking.is_granted() {
                return Ok((ticket, now));
            }
            state = self.lock();
            if parking.is_granted() || state.grant_ready(now, Some(ticket), wakeups) {
                state.arm_deadline(now, DeadlineOwner::Nobody, wakeups);
                self.release(group, state, now, wakeups);
                return Ok((ticket, now));
            }
            if deadline.is_some_and(|deadline| deadline <= now) {
                state.withdraw(now, ticket);
                state.grant_ready(now, None, wakeups);
                state.arm_deadline(now, DeadlineOwner::Nobody, wakeups);
                self.release(group, state, now, wakeups);
                return Err(NoGrant::TimedOut);
            }
        }
    }

    /// Completes a grant whose I/O has ended.
    pub(crate) fn complete(
        &self,
        group: &GroupState,
        ticket: Ticket,
        outcome: Outcome,
    ) -> Option<Completion> {
        let now = self.clock.now();
        let mut wakeups = Wakeups::of_single();
        let mut state = self.lock();
        let completion = state.queue.complete(now, ticket, outcome).ok();
        if let Some(completion) = &completion {
            group.record(state.queue.shard(), completion, Some(&state.queue));
        }
        if state.anybody_waits() {
            state.grant_ready(now, None, &mut wakeups);
            state.arm_deadline(now, DeadlineOwner::Nobody, &mut wakeups);
        } else {
            state.collect_shards(&mut wakeups);
        }
        self.release(group, state, now, &mut wakeups);
        completion
    }

    pub(super) fn lock(&self) -> LockGuard<'_, State> {
        self.state.lock_here()
    }

    /// Grants all requests that may be dispatched now, and releases the lock.
    pub(super) fn grant_and_release<'a>(
        &'a self,
        group: &GroupState,
        mut state: LockGuard<'a, State>,
        now: Time,
    ) {
        let mut wakeups = Wakeups::new();
        state.grant_ready(now, None, &mut wakeups);
        state.arm_deadline(now, DeadlineOwner::Nobody, &mut wakeups);
        self.release(group, state, now, &mut wakeups);
    }

    /// Releases the lock and carries out the wake-ups. Then it continues to grant, if the wake-ups
    /// of one round were full.
    #[inline]
    pub(super) fn release<'a>(
        &'a self,
        group: &GroupState,
        state: LockGuard<'a, State>,
        now: Time,
        wakeups: &mut Wakeups,
    ) {
        if state.has_more_to_grant || !wakeups.is_empty() {
            self.release_and_wake(group, state, now, wakeups);
        }
    }

    #[inline(never)]
    fn release_and_wake<'a>(
        &'a self,
        group: &GroupState,
        mut state: LockGuard<'a, State>,
        now: Time,
        wakeups: &mut Wakeups,
    ) {
        while state.has_more_to_grant {
            drop(state);
            wakeups.carry_out(&group.wakers);
            state = self.lock();
            state.grant_ready(now, None, wakeups);
            state.arm_deadline(now, DeadlineOwner::Nobody, wakeups);
        }
        drop(state);
        wakeups.carry_out(&group.wakers);
    }
}

/// Queues a request, and grants all requests that may be dispatched. Returns its ticket, and
/// whether it is granted.
#[inline(always)]
pub(super) fn enqueue(
    state: &mut State,
    now: Time,
    request: PermitRequest,
    wakeups: &mut Wakeups,
) -> Result<(Ticket, bool), NoGrant> {
    let PermitRequest { class, access, len, .. } = request;
    if !state.overflow.is_empty() {
        return Err(NoGrant::Refused(EnqueueError::Full));
    }
    let at_once =
        state.queue.dispatch_at_once(now, class, access, len).map_err(NoGrant::Refused)?;
    if let Some(ticket) = at_once {
        state.collect_shards(wakeups);
        return Ok((ticket, true));
    }
    state.queue_and_grant(now, request, wakeups).map_err(NoGrant::Refused)
}

impl fmt::Debug for PermitQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PermitQueue").finish_non_exhaustive()
    }
}
