//! Waiters for the dirty bytes of a file.

use std::sync::OnceLock;
use std::task::{Poll, Waker};

use super::dirt::Dirt;
use crate::wait_list::WaiterId;

/// Waits until parts of the file have ended, or until more bytes may be dirty. Dropping it ends the
/// wait.
pub(super) struct Waiter<'a> {
    file: &'a Dirt,
    /// Set when it waits for the first time.
    id: OnceLock<WaiterId>,
}

impl<'a> Waiter<'a> {
    pub(super) const fn of(file: &'a Dirt) -> Self {
        Self { file, id: OnceLock::new() }
    }

    /// Reserves `bytes` that are about to become dirty, if they fit within the bounds and no
    /// earlier write waits. Otherwise `waker` is woken in turn.
    pub(super) fn poll_reserve(&self, bytes: u64, waker: &Waker) -> Poll<()> {
        self.file.poll_reserve(bytes, self.id(), waker)
    }

    /// Ready if all parts up to this number have ended. Otherwise `waker` is woken when one has.
    pub(super) fn poll_ended(&self, number: u64, waker: &Waker) -> Poll<()> {
        self.file.poll_ended(number, self.id(), waker)
    }

    fn id(&self) -> WaiterId {
        *self.id.get_or_init(WaiterId::new)
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        if let Some(id) = self.id.get() {
            self.file.leave(*id);
        }
    }
}
