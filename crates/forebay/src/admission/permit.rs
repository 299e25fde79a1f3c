//! Permits: disk time that was granted and is in use.

use std::fmt;
use std::io;
use std::marker::PhantomData;
use std::sync::Arc;

use forebay_core::{Outcome, Ticket, Time};

use super::holding::Holding;
use crate::disk::DiskGroup;

/// What was granted.
pub(super) struct Grant<'a> {
    group: GroupRef<'a>,
    ticket: Ticket,
}

/// Borrowed where it can be: counting owners costs as much as the lock does.
enum GroupRef<'a> {
    Borrowed(&'a Arc<DiskGroup>),
    Owned(Arc<DiskGroup>),
}

impl<'a> Grant<'a> {
    pub(super) const fn new(group: &'a Arc<DiskGroup>, ticket: Ticket) -> Self {
        Self { group: GroupRef::Borrowed(group), ticket }
    }

    fn group(&self) -> &Arc<DiskGroup> {
        match &self.group {
            GroupRef::Borrowed(group) => group,
            GroupRef::Owned(group) => group,
        }
    }

    fn into_owned(self) -> Grant<'static> {
        let group = match self.group {
            GroupRef::Borrowed(group) => Arc::clone(group),
            GroupRef::Owned(group) => group,
        };
        Grant { group: GroupRef::Owned(group), ticket: self.ticket }
    }

    fn end(&self, outcome: Outcome) {
        let group = self.group();
        if let Some(admission) = group.admission_if_used() {
            admission.complete(group, self.ticket, outcome);
        }
    }
}

/// How an I/O ended that returned `result`.
const fn outcome<T>(result: &io::Result<T>) -> Outcome {
    if result.is_ok() { Outcome::Done } else { Outcome::Failed }
}

/// The permission to do one I/O now. Dropping it says that the I/O is done;
/// hold it for exactly as long as the I/O takes.
///
/// Can be sent to any thread and held across `.await`. It counts as held by no
/// thread: who has one and wants another, or uses a file, for the same piece of
/// work before it drops the first, does so in the class
/// [beside](crate::Class::beside) it.
///
/// One that is never dropped stops counting as unfinished work after 100 ms or
/// eight windows, whichever is longer, and gives its place among
/// [`requests_max`](crate::SchedulerBuilder::requests_max) away a second later
/// if there is no other. To drop it after that does nothing.
#[must_use = "the I/O counts as done when the permit is dropped"]
pub struct Permit {
    /// Taken when the I/O has ended.
    grant: Option<Grant<'static>>,
}

impl Permit {
    pub(super) const fn new(group: Arc<DiskGroup>, ticket: Ticket) -> Self {
        Self { grant: Some(Grant { group: GroupRef::Owned(group), ticket }) }
    }

    /// Ends the I/O with its result: an error is counted as one, and its
    /// duration is not taken for the disk's latency.
    pub fn complete<T>(mut self, result: &io::Result<T>) {
        self.end(outcome(result));
    }

    /// Ends the I/O as failed.
    pub fn fail(mut self) {
        self.end(Outcome::Failed);
    }

    fn end(&mut self, outcome: Outcome) {
        if let Some(grant) = self.grant.take() {
            grant.end(outcome);
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.end(Outcome::Done);
    }
}

impl fmt::Debug for Permit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permit").finish_non_exhaustive()
    }
}

/// A [`Permit`] that the thread which asked for it holds, and that borrows the
/// class it asked in.
///
/// As long as a thread holds one, what it asks for is a holder's, of permits,
/// files and shards, on every disk: it waits for its turn and the disk's rate,
/// but not for room in the disk, for there it could wait for somebody who waits
/// for it. To keep the permit elsewhere, or to hand it to another thread or a
/// task, [detach](Self::detach) it: then it is not this thread's any more.
#[must_use = "the I/O counts as done when the permit is dropped"]
pub struct ThreadPermit<'a> {
    /// Taken when the I/O has ended.
    grant: Option<Grant<'a>>,
    holding: Holding,
    bound_to_thread: PhantomData<*const ()>,
}

impl<'a> ThreadPermit<'a> {
    /// The calling thread has got `grant` at `now`.
    pub(super) fn new(grant: Grant<'a>, now: Time) -> Self {
        let holding = Holding::begin(grant.group(), now);
        Self { grant: Some(grant), holding, bound_to_thread: PhantomData }
    }

    /// The same, borrowing nothing.
    pub(super) fn into_owned(mut self) -> ThreadPermit<'static> {
        let grant = self.grant.take().map(Grant::into_owned);
        let holding = self.holding;
        // The holding goes on, so this one must not end it.
        std::mem::forget(self);
        ThreadPermit { grant, holding, bound_to_thread: PhantomData }
    }

    /// Ends the I/O with its result; see [`Permit::complete`].
    pub fn complete<T>(mut self, result: &io::Result<T>) {
        self.end(outcome(result));
    }

    /// Ends the I/O as failed.
    pub fn fail(mut self) {
        self.end(Outcome::Failed);
    }

    /// Makes it a permit that can be kept and sent anywhere, and that is held
    /// by no thread.
    pub fn detach(mut self) -> Permit {
        Permit { grant: self.grant.take().map(Grant::into_owned) }
    }

    fn end(&mut self, outcome: Outcome) {
        if let Some(grant) = self.grant.take() {
            grant.end(outcome);
        }
    }
}

impl Drop for ThreadPermit<'_> {
    fn drop(&mut self) {
        self.end(Outcome::Done);
        self.holding.end();
    }
}

impl fmt::Debug for ThreadPermit<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThreadPermit").finish_non_exhaustive()
    }
}
