//! Grants that their owners do not notice, and requests that nobody completes.

use super::in_disk::ask;
use super::outcome::{COST_UNCHECKED_LEN, REQUEST_COST_MAX, StaleTicket};
use super::{EnqueueError, IoQueue};
use crate::requests::{State, Ticket};
use crate::{Access, ClassId, DiskTime, Time};

/// A request that was given up is forgotten when its place is needed, if it
/// went so long ago.
const FORGOTTEN_NANOS: u64 = 1_000_000_000;

impl IoQueue {
    /// Gives the room of a dispatched request back, because its owner has not
    /// started it yet and others wait: an owner that comes late. What was
    /// charged for it stays charged, and it keeps its place: it goes with
    /// [`resume`](Self::resume), or is [cancelled](Self::cancel).
    /// `poll_dispatch` should follow, here and where `poll_wake` says.
    ///
    /// # Errors
    /// [`StaleTicket`] if it is not in the disk, or was given up.
    pub fn park(&mut self, now: Time, ticket: Ticket) -> Result<(), StaleTicket> {
        let request = *self.requests.get(ticket).ok_or(StaleTicket)?;
        if request.state != State::InDisk {
            return Err(StaleTicket);
        }
        self.leave_window(ticket.slot());
        self.pass_on_discards(now, ticket.slot());
        self.leave_flush(ticket.slot(), request.op);
        self.collect_wakes(now);
        let kept = self.requests.at_mut(ticket.slot());
        kept.state = State::Parked;
        kept.already_charged = true;
        self.totals.in_disk -= 1;
        self.class_counters(&request).park(request.len);
        self.resume_at_once();
        Ok(())
    }

    /// The owner of a request that was [set aside](Self::park) is there.
    /// True if it goes now: where there is room; and past the window as long
    /// as those that do are no more than one effective goal and the disk's
    /// rate. Otherwise it waits before all of its class, and `poll_dispatch`
    /// names it when it may go. It is charged to nobody again.
    ///
    /// # Errors
    /// [`StaleTicket`] if it was not set aside.
    pub fn resume(&mut self, now: Time, ticket: Ticket) -> Result<bool, StaleTicket> {
        let request = *self.requests.get(ticket).ok_or(StaleTicket)?;
        if request.state != State::Parked {
            return Err(StaleTicket);
        }
        let (index, ask) = (ticket.slot(), ask(&request));
        if !self.shared.budget.reenter(now, &ask) {
            let class = self.class_counters(&request).class();
            let queued = class.map(|class| self.fair.push_front(&mut self.requests, class, index));
            if let Some(Ok(())) = queued {
                self.requests.at_mut(index).state = State::Queued;
                self.resume_at_once();
                return Ok(false);
            }
            // its class was removed
            self.shared.budget.enter_anyway(&ask);
        }
        self.enter_discards_anyway(request.op);
        self.enter_disk(now, index, false);
        let waited = now.nanos_since(request.enqueued_at);
        self.class_counters(&request).dispatched(now, waited, request.len, DiskTime::ZERO);
        Ok(true)
    }

    /// A new request of `class` in no list yet. Where the table is full it
    /// gets the place of the one that was given up first, which is forgotten:
    /// its ticket is void.
    #[inline(always)]
    pub(super) fn insert(
        &mut self,
        now: Time,
        class: ClassId,
        access: Access,
        len: u64,
    ) -> Result<Ticket, EnqueueError> {
        let Access { op, .. } = access;
        let (node, cost) = (class.node(), self.model.access_cost(&access, len));
        if len > COST_UNCHECKED_LEN && cost > REQUEST_COST_MAX {
            return Err(EnqueueError::TooCostly { op, len });
        }
        if !self.requests.has_room() {
            self.forget_given_up(now);
        }
        let inserted = self.requests.insert(now, node, op, len, cost);
        let ticket = inserted.ok_or(EnqueueError::Full)?;
        self.note_place(ticket.slot(), access, len);
        Ok(ticket)
    }

    #[cold]
    fn forget_given_up(&mut self, now: Time) {
        let Some(oldest) = self.given_up.head() else { return };
        let request = *self.requests.at(oldest);
        if now.nanos_since(request.dispatched_at) >= FORGOTTEN_NANOS {
            self.requests.unlink(&mut self.given_up, oldest);
            self.requests.remove(oldest);
            self.totals.completed += 1;
            self.totals.in_disk -= 1;
            self.class_counters(&request).forgotten(request.len);
        }
    }
}
