//! How orders reach an I/O thread.

use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::slot::Slot;
use crate::engine::EngineWaker;

/// Most requests that one I/O thread has, waiting and in the disk.
pub const REQUESTS_MAX: usize = 1 << 16;

/// What an I/O thread is told.
#[derive(Debug)]
pub(super) enum Letter {
    /// A new order.
    Order(Arc<Slot>),
    /// Nobody wants this one any more.
    Cancel(Arc<Slot>),
}

/// The way to one I/O thread.
#[derive(Debug)]
pub(crate) struct Mailbox {
    state: Mutex<State>,
    waker: EngineWaker,
}

#[derive(Debug, Default)]
struct State {
    letters: Vec<Letter>,
    /// Orders that are not answered.
    unanswered: usize,
    closed: bool,
}

/// The mailbox takes no more orders.
#[derive(Debug, thiserror::Error)]
#[error("{REQUESTS_MAX} requests wait for the disk or are in it: wait for some of them")]
pub(crate) struct MailboxFull;

impl Mailbox {
    pub(super) fn new(waker: EngineWaker) -> Self {
        Self { state: Mutex::default(), waker }
    }

    /// Sends an order; the thread is woken if it sleeps.
    pub(crate) fn order(&self, slot: &Arc<Slot>) -> Result<(), MailboxFull> {
        let mut state = self.lock();
        if state.unanswered >= REQUESTS_MAX {
            return Err(MailboxFull);
        }
        state.unanswered += 1;
        self.post(state, Letter::Order(Arc::clone(slot)));
        Ok(())
    }

    /// Asks that an order end early.
    pub(crate) fn cancel(&self, slot: &Arc<Slot>) {
        self.post(self.lock(), Letter::Cancel(Arc::clone(slot)));
    }

    /// Tells the thread to end.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.waker.wake();
    }

    /// Moves what has come into `letters`, which is empty; `answered` orders
    /// are done. False when the thread is to end.
    pub(super) fn take(&self, letters: &mut Vec<Letter>, answered: usize) -> bool {
        let mut state = self.lock();
        state.unanswered -= answered;
        mem::swap(&mut state.letters, letters);
        !state.closed
    }

    fn post(&self, mut state: MutexGuard<'_, State>, letter: Letter) {
        // The first of several letters has woken the thread.
        let is_first = state.letters.is_empty();
        state.letters.push(letter);
        drop(state);
        if is_first {
            self.waker.wake();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
