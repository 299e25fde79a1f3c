//! The backend that executes nothing, to measure the code around an engine.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use super::operation::{Completion, Operation};
use super::waker::WakeDescriptor;

/// Completes every operation at its submission, without a system call. Only a wait without
/// operations sleeps.
#[derive(Debug)]
pub(super) struct Null {
    pushed: VecDeque<Completion>,
    /// The number of submitted operations at the front of `pushed`. If operations completed at the
    /// push, a loop that pushes what it pops would never end.
    done: usize,
    pub(super) descriptor: Arc<WakeDescriptor>,
    /// Whether an event loop polls the eventfd of `descriptor` between submissions.
    watched: bool,
}

impl Null {
    #[cfg_attr(not(feature = "internals"), expect(dead_code, reason = "nobody can choose it"))]
    pub(super) fn new(depth_max: u32) -> io::Result<Self> {
        let pushed = VecDeque::with_capacity(depth_max as usize);
        Ok(Self { pushed, done: 0, descriptor: WakeDescriptor::new()?, watched: false })
    }

    pub(super) fn push(&mut self, token: u64, mut operation: Operation) {
        if let Operation::Read { buffer, .. } = &mut operation {
            // The caller may inspect the data that was reported as read.
            buffer.zeroed();
        }
        let result = Ok(operation.transfer_len());
        self.pushed.push_back(Completion { token, result, operation });
    }

    pub(super) fn submit_and_wait(&mut self, timeout: Option<Duration>) {
        self.collect();
        if std::mem::take(&mut self.watched) {
            self.descriptor.stop_watch();
        }
        if self.done == 0 && timeout != Some(Duration::ZERO) {
            self.descriptor.park(timeout);
        } else {
            self.descriptor.end_sleep();
        }
    }

    pub(super) fn collect(&mut self) {
        self.done = self.pushed.len();
    }

    pub(super) fn watch(&mut self) {
        self.watched = true;
        self.descriptor.watch(!self.pushed.is_empty());
    }

    pub(super) fn pop(&mut self) -> Option<Completion> {
        self.done = self.done.checked_sub(1)?;
        self.pushed.pop_front()
    }
}
