//! Several requests that are granted together.
//!
//! Those of a batch stand in the order one by one and cost what single ones do.
//! One that has had its turn while others of its batch have not is set aside:
//! it has paid and holds no room. They enter together with the last one. So no
//! batch keeps another from the disk while it waits.

use std::mem;
use std::sync::Arc;
use std::task::Waker;

use forebay_core::{ClassId, DiskTime, Op, Outcome, Ticket, Time};

use super::state::{Keeper, State};
use super::wakeups::{Wakeup, Wakeups};
use super::{Admission, Asked, NoGrant, enqueue, queue, timer};
use crate::disk::DiskGroup;

/// Most requests that are granted together, so that nobody keeps the lock for long.
pub(crate) const BATCH_MAX: usize = 128;

/// What permits are asked for at once.
#[derive(Clone, Copy)]
pub(super) struct AskedMany<'a> {
    pub(super) class: ClassId,
    pub(super) requests: &'a [(Op, u64)],
    pub(super) holder: bool,
}

/// What became of a batch.
pub(super) enum Batched {
    Granted(Box<[Ticket]>),
    /// Its number, until it is collected or abandoned.
    Waits(usize),
}

/// A batch that is not granted as a whole, or whose task has not noticed that.
pub(super) struct Batch {
    /// In the order of the requests.
    tickets: Box<[Ticket]>,
    /// How many of them are in the queue.
    queued: usize,
    /// Each has had its turn.
    paid: bool,
    /// Whom to wake when none is in the queue any more.
    waker: Option<Waker>,
}

impl State {
    /// The first of the requests that go together: as many as cost one effective goal.
    fn piece<'a>(&self, group: &DiskGroup, requests: &'a [(Op, u64)]) -> &'a [(Op, u64)] {
        let goal = self.queue.effective_goal();
        let mut cost = DiskTime::ZERO;
        let fits = |&&(op, len): &&(Op, u64)| {
            cost = cost.plus(self.queue.cost(op, len));
            cost <= goal
        };
        let count = requests.iter().take(group.batch_max).take_while(fits).count();
        &requests[..count.max(1).min(requests.len())]
    }

    /// A request of a batch is granted. Returns whom to wake, if it was the last.
    pub(super) fn grant_member(
        &mut self,
        now: Time,
        ticket: Ticket,
        batch: usize,
    ) -> Option<Wakeup> {
        let waiting = self.batches.get_mut(batch)?;
        waiting.queued -= 1;
        if waiting.queued > 0 && !waiting.paid {
            self.put_aside(now, ticket);
            return None;
        }
        self.waiters.add_unnoticed(now, ticket);
        if !self.enter(now, batch) {
            return None;
        }
        self.batches.get_mut(batch)?.waker.take().map(Wakeup::Task)
    }

    fn put_aside(&mut self, now: Time, ticket: Ticket) {
        self.waiters.add_paid(ticket);
        // Stale only if it was given up: then it has no room to give back.
        let _ = self.queue.set_aside(now, ticket);
    }

    /// What was set aside of a batch goes, if each of it has had its turn.
    /// Whether all of it is in the disk now; else some waits for room.
    fn enter(&mut self, now: Time, batch: usize) -> bool {
        let Some(waiting) = self.batches.get_mut(batch).filter(|waiting| waiting.queued == 0)
        else {
            return false;
        };
        waiting.paid = true;
        // What is refused waits before all others: the first of them last.
        for &ticket in waiting.tickets.iter().rev() {
            if !self.waiters.is_set_aside(ticket) {
                continue;
            }
            // Stale if it was given up before it was set aside.
            if self.queue.take_up(now, ticket).unwrap_or(true) {
                self.waiters.add_unnoticed(now, ticket);
            } else {
                self.waiters.add_member(ticket, batch);
                waiting.queued += 1;
            }
        }
        waiting.queued == 0
    }

    /// A batch of which these were granted and `first` was not.
    fn add_batch(&mut self, now: Time, granted: Vec<Ticket>, first: Ticket, waker: Waker) -> usize {
        for &ticket in &granted {
            self.put_aside(now, ticket);
        }
        let mut tickets = granted;
        tickets.push(first);
        let waiting = Batch { tickets: tickets.into(), queued: 1, paid: false, waker: Some(waker) };
        let batch = self.batches.insert(waiting);
        self.waiters.add_member(first, batch);
        batch
    }

    /// Queues the rest of a batch, as far as there is room.
    fn add_members(&mut self, now: Time, batch: usize, rest: AskedMany<'_>) {
        let Some(waiting) = self.batches.get_mut(batch) else { return };
        let mut tickets = mem::take(&mut waiting.tickets).into_vec();
        let queued_before = tickets.len();
        let AskedMany { class, requests, holder } = rest;
        for &(op, len) in requests {
            let Ok(ticket) = queue(self, now, Asked { class, op, len, holder }) else { break };
            self.waiters.add_member(ticket, batch);
            tickets.push(ticket);
        }
        let Some(waiting) = self.batches.get_mut(batch) else { return };
        waiting.queued += tickets.len() - queued_before;
        waiting.tickets = tickets.into();
    }

    /// The tickets of a batch that is granted; else `waker` is woken when it is, and the one of
    /// before returned.
    fn collect(&mut self, now: Time, batch: usize, waker: Waker) -> Result<Batch, Option<Waker>> {
        if self.enter(now, batch) {
            let granted = self.batches.remove(batch);
            for &ticket in &granted.tickets {
                self.waiters.forget(ticket);
            }
            return Ok(granted);
        }
        Err(self.batches.get_mut(batch).and_then(|waiting| waiting.waker.replace(waker)))
    }
}

