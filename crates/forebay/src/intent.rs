//! Requests that can be cancelled together.

use std::fmt;
use std::mem;
use std::sync::{Arc, Weak};

use slab::Slab;

use crate::sys::fork::Process;
use crate::sys::lock::{Lock, LockGuard};

/// A purpose that requests serve, and that can end before they do: a query
/// that was given up, a compaction that is obsolete.
///
/// Requests of files and operations of shards that were made
/// [with an intent](crate::File::with_intent), or
/// [submitted](crate::shard::Shard::submit_with_intent) with one,
/// are cancelled together, from any thread. Cheap to clone; every clone is the
/// same intent. Dropping it cancels nothing.
///
/// A purpose can have parts that end before it does: [children](Self::child). A request is
/// under one intent: the innermost.
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
/// let read = file.with_intent(&query).read_at(&queries, AlignedBuf::new(4096, 4096)?, 0);
/// let BufResult(read, _buffer) = read.wait();
/// assert!(read.is_err());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Intent {
    state: Arc<Lock<State>>,
    process: Process,
}

#[derive(Default)]
struct State {
    cancelled: bool,
    members: Slab<Member>,
    /// Its place in the intent that it is a child of.
    parent: Option<Place>,
}

/// What can end a request early, from any thread.
pub(crate) trait Cancel: Send + Sync {
    /// Asks for the end of what it knows by `key`, if there is such a thing.
    fn cancel(self: Arc<Self>, key: u64);
}

/// What is cancelled with an intent.
enum Member {
    /// Whom to ask to cancel a request, and by which key.
    Request(Arc<dyn Cancel>, u64),
    /// An intent that is a child of it.
    Child(Weak<Lock<State>>),
}

/// A member's place in its intent.
struct Place {
    intent: Intent,
    key: usize,
}

/// A member's place in its intent; given up when dropped.
pub(crate) struct Membership(Option<Place>);

impl Intent {
    /// An intent that no request is under.
    pub fn new() -> Self {
        Self { state: Arc::default(), process: Process::current() }
    }

    /// A child of this intent: cancelled with it, or before it without it.
    #[must_use]
    pub fn child(&self) -> Self {
        let child = Self::new();
        child.set_parent(self.add(Member::Child(Arc::downgrade(&child.state))));
        child
    }

    /// Keeps its place in its parent, which was cancelled already if there is
    /// none, and may have been since there is one.
    fn set_parent(&self, parent: Option<Place>) {
        let mut state = self.lock();
        state.cancelled |= parent.is_none();
        state.parent = parent;
    }

    /// Cancels all requests under this intent and its children, and those that
    /// will be made under it. What waits ends with `ECANCELED`; what the disk
    /// has is cancelled if that is possible, and otherwise ends as usual.
    ///
    /// Takes constant time per request, and blocks nobody's I/O. I/O threads
    /// and shards that sleep are woken, and do the rest.
    pub fn cancel(&self) {
        if !self.process.is_here() {
            return;
        }
        let mut cancelled = vec![self.clone()];
        while let Some(intent) = cancelled.pop() {
            let mut state = intent.lock();
            state.cancelled = true;
            let members = mem::take(&mut state.members);
            drop(state);
            for (_, member) in members {
                cancelled.extend(member.cancel());
            }
        }
    }

    /// Whether it was cancelled. True in a forked child, where nothing can be
    /// done under it.
    pub fn is_cancelled(&self) -> bool {
        !self.process.is_here() || self.lock().cancelled
    }

    /// Adds a request that is under way; one that comes too late is cancelled.
    pub(crate) fn join(&self, request: Arc<dyn Cancel>, key: u64) -> Option<Membership> {
        Some(Membership(Some(self.add(Member::Request(request, key))?)))
    }

    fn add(&self, member: Member) -> Option<Place> {
        let mut state = self.lock();
        if state.cancelled {
            drop(state);
            member.cancel();
            return None;
        }
        let key = state.members.insert(member);
        Some(Place { intent: self.clone(), key })
    }

    fn lock(&self) -> LockGuard<'_, State> {
        self.state.lock()
    }
}

impl Default for Intent {
    fn default() -> Self {
        Self::new()
    }
}

impl Member {
    /// Asks for its end; an intent that is to be cancelled is returned.
    fn cancel(self) -> Option<Intent> {
        match self {
            Self::Request(request, key) => request.cancel(key),
            Self::Child(state) => {
                let process = Process::current();
                return state.upgrade().map(|state| Intent { state, process });
            }
        }
        None
    }
}

impl Place {
    /// Gives it up; returns the intent that it was in.
    fn leave(self) -> Intent {
        if !self.intent.process.is_here() {
            return self.intent;
        }
        let member = self.intent.lock().members.try_remove(self.key);
        // What it holds may go with it: not under the lock.
        drop(member);
        self.intent
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        drop(self.0.take().map(Place::leave));
    }
}

impl Drop for State {
    /// One after the other, however many intents go with the last of their
    /// children: each in its own child's drop, they would use up the stack.
    fn drop(&mut self) {
        let mut parent = self.parent.take();
        while let Some(place) = parent {
            let state = Arc::into_inner(place.leave().state);
            let state = state.map(Lock::into_inner);
            parent = state.and_then(|mut state| state.parent.take());
        }
    }
}

impl fmt::Debug for Intent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.lock();
        f.debug_struct("Intent")
            .field("cancelled", &state.cancelled)
            .field("members", &state.members.len())
            .finish()
    }
}

impl fmt::Debug for Membership {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = self.0.as_ref().map(|place| place.key);
        f.debug_struct("Membership").field("key", &key).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn a_child_made_while_its_parent_is_cancelled_is_cancelled_too() {
        let (parent, child) = (Intent::new(), Intent::new());
        let place = parent.add(Member::Child(Arc::downgrade(&child.state)));
        parent.cancel();
        child.set_parent(place);
        assert!(child.is_cancelled());
    }

    #[test]
    fn a_long_line_of_children_of_children_ends_within_a_small_stack() {
        let thread = thread::Builder::new().stack_size(128 << 10).spawn(|| {
            let first = Intent::new();
            let last = (0..100_000).fold(first.clone(), |intent, _| intent.child());
            first.cancel();
            assert!(last.is_cancelled());
        });
        thread.unwrap().join().unwrap();
    }
}
