//! Operations that can be cancelled together, from any thread.

use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use forebay_driver::OperationId;

use super::{Shard, SubmitError};
use crate::engine::{EngineWaker, Operation};
use crate::intent::{Member, Membership};
use crate::{Class, Intent};

/// Operations of one shard whose intents were cancelled.
#[derive(Debug)]
pub(crate) struct Unwanted {
    /// No more than are under an intent.
    ids: Mutex<Vec<OperationId>>,
    /// Whether there are any; changes under the lock.
    any: AtomicBool,
    waker: EngineWaker,
}

impl Unwanted {
    /// Asks for the end of an operation; the shard is woken if it sleeps.
    pub(crate) fn add(&self, id: OperationId) {
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

    fn lock(&self) -> MutexGuard<'_, Vec<OperationId>> {
        self.ids.lock().unwrap_or_else(PoisonError::into_inner)
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
    fn new(waker: EngineWaker) -> Self {
        let unwanted = Unwanted { ids: Mutex::default(), any: AtomicBool::new(false), waker };
        Self { unwanted: Arc::new(unwanted), memberships: Vec::new(), taken: Vec::new() }
    }

    fn join(&mut self, intent: &Intent, id: OperationId) {
        let submitted = Member::Submitted(id, Arc::clone(&self.unwanted));
        if self.memberships.len() <= id.index() {
            self.memberships.resize_with(id.index() + 1, || None);
        }
        self.memberships[id.index()] = intent.join(submitted);
    }

    /// The operation has been popped.
    pub(super) fn leave(&mut self, id: OperationId) {
        if let Some(membership) = self.memberships.get_mut(id.index()) {
            *membership = None;
        }
    }
}

impl Shard {
    /// [`Shard::submit`], of an operation that is cancelled with all others
    /// under `intent`: by the next [`turn`](Self::turn), whose sleep ends for
    /// it, if the intent is cancelled by then or during the sleep.
    ///
    /// # Errors
    /// As for [`Shard::submit`].
    pub fn submit_under(
        &mut self,
        intent: &Intent,
        class: &Class,
        operation: Operation,
    ) -> Result<OperationId, (SubmitError, Operation)> {
        let id = self.submit(class, operation)?;
        let waker = || self.operations.engine().waker();
        self.intents.get_or_insert_with(|| Intents::new(waker())).join(intent, id);
        Ok(id)
    }

    /// Cancels what is under intents that were cancelled.
    pub(super) fn end_unwanted(&mut self) {
        let Some(intents) = &mut self.intents else { return };
        intents.unwanted.take(&mut intents.taken);
        if intents.taken.is_empty() {
            return;
        }
        let now = self.operations.now();
        for id in intents.taken.drain(..) {
            self.operations.cancel(now, id);
        }
    }
}
