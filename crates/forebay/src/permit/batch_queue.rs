//! Several requests that are granted together.
//!
//! Those of a batch stand in the order one by one and cost what single ones do.
//! One that has had its turn while others of its batch have not is parked:
//! it has paid and holds no room. They enter together with the last one. So no
//! batch keeps another from the disk while it waits.
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

/// What became of a batch.
pub(crate) enum Batched {
    Granted(Box<[Ticket]>),
    /// Its number, until it is collected or abandoned.
    Waits(usize),
}

impl State {
    /// The first of the requests that go together: as many as cost one effective goal.
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

    /// A batch of which these were granted and `first` was not.
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

    /// Queues the rest of a batch, as far as there is room.
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

    /// The tickets of a batch that is granted; else `waker` is woken when it is. The waker that is
    /// not needed is returned, to be dropped outside the lock.
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

/// Grants as many of the requests as go at once: these, and the first that does not, which is
/// queued.
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
            // There is no room for the rest.
            Err(_) => break,
        }
    }
    Ok((granted, None))
}

impl PermitQueue {
    /// As many of the requests as can be granted at `now`.
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

    /// The first of the requests, as many as go together: granted, or `waker` is woken when they
    /// are.
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

    /// The tickets of a batch if it is granted now; else `waker` is woken when it is.
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

    /// Nobody is interested in a batch any more.
    pub(crate) fn abandon_batch(&self, group: &GroupState, batch: usize) {
        let now = self.clock.now();
        let mut state = self.lock();
        let abandoned = give_back(group, &mut state, now, batch);
        self.grant_and_release(group, state, now);
        drop(abandoned);
    }

    /// The owner of a batch has done its I/O. What was completed before stays as it was.
    // single permits come more often, and are quicker without it in their way
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

/// Takes a batch back, whatever of it was granted. Its waker is to be dropped outside the lock.
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