/// Grants as many of the requests as go at once: these, and the first that does not, which is
/// queued.
fn grant_at_once(
    state: &mut State,
    now: Time,
    asked: AskedMany<'_>,
    wakeups: &mut Wakeups,
) -> Result<(Vec<Ticket>, Option<Ticket>), NoGrant> {
    let AskedMany { class, requests, holder } = asked;
    let mut granted = Vec::with_capacity(requests.len());
    for &(op, len) in requests {
        match enqueue(state, now, Asked { class, op, len, holder }, wakeups) {
            Ok((ticket, true)) => granted.push(ticket),
            Ok((ticket, false)) => return Ok((granted, Some(ticket))),
            Err(error) if granted.is_empty() => return Err(error),
            // There is no room for the rest.
            Err(_) => break,
        }
    }
    Ok((granted, None))
}

impl Admission {
    /// As many of the requests as can be granted at `now`.
    pub(super) fn try_admit_many(
        &self,
        group: &DiskGroup,
        now: Time,
        mut asked: AskedMany<'_>,
    ) -> Result<Box<[Ticket]>, NoGrant> {
        let mut wakeups = Wakeups::new();
        let mut state = self.lock();
        asked.requests = state.piece(group, asked.requests);
        let (granted, first) = grant_at_once(&mut state, now, asked, &mut wakeups)?;
        if let Some(first) = first {
            state.queue.cancel(now, first);
        }
        if state.waiters.any() {
            state.keep_time(now, Keeper::Nobody, &mut wakeups);
        }
        self.release(group, state, now, &mut wakeups);
        if granted.is_empty() { Err(NoGrant::TimedOut) } else { Ok(granted.into()) }
    }

    /// The first of the requests, as many as go together: granted, or `waker` is woken when they
    /// are.
    pub(super) fn start_batch(
        &self,
        group: &Arc<DiskGroup>,
        mut asked: AskedMany<'_>,
        waker: Waker,
    ) -> Result<Batched, NoGrant> {
        let now = self.clock.now();
        let mut wakeups = Wakeups::new();
        let mut state = self.lock();
        asked.requests = state.piece(group, asked.requests);
        let (granted, first) = grant_at_once(&mut state, now, asked, &mut wakeups)?;
        let batched = match first {
            None => Ok(Batched::Granted(granted.into())),
            Some(first) => {
                asked.requests = &asked.requests[granted.len() + 1..];
                let batch = state.add_batch(now, granted, first, waker);
                match timer::start(&mut state, group) {
                    Ok(()) => {
                        state.add_members(now, batch, asked);
                        state.settle(now, None, &mut wakeups);
                        Ok(Batched::Waits(batch))
                    }
                    Err(error) => {
                        give_back(group, &mut state, now, batch);
                        Err(NoGrant::Timer(error))
                    }
                }
            }
        };
        if state.waiters.any() {
            state.keep_time(now, Keeper::Nobody, &mut wakeups);
        }
        self.release(group, state, now, &mut wakeups);
        batched
    }

    /// The tickets of a batch if it is granted now; else `waker` is woken when it is.
    pub(super) fn poll_batch(
        &self,
        group: &DiskGroup,
        batch: usize,
        waker: Waker,
    ) -> Option<Box<[Ticket]>> {
        let now = self.clock.now();
        let mut wakeups = Wakeups::new();
        let mut state = self.lock();
        // Wakers are dropped after the lock is released.
        let collected = state.collect(now, batch, waker);
        state.settle(now, None, &mut wakeups);
        state.keep_time(now, Keeper::Nobody, &mut wakeups);
        self.release(group, state, now, &mut wakeups);
        collected.ok().map(|granted| granted.tickets)
    }

    /// Nobody is interested in a batch any more.
    pub(super) fn abandon_batch(&self, group: &DiskGroup, batch: usize) {
        let now = self.clock.now();
        let mut wakeups = Wakeups::new();
        let mut state = self.lock();
        let abandoned = give_back(group, &mut state, now, batch);
        state.settle(now, None, &mut wakeups);
        state.keep_time(now, Keeper::Nobody, &mut wakeups);
        self.release(group, state, now, &mut wakeups);
        drop(abandoned);
    }

    /// The owner of a batch has done its I/O. What was completed before stays as it was.
    // single permits come more often, and are quicker without it in their way
    #[cold]
    pub(super) fn complete_batch(&self, group: &DiskGroup, tickets: &[Ticket], outcome: Outcome) {
        let now = self.clock.now();
        let mut wakeups = Wakeups::new();
        let mut state = self.lock();
        for &ticket in tickets {
            if let Ok(completion) = state.queue.complete(now, ticket, outcome) {
                group.metrics(state.queue.shard()).record(&completion);
            }
        }
        state.settle(now, None, &mut wakeups);
        state.keep_time(now, Keeper::Nobody, &mut wakeups);
        self.release(group, state, now, &mut wakeups);
    }
}

/// Takes a batch back, whatever of it was granted. Its waker is to be dropped outside the lock.
fn give_back(group: &DiskGroup, state: &mut State, now: Time, batch: usize) -> Option<Batch> {
    let abandoned = state.batches.try_remove(batch)?;
    for &ticket in &abandoned.tickets {
        let (waited, _) = state.withdraw(now, ticket);
        if !waited && let Ok(completion) = state.queue.complete(now, ticket, Outcome::Done) {
            group.metrics(state.queue.shard()).record(&completion);
        }
    }
    Some(abandoned)
}
