//! Admission: permits to do I/O, handed out in the order of the scheduler.
//!
//! The permits of a disk come from one queue behind a lock. Whoever holds the
//! lock grants whatever may go, names the waiter of each grant, and wakes them
//! after releasing it. One of the blocked threads sleeps only until the queue
//! must be polled next, for all; if all who wait are tasks, a timer thread does.

mod batch;
mod counters;
mod error;
mod future;
mod holding;
#[cfg(test)]
mod loom_tests;
mod many;
mod parking;
mod permit;
mod state;
mod target;
mod timer;
mod verbs;
mod waiters;
mod wakeups;

use std::fmt;
use std::sync::{Arc, PoisonError};
use std::task::Waker;

use forebay_core::{ClassId, Completion, EnqueueError, IoQueue, Op, Outcome, Ticket, Time};

pub(crate) use self::batch::BATCH_MAX;
pub use self::error::AdmitError;
pub use self::future::Admit;
pub(crate) use self::holding::holds;
pub use self::many::AdmitMany;
pub use self::permit::{Permit, ThreadPermit};
pub use self::target::{AdmitFor, Admitting, OnDisk};

use self::parking::Parking;
use self::state::{Keeper, State};
use self::waiters::Found;
use self::wakeups::Wakeups;
use crate::disk::DiskGroup;
use crate::sys::sync::{Clock, Mutex, MutexGuard};

/// The permits of one I/O group.
pub(crate) struct Admission {
    clock: Clock,
    state: Mutex<State>,
}

/// Why there is no grant.
enum NoGrant {
    Refused(EnqueueError),
    TimedOut,
    Timer(std::io::Error),
}

/// What a permit is asked for.
#[derive(Clone, Copy)]
struct Asked {
    class: ClassId,
    op: Op,
    len: u64,
    /// Whoever asks holds a permit that others may wait for.
    holder: bool,
}

impl Admission {
    pub(crate) fn new(queue: IoQueue, model_version: u64) -> Self {
        Self { clock: Clock::of_process(), state: Mutex::new(State::new(queue, model_version)) }
    }

    /// Grants what may go, after another queue has freed room or the model has
    /// changed.
    pub(crate) fn poll(&self, group: &DiskGroup) {
        let now = self.clock.now();
        let mut wakeups = Wakeups::new();
        let mut state = self.lock();
        if let Some(model) = group.newer_model(&mut state.model_version) {
            state.queue.set_model(model);
        }
        state.settle(now, None, &mut wakeups);
        state.keep_time(now, Keeper::Nobody, &mut wakeups);
        self.release(group, state, now, &mut wakeups);
    }

    /// The queue, to read its counters.
    pub(crate) fn with_queue<R>(&self, read: impl FnOnce(&IoQueue) -> R) -> R {
        read(&self.lock().queue)
    }

    /// A grant if there can be one at `now`.
    fn try_admit(
        &self,
        group: &DiskGroup,
        now: Time,
        asked: Asked,
    ) -> Result<(Ticket, Time), NoGrant> {
        let mut wakeups = Wakeups::new();
        let mut state = self.lock();
        let (ticket, granted) = enqueue(&mut state, now, asked, &mut wakeups)?;
        if !granted {
            state.queue.cancel(now, ticket);
        }
        if state.waiters.any() {
            state.keep_time(now, Keeper::Nobody, &mut wakeups);
        }
        self.release(group, state, now, &mut wakeups);
        if granted { Ok((ticket, now)) } else { Err(NoGrant::TimedOut) }
    }

    /// A grant, for which the calling thread sleeps until `deadline` at most,
    /// and since when it has it.
    fn admit(
        &self,
        group: &DiskGroup,
        now: Time,
        asked: Asked,
        deadline: Option<Time>,
    ) -> Result<(Ticket, Time), NoGrant> {
        let mut wakeups = Wakeups::new();
        let mut state = self.lock();
        let (ticket, granted) = enqueue(&mut state, now, asked, &mut wakeups)?;
        if granted {
            if state.waiters.any() {
                state.keep_time(now, Keeper::Nobody, &mut wakeups);
            }
            self.release(group, state, now, &mut wakeups);
            return Ok((ticket, now));
        }
        let parking = Parking::take_place();
        state.resign_here();
        state.waiters.add_thread(ticket, Arc::clone(&parking));
        self.wait(group, state, (now, &mut wakeups), (ticket, &parking), deadline)
    }

