//! Tasks and threads that wait for the same event.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::sys::waker::KeptWaker;

/// The id of a waiter, which is the same in all lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct WaiterId(u64);

impl WaiterId {
    /// A new, unique id.
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// The present waiters. A waiter that stops waiting removes its waker.
#[derive(Debug, Default)]
pub(crate) struct WaitList(BTreeMap<WaiterId, KeptWaker>);

impl WaitList {
    /// Sets the waker of a waiter. Returns its previous one, to be dropped without a lock.
    #[must_use]
    pub(crate) fn add(&mut self, id: WaiterId, waker: KeptWaker) -> Option<KeptWaker> {
        self.0.insert(id, waker)
    }

    /// Removes a waiter. Returns its waker, to be dropped without a lock, because the drop may end
    /// a task.
    #[must_use]
    pub(crate) fn remove(&mut self, id: WaiterId) -> Option<KeptWaker> {
        self.0.remove(&id)
    }

    /// Takes all waiters, to be woken without a lock.
    #[must_use]
    pub(crate) fn take(&mut self) -> Self {
        std::mem::take(self)
    }
}

/// The wakers in the order in which their waiters were made, to be woken without a lock.
impl IntoIterator for WaitList {
    type Item = KeptWaker;
    type IntoIter = std::collections::btree_map::IntoValues<WaiterId, KeptWaker>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_values()
    }
}
