//! Tasks and threads that wait for the same thing to happen.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::sys::waker::KeptWaker;

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

/// As many as wait now: who waits no longer takes its waker out.
#[derive(Debug, Default)]
pub(crate) struct WaitList(BTreeMap<WaiterId, KeptWaker>);

impl WaitList {
    /// `waker` is woken next, and not the one before it of the same waiter: that is returned, to be
    /// dropped without a lock.
    #[must_use]
    pub(crate) fn add(&mut self, id: WaiterId, waker: KeptWaker) -> Option<KeptWaker> {
        self.0.insert(id, waker)
    }

    /// The waker is to be dropped without a lock: it may drop a task.
    #[must_use]
    pub(crate) fn remove(&mut self, id: WaiterId) -> Option<KeptWaker> {
        self.0.remove(&id)
    }

    /// Those that wait now, to be woken once there is no lock.
    #[must_use]
    pub(crate) fn take(&mut self) -> Self {
        std::mem::take(self)
    }
}

/// The longest waiting first; to be woken once there is no lock.
impl IntoIterator for WaitList {
    type Item = KeptWaker;
    type IntoIter = std::collections::btree_map::IntoValues<WaiterId, KeptWaker>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_values()
    }
}
