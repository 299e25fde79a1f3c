//! The waiters of tickets.

use std::mem;
use std::sync::Arc;

use forebay_core::{Ticket, Time};

use super::parking::Parking;
use super::wakeups::Wakeup;
use crate::messages;
use crate::sys::waker::KeptWaker;

/// The index of no ticket: the end of a list.
const NONE: u32 = u32::MAX;

/// The waiter of a ticket.
enum Waiter {
    /// No waiter: there is no such ticket, or it does not wait here.
    Vacant,
    Thread(Arc<Parking>),
    Task(KeptWaker),
    /// A task that has not noticed its grant, which happened at this time.
    Granted(Time),
    /// A task that did not notice its grant, which was parked at this time.
    Parked(Time),
    /// A batch whose ticket is parked until the rest of the batch is granted.
    Paid,
    /// A batch that waits for this ticket.
    Batch(usize),
}

/// The waiter to wake for a grant.
pub(super) enum GrantTarget {
    Nobody,
    One(Wakeup),
    /// The batch with this number.
    Batch(usize),
}

/// The state of a ticket when its task polls. A waker in it is no longer needed, and is to be
/// dropped outside the lock.
pub(super) enum PollOutcome {
    /// The ticket is granted.
    Granted(#[expect(dead_code, reason = "held until it may be dropped")] KeptWaker),
    /// The ticket was parked, because the task polled too late. The caller has to resume it.
    Parked,
    /// The ticket waits. This is the waker of the previous poll.
    Waits(#[expect(dead_code, reason = "held until it may be dropped")] KeptWaker),
}

struct Slot {
    ticket: Option<Ticket>,
    waiter: Waiter,
    /// The neighbours in the waiter's list.
    older: u32,
    newer: u32,
}

/// A list of the blocked threads, or of the grants that tasks have not noticed.
#[derive(Clone, Copy)]
struct List {
    oldest: u32,
    newest: u32,
}

/// A table of waiters by [`Ticket::index`]. It grows to the largest number of concurrent waiters,
/// and then allocates no more.
pub(super) struct Waiters {
    slots: Vec<Slot>,
    threads: List,
    unnoticed: List,
    parked: List,
    waiting: usize,
}

impl Waiters {
    pub(super) const fn new() -> Self {
        let empty = List { oldest: NONE, newest: NONE };
        Self { slots: Vec::new(), threads: empty, unnoticed: empty, parked: empty, waiting: 0 }
    }

    /// Whether anybody waits for a grant, or has not noticed a grant.
    pub(super) fn any(&self) -> bool {
        self.waiting > 0 || self.unnoticed.oldest != NONE
    }

    /// Adds the calling thread as the waiter of `ticket`.
    pub(super) fn add_thread(&mut self, ticket: Ticket, parking: Arc<Parking>) {
        self.add(ticket, Waiter::Thread(parking));
        self.waiting += 1;
    }

    /// Adds a task as the waiter of `ticket`.
    pub(super) fn add_task(&mut self, ticket: Ticket, waker: KeptWaker) {
        self.add(ticket, Waiter::Task(waker));
        self.waiting += 1;
    }

    /// Adds a batch as the waiter of `ticket`.
    pub(super) fn add_member(&mut self, ticket: Ticket, batch: usize) {
        self.add(ticket, Waiter::Batch(batch));
        self.waiting += 1;
    }

    /// Notes that `ticket` is granted, and that its task has not noticed it.
    pub(super) fn add_unnoticed(&mut self, now: Time, ticket: Ticket) {
        self.add(ticket, Waiter::Granted(now));
    }

    /// Notes that `ticket` is granted. Returns the waiter to wake, which is nobody if the ticket
    /// has no waiter here.
    pub(super) fn grant(&mut self, now: Time, ticket: Ticket) -> GrantTarget {
        match self.remove(ticket) {
            Waiter::Thread(parking) => {
                parking.grant();
                GrantTarget::One(Wakeup::Thread(parking))
            }
            Waiter::Task(waker) => {
                self.add_unnoticed(now, ticket);
                GrantTarget::One(Wakeup::Task(waker))
            }
            Waiter::Batch(batch) => GrantTarget::Batch(batch),
            Waiter::Vacant => GrantTarget::Nobody,
            Waiter::Granted(_) | Waiter::Parked(_) | Waiter::Paid => {
                messages::report_invariant("a permit was granted to a request that did not wait");
                GrantTarget::Nobody
            }
        }
    }

    /// The state of `ticket` for its task. A grant is taken out of the table. If the ticket waits,
    /// `waker` is woken next.
    pub(super) fn take_grant(&mut self, ticket: Ticket, waker: KeptWaker) -> PollOutcome {
        if let Some(Slot { ticket: found, waiter: Waiter::Task(before), .. }) =
            self.slots.get_mut(ticket.index())
            && *found == Some(ticket)
        {
            return PollOutcome::Waits(mem::replace(before, waker));
        }
        match self.remove(ticket) {
            Waiter::Parked(_) => {
                self.add_task(ticket, waker);
                PollOutcome::Parked
            }
            _ => PollOutcome::Granted(waker),
        }
    }

    /// The grant that has been unnoticed for the longest time, and the time of the grant.
    pub(super) fn oldest_unnoticed(&self) -> Option<(Ticket, Time)> {
        let slot = self.slots.get(self.unnoticed.oldest as usize)?;
        match (slot.ticket, &slot.waiter) {
            (Some(ticket), Waiter::Granted(since)) => Some((ticket, *since)),
            _ => {
                messages::report_invariant("a list of waiters holds one of another kind");
                None
            }
        }
    }

    /// Notes that the grant of `ticket` is parked, because its task did not notice it.
    pub(super) fn parked(&mut self, now: Time, ticket: Ticket) {
        self.add(ticket, Waiter::Parked(now));
    }

    /// Notes that the grant of `ticket` is parked, because its batch is incomplete.
    pub(super) fn add_paid(&mut self, ticket: Ticket) {
        self.add(ticket, Waiter::Paid);
    }

    /// The unnoticed grant that was parked first, and the time when it was parked.
    pub(super) fn oldest_parked(&self) -> Option<(Ticket, Time)> {
        let slot = self.slots.get(self.parked.oldest as usize)?;
        match (slot.ticket, &slot.waiter) {
            (Some(ticket), Waiter::Parked(since)) => Some((ticket, *since)),
            _ => {
                messages::report_invariant("a list of waiters holds one of another kind");
                None
            }
        }
    }

    pub(super) fn is_parked(&self, ticket: Ticket) -> bool {
        let slot = self.slots.get(ticket.index()).filter(|slot| slot.ticket == Some(ticket));
        slot.is_some_and(|slot| matches!(slot.waiter, Waiter::Parked(_) | Waiter::Paid))
    }

    /// Removes the waiter of `ticket`. Returns the waker of a task, to be dropped outside the lock,
    /// because the drop can end the task.
    pub(super) fn forget(&mut self, ticket: Ticket) -> Option<KeptWaker> {
        match self.remove(ticket) {
            Waiter::Task(waker) => Some(waker),
            _ => None,
        }
    }

    /// The parking place of the thread that waits for the ticket with this index.
    pub(super) fn thread(&self, index: u32) -> Option<&Arc<Parking>> {
        match self.slots.get(index as usize).map(|slot| &slot.waiter) {
            Some(Waiter::Thread(parking)) => Some(parking),
            _ => {
                messages::report_invariant("the thread that owns the deadline waits for no ticket");
                None
            }
        }
    }

    /// The youngest of the threads that sleep or are about to sleep. It will probably wait the
    /// longest.
    pub(super) fn newest_thread(&self) -> Option<u32> {
        let mut index = self.threads.newest;
        while let Some(Slot { waiter: Waiter::Thread(parking), older, .. }) =
            self.slots.get(index as usize)
        {
            if !parking.is_away() {
                return Some(index);
            }
            index = *older;
        }
        None
    }

    fn at(&mut self, index: u32) -> &mut Slot {
        &mut self.slots[index as usize]
    }

    /// The list to which such a waiter belongs.
    fn list_of(&mut self, waiter: &Waiter) -> Option<&mut List> {
        match waiter {
            Waiter::Thread(_) => Some(&mut self.threads),
            Waiter::Granted(_) => Some(&mut self.unnoticed),
            Waiter::Parked(_) => Some(&mut self.parked),
            Waiter::Vacant | Waiter::Task(_) | Waiter::Paid | Waiter::Batch(_) => None,
        }
    }

    fn add(&mut self, ticket: Ticket, waiter: Waiter) {
        let index = ticket.index() as u32;
        if self.slots.len() <= ticket.index() {
            let vacant = || Slot { ticket: None, waiter: Waiter::Vacant, older: NONE, newer: NONE };
            self.slots.resize_with(ticket.index() + 1, vacant);
        }
        // A waiter that is still here was forgotten, and its place was given to another ticket.
        if let Some(before) = self.at(index).ticket {
            self.remove(before);
        }
        let mut older = NONE;
        if let Some(list) = self.list_of(&waiter) {
            older = mem::replace(&mut list.newest, index);
            if older == NONE {
                list.oldest = index;
            } else {
                self.at(older).newer = index;
            }
        }
        *self.at(index) = Slot { ticket: Some(ticket), waiter, older, newer: NONE };
    }

    fn remove(&mut self, ticket: Ticket) -> Waiter {
        let slot = self.slots.get_mut(ticket.index());
        let Some(slot) = slot.filter(|slot| slot.ticket == Some(ticket)) else {
            return Waiter::Vacant;
        };
        slot.ticket = None;
        let waiter = mem::replace(&mut slot.waiter, Waiter::Vacant);
        let (older, newer) = (slot.older, slot.newer);
        if let Some(list) = self.list_of(&waiter) {
            if newer == NONE {
                list.newest = older;
            }
            if older == NONE {
                list.oldest = newer;
            }
            if newer != NONE {
                self.at(newer).older = older;
            }
            if older != NONE {
                self.at(older).newer = newer;
            }
        }
        let waits = matches!(waiter, Waiter::Thread(_) | Waiter::Task(_) | Waiter::Batch(_));
        self.waiting -= usize::from(waits);
        waiter
    }
}

#[cfg(test)]
mod tests {
    use forebay_core::{DiskModel, GroupConfig, IoGroup, Op, Policy};

    use std::task::Waker;

    use super::*;

    #[test]
    fn a_double_grant_is_reported() {
        let group = IoGroup::new(GroupConfig::new(DiskModel::unmeasured(), Policy::Unlimited));
        let class = group.add_class(None, 100).unwrap();
        let now = Time::from_nanos(1);
        let ticket = group.join().unwrap().enqueue(now, class, Op::Read, 4096).unwrap();
        let adds: [fn(&mut Waiters, Time, Ticket); 3] =
            [Waiters::add_unnoticed, Waiters::parked, |waiters, _, ticket| {
                waiters.add_paid(ticket);
            }];
        for add in adds {
            let mut waiters = Waiters::new();
            waiters.add_task(ticket, KeptWaker::of(Waker::noop()));
            assert!(matches!(waiters.grant(now, ticket), GrantTarget::One(_)));
            add(&mut waiters, now, ticket);
            assert!(messages::meets_a_bug(|| _ = waiters.grant(now, ticket)));
            assert!(!waiters.any(), "it is nobody's any more");
        }
    }
}
