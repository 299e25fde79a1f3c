//! Who waits for which ticket.

use std::sync::Arc;
use std::task::Waker;

use forebay_core::Ticket;

use super::parking::Parking;
use super::wakeups::Wakeup;

/// Not in the list of blocked threads.
const NONE: u32 = u32::MAX;

/// Whoever is behind a ticket.
enum Waiter {
    /// Nobody: there is no such ticket, or it does not wait here.
    Vacant,
    Thread(Arc<Parking>),
    Task(Waker),
    /// A task whose ticket was granted, and that has not noticed yet.
    GrantedTask,
}

struct Slot {
    waiter: Waiter,
    /// Neighbours among the blocked threads.
    older: u32,
    newer: u32,
}

/// A table by [`Ticket::index`]. It grows to the most that waited at once and
/// allocates no more after that.
pub(super) struct Waiters {
    slots: Vec<Slot>,
    newest_thread: u32,
    waiting: usize,
}

impl Waiters {
    pub(super) const fn new() -> Self {
        Self { slots: Vec::new(), newest_thread: NONE, waiting: 0 }
    }

    /// Whether anybody waits for a grant.
    pub(super) fn any(&self) -> bool {
        self.waiting > 0
    }

    /// The calling thread waits for `ticket`.
    pub(super) fn add_thread(&mut self, ticket: Ticket, parking: Arc<Parking>) {
        let (index, older) = (ticket.index() as u32, self.newest_thread);
        self.add(ticket, Waiter::Thread(parking));
        self.at(index).older = older;
        if older != NONE {
            self.at(older).newer = index;
        }
        self.newest_thread = index;
    }

    /// A task waits for `ticket`.
    pub(super) fn add_task(&mut self, ticket: Ticket, waker: Waker) {
        self.add(ticket, Waiter::Task(waker));
    }

    /// Notes that `ticket` was granted, and returns whom to wake for it:
    /// nobody, if nobody waits in the table.
    pub(super) fn grant(&mut self, ticket: Ticket) -> Option<Wakeup> {
        match self.remove(ticket) {
            Waiter::Thread(parking) => {
                parking.grant();
                Some(Wakeup::Thread(parking))
            }
            Waiter::Task(waker) => {
                self.at(ticket.index() as u32).waiter = Waiter::GrantedTask;
                Some(Wakeup::Task(waker))
            }
            Waiter::Vacant | Waiter::GrantedTask => None,
        }
    }

    /// Whether the task behind `ticket` has its grant, which it takes with
    /// this. Else `waker` is woken for it; the one before is returned, to be
    /// dropped outside the lock.
    pub(super) fn take_grant(&mut self, ticket: Ticket, waker: Waker) -> Result<Waker, Waker> {
        let slot = self.at(ticket.index() as u32);
        match std::mem::replace(&mut slot.waiter, Waiter::Vacant) {
            Waiter::Task(before) => {
                slot.waiter = Waiter::Task(waker);
                Err(before)
            }
            _ => Ok(waker),
        }
    }

    /// Whoever waits for `ticket` waits no more. The waker of a task is
    /// returned, to be dropped outside the lock: that can end the task.
    pub(super) fn forget(&mut self, ticket: Ticket) -> Option<Waker> {
        match self.remove(ticket) {
            Waiter::Task(waker) => Some(waker),
            _ => None,
        }
    }

    /// The parking place of the thread that waits for the ticket with this index.
    pub(super) fn thread(&self, index: u32) -> Option<&Arc<Parking>> {
        match &self.slots.get(index as usize)?.waiter {
            Waiter::Thread(parking) => Some(parking),
            _ => None,
        }
    }

    /// The thread that came last: the one that will probably wait longest.
    pub(super) fn newest_thread(&self) -> Option<u32> {
        (self.newest_thread != NONE).then_some(self.newest_thread)
    }

    fn at(&mut self, index: u32) -> &mut Slot {
        &mut self.slots[index as usize]
    }

    fn add(&mut self, ticket: Ticket, waiter: Waiter) {
        if self.slots.len() <= ticket.index() {
            let vacant = || Slot { waiter: Waiter::Vacant, older: NONE, newer: NONE };
            self.slots.resize_with(ticket.index() + 1, vacant);
        }
        self.slots[ticket.index()] = Slot { waiter, older: NONE, newer: NONE };
        self.waiting += 1;
    }

    fn remove(&mut self, ticket: Ticket) -> Waiter {
        let Some(slot) = self.slots.get_mut(ticket.index()) else { return Waiter::Vacant };
        let waiter = std::mem::replace(&mut slot.waiter, Waiter::Vacant);
        let (older, newer) = (slot.older, slot.newer);
        match &waiter {
            Waiter::Thread(_) => {
                if newer == NONE {
                    self.newest_thread = older;
                } else {
                    self.at(newer).older = older;
                }
                if older != NONE {
                    self.at(older).newer = newer;
                }
                self.waiting -= 1;
            }
            Waiter::Task(_) => self.waiting -= 1,
            Waiter::Vacant | Waiter::GrantedTask => {}
        }
        waiter
    }
}
