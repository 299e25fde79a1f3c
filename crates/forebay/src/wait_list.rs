//! Tasks that wait for the same thing to happen.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Waker;

use crate::sys::panics::contain;

/// One that waits; the same in all lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct WaiterId(u64);

impl WaiterId {
    /// One that no other has.
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// As many as wait now: who gives up takes its waker out.
#[derive(Debug, Default)]
pub(crate) struct WaitList(BTreeMap<WaiterId, Waker>);

impl WaitList {
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// `waker` is woken next, and not those before it of the same waiter.
    pub(crate) fn add(&mut self, id: WaiterId, waker: &Waker) {
        self.0.entry(id).or_insert_with(|| waker.clone()).clone_from(waker);
    }

    /// The waker is to be dropped without a lock: it may drop a task.
    #[must_use]
    pub(crate) fn remove(&mut self, id: WaiterId) -> Option<Waker> {
        self.0.remove(&id)
    }

    /// Those that wait now, to be [woken](Self::wake_all) once there is no lock.
    pub(crate) fn take(&mut self) -> Self {
        std::mem::take(self)
    }

    /// Wakes all, the longest waiting first. What one of them does then keeps no other waiting.
    pub(crate) fn wake_all(self) {
        self.0.into_values().for_each(|waker| {
            contain(|| waker.wake());
        });
    }
}
