//! Tasks that wait for permits.

use std::sync::Arc;
use std::task::Poll;

use forebay_core::{EnqueueError, Outcome, Ticket};

use super::disk_group::DiskGroup;
use super::overflow::Place;
use super::queue::{PermitQueue, enqueue};
use super::request::{NoGrant, PermitRequest};
use super::state::DeadlineOwner;
use super::timer;
use super::waiters::PollOutcome;
use super::wakeups::Wakeups;
use crate::group::GroupState;
use crate::sys::waker::KeptWaker;
use crate::wait_list::WaiterId;

/// The state of a request that a task has made.
pub(crate) enum Started {
    Granted(Ticket),
    /// The request is queued. The task is woken at the grant.
    Waits(Ticket),
    /// The queue is full. The task is woken at the grant or an error.
    WaitsForPlace(WaiterId),
}

impl PermitQueue {
    /// Makes a request for a task, whose `waker` is woken if it has to wait. If the queue is full,
    /// the request is refused or waits for a place, if `waits_for_place` is set.
    pub(crate) fn start_task(
        &self,
        group: &Arc<DiskGroup>,
        request: PermitRequest,
        waker: KeptWaker,
        waits_for_place: bool,
    ) -> Result<Started, NoGrant> {
        let now = self.clock.now();
        let mut wakeups = Wakeups::new();
        let mut state = self.lock();
        let started = match enqueue(&mut state, now, request, &mut wakeups) {
            Ok((ticket, true)) => Ok(Started::Granted(ticket)),
            Ok((ticket, false)) => match timer::start(&mut state, group) {
                Ok(()) => {
                    state.waiters.add_task(ticket, waker);
                    Ok(Started::Waits(ticket))
                }
                Err(error) => {
                    state.queue.cancel(now, ticket);
                    Err(NoGrant::Timer(error))
                }
            },
            Err(NoGrant::Refused(EnqueueError::Full)) if waits_for_place => {
                timer::start(&mut state, group).map_err(NoGrant::Timer)?;
                Ok(Started::WaitsForPlace(state.overflow.add(now, request, waker)))
            }
            Err(error) => return Err(error),
        };
        if started.is_err() || state.anybody_waits() {
            state.arm_deadline(now, DeadlineOwner::Nobody, &mut wakeups);
        }
        self.release(group, state, now, &mut wakeups);
        started
    }

    /// The ticket of a request that waited for a place, once it has one. Until then `waker` is
    /// woken at the next change.
    pub(crate) fn poll_place(
        &self,
        id: WaiterId,
        waker: KeptWaker,
    ) -> Poll<Result<Ticket, NoGrant>> {
        let mut state = self.lock();
        let place = state.overflow.poll(id, waker);
        drop(state);
        match place {
            Place::Waits(_) => Poll::Pending,
            Place::Has(result, _) => Poll::Ready(result.map_err(NoGrant::Refused)),
        }
    }

    /// Abandons a request that waits for a place.
    pub(crate) fn abandon_place(&self, group: &GroupState, id: WaiterId) {
        let mut state = self.lock();
        let (ticket, waker) = state.overflow.remove(id);
        drop(state);
        drop(waker);
        if let Some(ticket) = ticket {
            self.abandon(group, ticket);
        }
    }

    /// Whether the task's request is granted. If it is not, `waker` is woken at the grant.
    pub(crate) fn poll_task(&self, group: &GroupState, ticket: Ticket, waker: KeptWaker) -> bool {
        let mut state = self.lock();
        // The wakers in `found` are dropped after the lock is released.
        let found = state.waiters.take_grant(ticket, waker);
        if !matches!(found, PollOutcome::Parked) {
            drop(state);
            return matches!(found, PollOutcome::Granted(_));
        }
        let now = self.clock.now();
        // An error means that the ticket was given up before it was parked.
        let granted = state.queue.resume(now, ticket).unwrap_or(true);
        let waker = if granted { state.waiters.forget(ticket) } else { None };
        self.grant_and_release(group, state, now);
        drop(waker);
        granted
    }

    /// Abandons a request of a task. Its ticket leaves the queue, or is completed if it was already
    /// granted.
    pub(crate) fn abandon(&self, group: &GroupState, ticket: Ticket) {
        let now = self.clock.now();
        let mut state = self.lock();
        let (waited, _waker) = state.withdraw(now, ticket);
        if !waited {
            // The outcome is `Done`, not a failure: the disk has not returned an error.
            if let Ok(completion) = state.queue.complete(now, ticket, Outcome::Done) {
                group.record(state.queue.shard(), &completion, Some(&state.queue));
            }
        }
        self.grant_and_release(group, state, now);
    }
}
