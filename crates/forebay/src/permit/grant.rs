//! Permits, which hold granted disk time until their I/O ends.

use std::fmt;
use std::io;
use std::marker::PhantomData;
use std::slice;
use std::sync::Arc;

use forebay_core::{Outcome, Ticket, Time};

use super::disk_group::DiskGroup;
use super::held_permits::HeldPermit;

/// The granted requests of a permit.
pub(crate) struct Grant<'a> {
    group: GroupRef<'a>,
    tickets: Tickets,
}

enum Tickets {
    One(Ticket),
    /// The tickets in the order of the requests. The tickets of completed requests are void.
    Many(Box<[Ticket]>),
}

/// The I/O group, borrowed where possible: a change of its reference count costs as much as the
/// lock.
enum GroupRef<'a> {
    Borrowed(&'a Arc<DiskGroup>),
    Owned(Arc<DiskGroup>),
}

impl<'a> Grant<'a> {
    pub(crate) const fn new(group: &'a Arc<DiskGroup>, ticket: Ticket) -> Self {
        Self { group: GroupRef::Borrowed(group), tickets: Tickets::One(ticket) }
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
        Grant { group: GroupRef::Owned(group), tickets: self.tickets }
    }

    fn end(&self, outcome: Outcome) {
        let group = self.group();
        if let Some(permits) = group.permits_if_used() {
            match &self.tickets {
                Tickets::One(ticket) => _ = permits.complete(group, *ticket, outcome),
                Tickets::Many(tickets) => permits.complete_batch(group, tickets, outcome),
            }
        }
    }

    fn requests(&self) -> &[Ticket] {
        match &self.tickets {
            Tickets::One(ticket) => slice::from_ref(ticket),
            Tickets::Many(tickets) => tickets,
        }
    }

    fn end_one(&self, index: usize, outcome: Outcome) {
        let group = self.group();
        if let Some(permits) = group.permits_if_used()
            && let Some(ticket) = self.requests().get(index)
        {
            permits.complete_batch(group, slice::from_ref(ticket), outcome);
        }
    }
}

impl Grant<'static> {
    pub(crate) const fn of_batch(group: Arc<DiskGroup>, tickets: Box<[Ticket]>) -> Self {
        Self { group: GroupRef::Owned(group), tickets: Tickets::Many(tickets) }
    }
}

/// The outcome of an I/O with this result.
const fn outcome<T>(result: &io::Result<T>) -> Outcome {
    if result.is_ok() { Outcome::Done } else { Outcome::Failed }
}

/// Permission for one I/O now, or [several](crate::Class::admit_many). Hold it for exactly as long
/// as the I/O takes: dropping it completes the I/O.
///
/// It can be sent to any thread and held across `.await`. It is not tracked as held by a thread. To
/// get another permit, or to use a file, before it is dropped, use the class [for its
/// holder](crate::Class::nested_in).
///
/// A permit that is not dropped stops counting as unfinished work after 100 ms or eight windows,
/// whichever is longer. It loses its place in the queue
/// ([`requests_max`](crate::SchedulerBuilder::requests_max)) a second later if there is no free
/// place. Dropping it after that has no effect.
#[must_use = "the I/O counts as done when the permit is dropped"]
pub struct Permit {
    /// `None` once the I/O has ended.
    grant: Option<Grant<'static>>,
}

impl Permit {
    pub(crate) const fn new(group: Arc<DiskGroup>, ticket: Ticket) -> Self {
        Self::of(Grant { group: GroupRef::Owned(group), tickets: Tickets::One(ticket) })
    }

    /// A permit that is not counted, for a caller whose own permits fill the queue.
    pub(crate) const fn unscheduled() -> Self {
        Self { grant: None }
    }

    pub(crate) const fn of(grant: Grant<'static>) -> Self {
        Self { grant: Some(grant) }
    }

    /// The number of its requests: one, or the first of [a batch](crate::Class::admit_many).
    pub fn requests(&self) -> usize {
        self.grant.as_ref().map_or(0, |grant| grant.requests().len())
    }

    /// Completes one of several requests, by its index, with its result, and frees its room.
    /// Dropping the permit completes the others. It has no effect if there is no such request, or
    /// it has ended.
    pub fn complete_one<T>(&mut self, index: usize, result: &io::Result<T>) {
        if let Some(grant) = &self.grant {
            grant.end_one(index, outcome(result));
        }
    }

    /// Completes the I/O with its result. An error is counted as an error, and its duration does
    /// not count as a latency of the disk.
    pub fn complete<T>(mut self, result: &io::Result<T>) {
        self.end(outcome(result));
    }

    /// Completes the I/O with an error.
    pub fn fail(mut self) {
        self.end(Outcome::Failed);
    }

    /// The same permit, held by the calling thread from `now` on.
    pub(crate) fn into_thread(mut self, now: Time) -> Option<ThreadPermit<'static>> {
        self.grant.take().map(|grant| ThreadPermit::new(grant, now))
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

/// A [`Permit`] that is held by the thread which asked for it, and that borrows its class.
///
/// While a thread holds one, its other requests are nested: permits, and requests of files and
/// shards, on every disk. They wait for their turn and the disk's rate, but not for room in the
/// window, because its owner could be waiting for them. To keep the permit elsewhere, or to pass it
/// to another thread or a task, [detach](Self::detach) it. Then this thread no longer holds it.
#[must_use = "the I/O counts as done when the permit is dropped"]
pub struct ThreadPermit<'a> {
    /// `None` once the I/O has ended.
    grant: Option<Grant<'a>>,
    held: HeldPermit,
    bound_to_thread: PhantomData<*const ()>,
}

impl<'a> ThreadPermit<'a> {
    /// The permit of a `grant` that the calling thread got at `now`.
    pub(crate) fn new(grant: Grant<'a>, now: Time) -> Self {
        let held = HeldPermit::begin(grant.group(), now);
        Self { grant: Some(grant), held, bound_to_thread: PhantomData }
    }

    /// The same permit, without a borrowed class.
    pub(crate) fn into_owned(mut self) -> ThreadPermit<'static> {
        let grant = self.grant.take().map(Grant::into_owned);
        let held = self.held;
        // The returned permit still holds the grant, so `self` must not end it.
        std::mem::forget(self);
        ThreadPermit { grant, held, bound_to_thread: PhantomData }
    }

    /// Ends the I/O with its result; see [`Permit::complete`].
    pub fn complete<T>(mut self, result: &io::Result<T>) {
        self.end(outcome(result));
    }

    /// Completes the I/O with an error.
    pub fn fail(mut self) {
        self.end(Outcome::Failed);
    }

    /// How many requests it is for; see [`Permit::requests`].
    pub fn requests(&self) -> usize {
        self.grant.as_ref().map_or(0, |grant| grant.requests().len())
    }

    /// Ends the I/O of one request of several; see [`Permit::complete_one`].
    pub fn complete_one<T>(&mut self, index: usize, result: &io::Result<T>) {
        if let Some(grant) = &self.grant {
            grant.end_one(index, outcome(result));
        }
    }

    /// Converts it to a permit that can be kept and sent anywhere, and that is not held by a
    /// thread.
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
        self.held.end();
    }
}

impl fmt::Debug for ThreadPermit<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThreadPermit").finish_non_exhaustive()
    }
}
