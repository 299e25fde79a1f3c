//! Requests that can be cancelled together.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use slab::Slab;

use crate::coordinator::{Mailbox, Slot};

/// A purpose that requests serve, and that can end before they do: a query
/// that was given up, a compaction that is obsolete.
///
/// Requests made of a file [under an intent](crate::File::under) are cancelled
/// together. Cheap to clone; every clone is the same intent. Dropping it
/// cancels nothing.
///
/// ```
/// # use forebay::{AlignedBuf, BufResult, FileOptions, Scheduler};
/// use forebay::Intent;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let dir = tempfile::tempdir()?;
/// # let path = dir.path().join("data");
/// # let scheduler = Scheduler::builder().build()?;
/// # let queries = scheduler.add_class("queries", 200)?;
/// # let options = FileOptions::new().read(true).write(true).create(true);
/// # let file = scheduler.open(&path, &options)?;
/// let query = Intent::new();
/// query.cancel();
/// let read = file.under(&query).read_at(&queries, AlignedBuf::new(4096, 4096)?, 0);
/// let BufResult(read, _buffer) = read.wait();
/// assert!(read.is_err());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Default)]
pub struct Intent {
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    cancelled: bool,
    members: Slab<(Arc<Slot>, Arc<Mailbox>)>,
}

/// A request's place among those of its intent; given up when dropped.
pub(super) struct Membership {
    intent: Intent,
    key: usize,
}

impl Intent {
    /// An intent that no request is under.
    pub fn new() -> Self {
        Self::default()
    }

    /// Cancels all requests under this intent, and those that will be made
    /// under it. What waits ends with `ECANCELED`; what the disk has is
    /// cancelled if that is possible, and otherwise ends as usual.
    pub fn cancel(&self) {
        let mut state = self.lock();
        state.cancelled = true;
        for (_, (slot, mailbox)) in &state.members {
            mailbox.cancel(slot);
        }
    }

    /// Whether it was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.lock().cancelled
    }

    /// Adds a request that was sent; one that comes too late is cancelled.
    pub(super) fn join(&self, slot: &Arc<Slot>, mailbox: &Arc<Mailbox>) -> Option<Membership> {
        let mut state = self.lock();
        if state.cancelled {
            mailbox.cancel(slot);
            return None;
        }
        let key = state.members.insert((Arc::clone(slot), Arc::clone(mailbox)));
        Some(Membership { intent: self.clone(), key })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        let member = self.intent.lock().members.try_remove(self.key);
        // The slot may go with it, and what it holds: not under the lock.
        drop(member);
    }
}

impl fmt::Debug for Intent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.lock();
        f.debug_struct("Intent")
            .field("cancelled", &state.cancelled)
            .field("requests", &state.members.len())
            .finish()
    }
}
