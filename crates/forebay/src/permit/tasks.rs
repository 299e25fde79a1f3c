//! Tasks that wait for permits.

use std::sync::Arc;

use forebay_core::{Outcome, Ticket};

use super::disk_group::DiskGroup;
use super::queue::{PermitQueue, enqueue};
use super::request::{NoGrant, PermitRequest};
use super::state::Timekeeper;
use super::timer;
use super::waiters::Found;
use super::wakeups::Wakeups;
use crate::group::GroupState;
use crate::sys::waker::KeptWaker;

impl PermitQueue {
    /// A ticket for a task, and whether it is granted already; else `waker` is
    /// woken when it is.
    pub(crate) fn start_task(
        &self,
        group: &Arc<DiskGroup>,
        request: PermitRequest,
        waker: KeptWaker,
    ) -> Result<(Ticket, bool), NoGrant> {
        let now = self.clock.now();
        let mut wakeups = Wakeups::new();
        let mut state = self.lock();
        let (ticket, granted) = enqueue(&mut state, now, request, &mut wakeups)?;
        if !granted {
            if let Err(error) = timer::start(&mut state, group) {
                state.queue.cancel(now, ticket);
                state.keep_time(now, Timekeeper::Nobody, &mut wakeups);
                self.release(group, state, now, &mut wakeups);
                return Err(NoGrant::Timer(error));
            }
            state.waiters.add_task(ticket, waker);
        }
        if state.waiters.any() {
            state.keep_time(now, Timekeeper::Nobody, &mut wakeups);
        }
        self.release(group, state, now, &mut wakeups);
        Ok((ticket, granted))
    }

    /// Whether a task has its grant now; else `waker` is woken when it has.
    pub(crate) fn poll_task(&self, group: &GroupState, ticket: Ticket, waker: KeptWaker) -> bool {
        let mut state = self.lock();
        // What is not needed any more is dropped after the lock is released.
        let found = state.waiters.take_grant(ticket, waker);
        if !matches!(found, Found::SetAside) {
            drop(state);
            return matches!(found, Found::Granted(_));
        }
        let now = self.clock.now();
        let mut wakeups = Wakeups::new();
        // Stale if it was given up before it was set aside.
        let granted = state.queue.take_up(now, ticket).unwrap_or(true);
        let waker = if granted { state.waiters.forget(ticket) } else { None };
        state.settle(now, None, &mut wakeups);
        state.keep_time(now, Timekeeper::Nobody, &mut wakeups);
        self.release(group, state, now, &mut wakeups);
        drop(waker);
        granted
    }

    /// A task is not interested any more: its ticket leaves the queue, or is
    /// completed if it was granted meanwhile.
    pub(crate) fn abandon(&self, group: &GroupState, ticket: Ticket) {
        let now = self.clock.now();
        let mut wakeups = Wakeups::new();
        let mut state = self.lock();
        let (waited, _waker) = state.withdraw(now, ticket);
        if !waited {
            // Done and not failed: the disk has not answered with an error.
            if let Ok(completion) = state.queue.complete(now, ticket, Outcome::Done) {
                group.record(state.queue.shard(), &completion, Some(&state.queue));
            }
        }
        state.settle(now, None, &mut wakeups);
        state.keep_time(now, Timekeeper::Nobody, &mut wakeups);
        self.release(group, state, now, &mut wakeups);
    }
}
