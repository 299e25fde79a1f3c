//! The queue of messages to an I/O thread.

use std::mem;

use crate::engine::EngineWaker;
use crate::messages::report_invariant;
use crate::sys::lock::{HereGuard, Lock};

/// The most requests of one I/O thread, waiting and in the disk together.
pub const REQUESTS_MAX: usize = 1 << 16;

/// The queue of messages to one I/O thread.
#[derive(Debug)]
pub(crate) struct Inbox<M> {
    state: Lock<State<M>>,
}

#[derive(Debug)]
struct State<M> {
    /// Wakes the I/O thread.
    waker: EngineWaker,
    messages: Vec<M>,
    /// The number of requests without an answer.
    unanswered: usize,
    closed: bool,
}

/// The inbox has its maximum of requests.
#[derive(thiserror::Error)]
#[error("{REQUESTS_MAX} requests are queued for the disk or in it: wait for some of them")]
pub(crate) struct InboxFull;

forebay_core::debug_as_display!(InboxFull);

impl<M> Inbox<M> {
    pub(super) fn new(waker: EngineWaker) -> Self {
        let state = State { waker, messages: Vec::new(), unanswered: 0, closed: false };
        Self { state: Lock::new(state) }
    }

    /// Sends a request, and wakes the thread if it sleeps. If there is no room, `message` is not
    /// called.
    pub(super) fn send_request(&self, message: impl FnOnce() -> M) -> Result<(), InboxFull> {
        let mut state = self.state.lock_here();
        if state.unanswered >= REQUESTS_MAX {
            return Err(InboxFull);
        }
        state.unanswered += 1;
        Self::post(state, message());
        Ok(())
    }

    /// Sends a message that gets no answer.
    pub(super) fn send(&self, message: M) {
        Self::post(self.state.lock_here(), message);
    }

    /// Tells the thread to end.
    pub(super) fn close(&self) {
        let mut state = self.state.lock_here();
        state.closed = true;
        let waker = state.waker.clone();
        drop(state);
        waker.wake();
    }

    /// Moves the received messages into `messages`, which must be empty, and counts `answered`
    /// requests as done. Returns false if the thread is to end.
    pub(super) fn take(&self, messages: &mut Vec<M>, answered: usize) -> bool {
        let mut state = self.state.lock_here();
        if answered > state.unanswered {
            report_invariant("a request was answered that was not counted when it was sent");
        }
        state.unanswered = state.unanswered.saturating_sub(answered);
        mem::swap(&mut state.messages, messages);
        !state.closed
    }

    /// Continues after a panic of the thread, which has ended all its requests. `waker` wakes it
    /// from now on. Returns false if the thread is to end.
    pub(super) fn restart(&self, waker: EngineWaker, is_request: impl Fn(&&M) -> bool) -> bool {
        let mut state = self.state.lock_here();
        state.waker = waker;
        state.unanswered = state.messages.iter().filter(is_request).count();
        !state.closed
    }

    /// Ends all requests in the inbox of a thread that has panicked. Returns false if the thread is
    /// to end.
    pub(super) fn return_all(&self) -> bool {
        let mut state = self.state.lock_here();
        state.unanswered = 0;
        let messages = mem::take(&mut state.messages);
        let closed = state.closed;
        drop(state);
        drop(messages);
        !closed
    }

    fn post(mut state: HereGuard<'_, State<M>>, message: M) {
        // If there are messages already, the first of them has woken the thread.
        let waker = state.messages.is_empty().then(|| state.waker.clone());
        state.messages.push(message);
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}
