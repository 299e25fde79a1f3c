//! Several requests that are granted together.
//!
//! The requests of a batch are ordered and charged like single requests. A request whose turn comes
//! before that of the rest of its batch is parked: its disk time is charged, and it takes no room
//! in the window. All requests of the batch enter the disk together when the last one has had its
//! turn. So a waiting batch does not keep another batch from the disk.
//!
//! Decision: `docs/decisions/0022-parked-grants.md`.

use std::mem;
use std::sync::Arc;

use forebay_core::{DiskTime, Op, Outcome, Ticket, Time};

use super::batch::Batch;
use super::disk_group::DiskGroup;
use super::queue::{PermitQueue, enqueue};
use super::request::{BatchRequest, NoGrant, PermitRequest};
use super::state::{DeadlineOwner, State};
use super::timer;
use super::wakeups::Wakeups;
use crate::group::GroupState;
use crate::messages;
use crate::sys::waker::KeptWaker;

/// The state of a new batch.
pub(crate) enum Batched {
    Granted(Box<[Ticket]>),
    /// The batch waits. Its number is valid until it is collected or abandoned.
    Waits(usize),
}

impl State {
    /// The longest beginning of `requests` that costs at most one effective goal, and at least one
    /// request.
    fn piece<'a>(&self, group: &GroupState, requests: &'a [(Op, u64)]) -> &'a [(Op, u64)] {
        let goal = self.queue.effective_goal();
        let mut cost = DiskTime::ZERO;
        let fits = |&&(op, len): &&(Op, u64)| {
            cost = cost.plus(self.queue.cost(op, len));
            cost <= goal
        };
        let count = requests.iter().take(group.batch_max).take_while(fits).count();
        &requests[..count.max(1).min(requests.len())]
    }

    /// Adds a batch whose `granted` tickets were granted, and whose request `first` waits.
    fn add_batch(
        &mut self,
        now: Time,
        granted: Vec<Ticket>,
        first: Ticket,
        waker: KeptWaker,
    ) -> usize {
        for &ticket in &granted {
            self.park(now, ticket);
        }
        let mut tickets = granted;
        tickets.push(first);
        let waiting = Batch { tickets: tickets.into(), queued: 1, paid: false, waker: Some(waker) };
        let batch = self.batches.insert(waiting);
        self.waiters.add_member(first, batch);
        batch
    }

    /// Queues the rest of a batch, as far as the queue has room.
    fn add_members(&mut self, now: Time, batch: usize, rest: BatchRequest<'_>) {
        let mut queued = Vec::with_capacity(rest.requests.len());
        let BatchRequest { class, requests, holder } = rest;
        for &(op, len) in requests {
            let access = op.into();
            let Ok(ticket) = self.queue_request(now, PermitRequest { class, access, len, holder })
            else {
                break;
            };
            self.waiters.add_member(ticket, batch);
            queued.push(ticket);
        }
        let Some(waiting) = self.batches.get_mut(batch) else {
            return messages::report_invariant("a batch is missing that was just added");
        };
        waiting.queued += queued.len();
        let mut tickets = mem::take(&mut waiting.tickets).into_vec();
        tickets.append(&mut queued);
        waiting.tickets = tickets.into();
    }

    /// Removes and returns a batch if it is granted. Otherwise `waker` is woken at the grant. The
    /// result holds a waker that is no longer needed, to be dropped outside the lock.
    fn collect(
        &mut self,
        now: Time,
        batch: usize,
        waker: KeptWaker,
    ) -> Result<(Batch, KeptWaker), Option<KeptWaker>> {
        if self.enter(now, batch) {
            let granted = self.batches.remove(batch);
            for &ticket in &granted.tickets {
                self.waiters.forget(ticket);
            }
            return Ok((granted, waker));
        }
        Err(self.batches.get_mut(batch).and_then(|waiting| waiting.waker.replace(waker)))
    }
}

/// Grants requests from the first one on, until one has to wait. Returns the granted tickets and
/// the ticket of the request that waits.
fn grant_at_once(
    state: &mut State,
    now: Time,
    batch_request: BatchRequest<'_>,
    wakeups: &mut Wakeups,
) -> Result<(Vec<Ticket>, Option<Ticket>), NoGrant> {
    let BatchRequest { class, requests, holder } = batch_request;
    let mut granted = Vec::with_capacity(requests.len());
    for &(op, len) in requests {
        let access = op.into();
        match enqueue(state, now, PermitRequest { class, access, len, holder }, wakeups) {
            Ok((ticket, true)) => granted.push(ticket),
            Ok((ticket, false)) => return Ok((granted, Some(ticket))),
            Err(error) if granted.is_empty() => return Err(error),
            // The queue has no room for the rest.
            Err(_) => break,
        }
    }
    Ok((granted, None))
}

