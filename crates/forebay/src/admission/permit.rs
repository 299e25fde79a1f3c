//! Permits: disk time that was granted and is in use.

use std::fmt;
use std::io;
use std::marker::PhantomData;
use std::sync::Arc;

use forebay_core::{Outcome, Ticket, Time};

use super::holding;
use crate::disk::DiskGroup;

/// The permission to do one I/O now. Dropping it says that the I/O is done;
/// hold it for exactly as long as the I/O takes.
///
/// Can be sent to any thread and held across `.await`. It counts as held by no
/// thread: who has one and wants another for the same piece of work before it
/// drops the first, asks with [`Permit::admit_more`].
///
/// One that is never dropped stops counting as unfinished work after 100 ms or
/// eight windows, whichever is longer.
#[must_use = "the I/O counts as done when the permit is dropped"]
pub struct Permit {
    pub(super) group: Arc<DiskGroup>,
    ticket: Ticket,
    completed: bool,
}

impl Permit {
    pub(super) fn new(group: Arc<DiskGroup>, ticket: Ticket) -> Self {
        Self { group, ticket, completed: false }
    }

    /// Ends the I/O with its result: an error is counted as one, and its
    /// duration is not taken for the disk's latency.
    pub fn complete<T>(self, result: &io::Result<T>) {
        self.end(if result.is_ok() { Outcome::Done } else { Outcome::Failed });
    }

    /// Ends the I/O as failed.
    pub fn fail(self) {
        self.end(Outcome::Failed);
    }

    fn end(mut self, outcome: Outcome) {
        self.complete_once(outcome);
    }

    fn complete_once(&mut self, outcome: Outcome) {
        if !std::mem::replace(&mut self.completed, true)
            && let Some(admission) = self.group.admission_if_used()
        {
            admission.complete(&self.group, self.ticket, outcome);
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.complete_once(Outcome::Done);
    }
}

impl fmt::Debug for Permit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permit").finish_non_exhaustive()
    }
}

/// A [`Permit`] that the thread which asked for it holds.
///
/// As long as a thread holds one, its further requests for permits pass the
/// queue and the window, on every disk, and wait only for the pace: waiting
/// for others, it could wait for somebody who waits for it. To hand the permit
/// to another thread or a task, [detach](Self::detach) it: then it is not this
/// thread's any more.
#[must_use = "the I/O counts as done when the permit is dropped"]
#[derive(Debug)]
pub struct ThreadPermit {
    permit: Permit,
    _held: Held,
}

impl ThreadPermit {
    /// The calling thread has got `permit`.
    pub(super) fn new(permit: Permit, now: Time) -> Self {
        let lapses = holding::take_up(&permit.group, now);
        Self { permit, _held: Held { lapses, bound_to_thread: PhantomData } }
    }

    /// Ends the I/O with its result; see [`Permit::complete`].
    pub fn complete<T>(self, result: &io::Result<T>) {
        self.permit.complete(result);
    }

    /// Ends the I/O as failed.
    pub fn fail(self) {
        self.permit.fail();
    }

    /// Makes it a permit that can be sent away, and that is held by no thread.
    pub fn detach(self) -> Permit {
        self.permit
    }
}

/// An entry among what the thread holds.
#[derive(Debug)]
struct Held {
    lapses: Time,
    bound_to_thread: PhantomData<*const ()>,
}

impl Drop for Held {
    fn drop(&mut self) {
        holding::put_down(self.lapses);
    }
}
