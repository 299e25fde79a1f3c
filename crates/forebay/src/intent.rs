//! Requests that can be cancelled together.

use std::fmt;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use slab::Slab;

use crate::coordinator::{Mailbox, Slot};
use crate::shard::{OperationId, Unwanted};
use crate::sys::fork::Process;

/// A purpose that requests serve, and that can end before they do: a query
/// that was given up, a compaction that is obsolete.
///
/// Requests of files and operations of shards that were made
/// [under](crate::File::under) an [intent](crate::shard::Shard::submit_under)
/// are cancelled together, from any thread. Cheap to clone; every clone is the
/// same intent. Dropping it cancels nothing.
///
/// A purpose can have [parts](Self::part) that end before it does. A request is
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
/// let read = file.under(&query).read_at(&queries, AlignedBuf::new(4096, 4096)?, 0);
/// let BufResult(read, _buffer) = read.wait();
/// assert!(read.is_err());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Intent {
    state: Arc<Mutex<State>>,
    process: Process,
}

#[derive(Default)]
pub(crate) struct State {
    cancelled: bool,
    members: Slab<Member>,
    /// Its place in the intent that it is a part of.
    whole: Option<Place>,
}

/// What is cancelled with an intent.
pub(crate) enum Member {
    /// A request that was sent to an I/O thread.
    Sent(Arc<Slot>, Arc<Mailbox>),
    /// An operation of a shard.
    Submitted(OperationId, Arc<Unwanted>),
    /// An intent that is a part of it.
    Part(Weak<Mutex<State>>),
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

    /// An intent that is a part of this one: cancelled with it, or before it
    /// without it.
    #[must_use]
    pub fn part(&self) -> Self {
        let part = Self::new();
        part.become_part(self.add(Member::Part(Arc::downgrade(&part.state))));
        part
    }

    /// Keeps its place in the intent that it is a part of, which was cancelled
    /// already if there is none, and may have been since there is one.
    fn become_part(&self, whole: Option<Place>) {
        let mut state = self.lock();
        state.cancelled |= whole.is_none();
        state.whole = whole;
    }

    /// Cancels all requests under this intent and its parts, and those that
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

    /// Adds what is under way; what comes too late is cancelled.
    pub(crate) fn join(&self, member: Member) -> Option<Membership> {
        Some(Membership(Some(self.add(member)?)))
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

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
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
            Self::Sent(slot, mailbox) => mailbox.cancel(&slot),
            Self::Submitted(id, unwanted) => unwanted.add(id),
            Self::Part(state) => {
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
    /// parts: each in its own part's drop, they would use up the stack.
    fn drop(&mut self) {
        let mut whole = self.whole.take();
        while let Some(place) = whole {
            let state = Arc::into_inner(place.leave().state);
            let state =
                state.map(|state| state.into_inner().unwrap_or_else(PoisonError::into_inner));
            whole = state.and_then(|mut state| state.whole.take());
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
    fn a_part_made_while_its_whole_is_cancelled_is_cancelled_too() {
        let (whole, part) = (Intent::new(), Intent::new());
        let place = whole.add(Member::Part(Arc::downgrade(&part.state)));
        whole.cancel();
        part.become_part(place);
        assert!(part.is_cancelled());
    }

    #[test]
    fn a_long_line_of_parts_of_parts_ends_within_a_small_stack() {
        let thread = thread::Builder::new().stack_size(128 << 10).spawn(|| {
            let first = Intent::new();
            let last = (0..100_000).fold(first.clone(), |intent, _| intent.part());
            first.cancel();
            assert!(last.is_cancelled());
        });
        thread.unwrap().join().unwrap();
    }
}
