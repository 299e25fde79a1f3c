//! The backend that does nothing, for measuring what surrounds an engine.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use super::operation::{Completed, Operation};
use super::waker::Bell;

/// Completes every operation when it is submitted, without a system call. Only
/// an idle wait sleeps.
#[derive(Debug)]
pub(super) struct Null {
    pushed: VecDeque<Completed>,
    /// How many of the first in `pushed` were submitted. Were they complete
    /// before, a loop that pushes what it pops would never end.
    done: usize,
    bell: Arc<Bell>,
}

impl Null {
    pub(super) fn new(depth_max: u32) -> Self {
        Self {
            pushed: VecDeque::with_capacity(depth_max as usize),
            done: 0,
            bell: Bell::for_this_thread(),
        }
    }

    pub(super) const fn bell(&self) -> &Arc<Bell> {
        &self.bell
    }

    pub(super) fn push(&mut self, token: u64, operation: Operation) {
        let result = Ok(operation.transfer_len());
        self.pushed.push_back(Completed { token, result, operation });
    }

    pub(super) fn submit_and_wait(&mut self, timeout: Option<Duration>) {
        self.done = self.pushed.len();
        if self.done == 0 && timeout != Some(Duration::ZERO) {
            self.bell.park(timeout);
        } else {
            self.bell.awaken();
        }
    }

    pub(super) fn pop(&mut self) -> Option<Completed> {
        self.done = self.done.checked_sub(1)?;
        self.pushed.pop_front()
    }
}
