//! Operations that can be cancelled together, from any thread.

use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::vec::Drain;

use forebay_driver::OperationId;

use crate::Intent;
use crate::engine::EngineWaker;
use crate::intent::{Cancel, Membership};
use crate::sys::lock::{Lock, LockGuard};

/// Operations of one shard whose intents were cancelled.
#[derive(Debug)]
struct Unwanted {
    /// No more than are under an intent.
    ids: Lock<Vec<OperationId>>,
    /// Whether there are any; changes under the lock.
    any: AtomicBool,
    waker: EngineWaker,
}

impl Unwanted {
    /// Asks for the end of an operation; the shard is woken if it sleeps.
    fn add(&self, id: OperationId) {
        let mut ids = self.lock();
        ids.push(id);
        // The first of several has woken the thread.
        let is_first = !self.any.swap(true, Ordering::Release);
        drop(ids);
        if is_first {
            self.waker.wake();
        }
    }

    /// Moves what has come into `taken`, which is empty.
    fn take(&self, taken: &mut Vec<OperationId>) {
        if self.any.load(Ordering::Acquire) {
            let mut ids = self.lock();
            self.any.store(false, Ordering::Relaxed);
            mem::swap(&mut *ids, taken);
        }
    }

    fn lock(&self) -> LockGuard<'_, Vec<OperationId>> {
        self.ids.lock()
    }
}

impl Cancel for Unwanted {
    fn cancel(self: Arc<Self>, key: u64) {
        self.add(OperationId::from_bits(key));
    }
}

/// Which of a shard's operations are under an intent.
#[derive(Debug)]
pub(super) struct Intents {
    unwanted: Arc<Unwanted>,
    /// By [`OperationId::index`].
    memberships: Vec<Option<Membership>>,
    /// Those that are being cancelled.
    taken: Vec<OperationId>,
}

impl Intents {
    pub(super) fn new(waker: EngineWaker) -> Self {
        let unwanted = Unwanted { ids: Lock::default(), any: AtomicBool::new(false), waker };
        Self { unwanted: Arc::new(unwanted), memberships: Vec::new(), taken: Vec::new() }
    }

    pub(super) fn join(&mut self, intent: &Intent, id: OperationId) {
        if self.memberships.len() <= id.index() {
            self.memberships.resize_with(id.index() + 1, || None);
        }
        self.memberships[id.index()] = intent.join(Arc::clone(&self.unwanted) as _, id.to_bits());
    }

    /// Those whose intents were cancelled since this was asked last.
    pub(super) fn unwanted(&mut self) -> Drain<'_, OperationId> {
        self.unwanted.take(&mut self.taken);
        self.taken.drain(..)
    }

    /// The operation has been popped.
    pub(super) fn leave(&mut self, id: OperationId) {
        if let Some(membership) = self.memberships.get_mut(id.index()) {
            *membership = None;
        }
    }
}