impl PermitQueue {
    /// Grants as many of the first requests as do not have to wait at `now`.
    pub(crate) fn try_admit_many(
        &self,
        group: &GroupState,
        now: Time,
        mut batch_request: BatchRequest<'_>,
    ) -> Result<Box<[Ticket]>, NoGrant> {
        let mut wakeups = Wakeups::new();
        let mut state = self.lock();
        batch_request.requests = state.piece(group, batch_request.requests);
        let (granted, first) = grant_at_once(&mut state, now, batch_request, &mut wakeups)?;
        if let Some(first) = first {
            state.queue.cancel(now, first);
        }
        if state.anybody_waits() {
            state.arm_deadline(now, DeadlineOwner::Nobody, &mut wakeups);
        }
        self.release(group, state, now, &mut wakeups);
        if granted.is_empty() { Err(NoGrant::TimedOut) } else { Ok(granted.into()) }
    }

    /// Grants the first requests that fit together, or queues them and wakes `waker` at the grant.
    pub(crate) fn start_batch(
        &self,
        group: &Arc<DiskGroup>,
        mut batch_request: BatchRequest<'_>,
        waker: KeptWaker,
    ) -> Result<Batched, NoGrant> {
        let now = self.clock.now();
        // Its waker is dropped after the lock is released.
        let mut given_back = None;
        let mut wakeups = Wakeups::new();
        let mut state = self.lock();
        batch_request.requests = state.piece(group, batch_request.requests);
        let (granted, first) = grant_at_once(&mut state, now, batch_request, &mut wakeups)?;
        let batched = match first {
            None => Ok(Batched::Granted(granted.into())),
            Some(first) => {
                batch_request.requests = &batch_request.requests[granted.len() + 1..];
                let batch = state.add_batch(now, granted, first, waker);
                match timer::start(&mut state, group) {
                    Ok(()) => {
                        state.add_members(now, batch, batch_request);
                        state.grant_ready(now, None, &mut wakeups);
                        Ok(Batched::Waits(batch))
                    }
                    Err(error) => {
                        given_back = give_back(group, &mut state, now, batch);
                        Err(NoGrant::Timer(error))
                    }
                }
            }
        };
        if state.anybody_waits() {
            state.arm_deadline(now, DeadlineOwner::Nobody, &mut wakeups);
        }
        self.release(group, state, now, &mut wakeups);
        drop(given_back);
        batched
    }

    /// Returns the tickets of a batch if it is granted now. Otherwise `waker` is woken at the
    /// grant.
    pub(crate) fn poll_batch(
        &self,
        group: &GroupState,
        batch: usize,
        waker: KeptWaker,
    ) -> Option<Box<[Ticket]>> {
        let now = self.clock.now();
        let mut state = self.lock();
        // Wakers are dropped after the lock is released.
        let collected = state.collect(now, batch, waker);
        self.grant_and_release(group, state, now);
        collected.ok().map(|(granted, _)| granted.tickets)
    }

    /// Abandons a batch: nobody waits for it any more.
    pub(crate) fn abandon_batch(&self, group: &GroupState, batch: usize) {
        let now = self.clock.now();
        let mut state = self.lock();
        let abandoned = give_back(group, &mut state, now, batch);
        self.grant_and_release(group, state, now);
        drop(abandoned);
    }

    /// Completes the requests of a batch whose I/O has ended. Requests that were completed before
    /// are not changed.
    // Cold: single permits are more frequent, and faster without this code in their path.
    #[cold]
    pub(crate) fn complete_batch(&self, group: &GroupState, tickets: &[Ticket], outcome: Outcome) {
        let now = self.clock.now();
        let mut state = self.lock();
        for &ticket in tickets {
            if let Ok(completion) = state.queue.complete(now, ticket, outcome) {
                group.record(state.queue.shard(), &completion, Some(&state.queue));
            }
        }
        self.grant_and_release(group, state, now);
    }
}

/// Removes a batch: its waiting requests are cancelled, and its granted ones completed. The
/// returned batch holds a waker, to be dropped outside the lock.
fn give_back(group: &GroupState, state: &mut State, now: Time, batch: usize) -> Option<Batch> {
    let Some(abandoned) = state.batches.try_remove(batch) else {
        messages::report_invariant("a batch is missing that was neither collected nor abandoned");
        return None;
    };
    for &ticket in &abandoned.tickets {
        let (waited, _) = state.withdraw(now, ticket);
        if !waited && let Ok(completion) = state.queue.complete(now, ticket, Outcome::Done) {
            group.record(state.queue.shard(), &completion, Some(&state.queue));
        }
    }
    Some(abandoned)
}

#[cfg(test)]
mod tests {
    use forebay_core::{DiskModel, GroupConfig, IoGroup, Policy};

    use std::task::Waker;

    use super::*;

    #[test]
    fn a_batch_that_is_gone_is_told() {
        let group = IoGroup::new(GroupConfig::new(DiskModel::unmeasured(), Policy::Unlimited));
        let mut state = State::new(group.join().unwrap(), 0);
        let (now, waker) = (Time::from_nanos(1), Waker::noop());
        assert!(messages::meets_a_bug(|| _ = state.collect(now, 7, KeptWaker::of(waker)).is_ok()));
    }
}