    /// Sleeps, with the lock released, until the thread's ticket is granted.
    fn wait<'a>(
        &'a self,
        group: &DiskGroup,
        mut state: MutexGuard<'a, State>,
        (mut now, wakeups): (Time, &mut Wakeups),
        (ticket, parking): (Ticket, &Parking),
        deadline: Option<Time>,
    ) -> Result<(Ticket, Time), NoGrant> {
        let me = Keeper::Thread(ticket.index() as u32);
        loop {
            let until = state.keep_time(now, me, wakeups);
            self.release(group, state, now, wakeups);
            group.tell_overdue(now);
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
            if parking.is_granted() || state.settle(now, Some(ticket), wakeups) {
                state.keep_time(now, Keeper::Nobody, wakeups);
                self.release(group, state, now, wakeups);
                return Ok((ticket, now));
            }
            if deadline.is_some_and(|deadline| deadline <= now) {
                state.withdraw(now, ticket);
                state.settle(now, None, wakeups);
                state.keep_time(now, Keeper::Nobody, wakeups);
                self.release(group, state, now, wakeups);
                return Err(NoGrant::TimedOut);
            }
        }
    }

    /// A ticket for a task, and whether it is granted already; else `waker` is
    /// woken when it is.
    fn start_task(
        &self,
        group: &Arc<DiskGroup>,
        asked: Asked,
        waker: Waker,
    ) -> Result<(Ticket, bool), NoGrant> {
        let now = self.clock.now();
        let mut wakeups = Wakeups::new();
        let mut state = self.lock();
        let (ticket, granted) = enqueue(&mut state, now, asked, &mut wakeups)?;
        if !granted {
            if let Err(error) = timer::start(&mut state, group) {
                state.queue.cancel(now, ticket);
                state.keep_time(now, Keeper::Nobody, &mut wakeups);
                self.release(group, state, now, &mut wakeups);
                return Err(NoGrant::Timer(error));
            }
            state.waiters.add_task(ticket, waker);
        }
        if state.waiters.any() {
            state.keep_time(now, Keeper::Nobody, &mut wakeups);
        }
        self.release(group, state, now, &mut wakeups);
        Ok((ticket, granted))
    }

    /// Whether a task has its grant now; else `waker` is woken when it has.
    fn poll_task(&self, group: &DiskGroup, ticket: Ticket, waker: Waker) -> bool {
        let mut state = self.lock();
        // What is not needed any more is dropped after the lock is released.
        let found = state.waiters.take_grant(ticket, waker);
        if !matches!(found, Found::SetAside) {
            drop(state);
            return matches!(found, Found::Granted);
        }
        let now = self.clock.now();
        let mut wakeups = Wakeups::new();
        // Stale if it was given up before it was set aside.
        let granted = state.queue.take_up(now, ticket).unwrap_or(true);
        let waker = if granted { state.waiters.forget(ticket) } else { None };
        state.settle(now, None, &mut wakeups);
        state.keep_time(now, Keeper::Nobody, &mut wakeups);
        self.release(group, state, now, &mut wakeups);
        drop(waker);
        granted
    }

    /// A task is not interested any more: its ticket leaves the queue, or is
    /// completed if it was granted meanwhile.
    fn abandon(&self, group: &DiskGroup, ticket: Ticket) {
        let now = self.clock.now();
        let mut wakeups = Wakeups::new();
        let mut state = self.lock();
        let (waited, _waker) = state.withdraw(now, ticket);
        if !waited {
            // Done and not failed: the disk has not answered with an error.
            if let Ok(completion) = state.queue.complete(now, ticket, Outcome::Done) {
                group.metrics(state.queue.shard()).record(&completion);
            }
        }
        state.settle(now, None, &mut wakeups);
        state.keep_time(now, Keeper::Nobody, &mut wakeups);
        self.release(group, state, now, &mut wakeups);
    }

    /// The owner of a grant has done its I/O.
    fn complete(&self, group: &DiskGroup, ticket: Ticket, outcome: Outcome) -> Option<Completion> {
        let now = self.clock.now();
        let mut wakeups = Wakeups::new();
        let mut state = self.lock();
        let completion = state.queue.complete(now, ticket, outcome).ok();
        if let Some(completion) = &completion {
            group.metrics(state.queue.shard()).record(completion);
        }
        if state.waiters.any() {
            state.settle(now, None, &mut wakeups);
            state.keep_time(now, Keeper::Nobody, &mut wakeups);
        } else {
            state.collect_shards(&mut wakeups);
        }
        self.release(group, state, now, &mut wakeups);
        completion
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Unlocks, wakes, and goes on granting if there was more than fits into
    /// one round.
    fn release<'a>(
        &'a self,
        group: &DiskGroup,
        mut state: MutexGuard<'a, State>,
        now: Time,
        wakeups: &mut Wakeups,
    ) {
        while state.unsettled {
            drop(state);
            wakeups.carry_out(&group.wakers);
            state = self.lock();
            state.settle(now, None, wakeups);
            state.keep_time(now, Keeper::Nobody, wakeups);
        }
        drop(state);
        wakeups.carry_out(&group.wakers);
    }
}

/// Queues a request and grants what may go: its ticket, and whether that is
/// among it.
fn enqueue(
    state: &mut State,
    now: Time,
    asked: Asked,
    wakeups: &mut Wakeups,
) -> Result<(Ticket, bool), NoGrant> {
    let Asked { class, op, len, .. } = asked;
    let at_once = state.queue.dispatch_at_once(now, class, op, len).map_err(NoGrant::Refused)?;
    if let Some(ticket) = at_once {
        state.collect_shards(wakeups);
        return Ok((ticket, true));
    }
    let ticket = match queue(state, now, asked) {
        Err(EnqueueError::Full) => queue_instead(state, now, asked),
        queued => queued,
    };
    let ticket = ticket.map_err(NoGrant::Refused)?;
    let granted = state.settle(now, Some(ticket), wakeups);
    Ok((ticket, granted))
}

fn queue(state: &mut State, now: Time, asked: Asked) -> Result<Ticket, EnqueueError> {
    let Asked { class, op, len, holder } = asked;
    if holder {
        state.queue.enqueue_for_holder(now, class, op, len)
    } else {
        state.queue.enqueue(now, class, op, len)
    }
}

/// Queues a request in the place of one that was forgotten, if there is one.
#[cold]
fn queue_instead(state: &mut State, now: Time, asked: Asked) -> Result<Ticket, EnqueueError> {
    if !state.forget_set_aside(now) {
        return Err(EnqueueError::Full);
    }
    queue(state, now, asked)
}

impl fmt::Debug for Admission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Admission").finish_non_exhaustive()
    }
}
