//! A request that finds nobody waiting: queued and dispatched in one step.

use super::stop::Stop;
use super::{EnqueueError, IoQueue};
use crate::budget::{Demand, Reservation};
use crate::requests::Ticket;
use crate::{Access, Blocked, ClassId, DiskTime, Op, Time};

impl IoQueue {
    /// Dispatches a request at once if nothing waits in this queue and the
    /// request may go now: the same as [`enqueue`](Self::enqueue) and then
    /// [`poll_dispatch`](Self::poll_dispatch) until that returns `None`, in
    /// fewer instructions. The shards that [`poll_wake`](Self::poll_wake) names
    /// are to be woken.
    ///
    /// `None` says nothing about whether the request may go: it is to be
    /// queued, and is charged nothing yet.
    ///
    /// # Errors
    /// As for [`enqueue`](Self::enqueue).
    pub fn dispatch_at_once(
        &mut self,
        now: Time,
        class: ClassId,
        access: impl Into<Access>,
        len: u64,
    ) -> Result<Option<Ticket>, EnqueueError> {
        self.pass(now, class, access.into(), len)
    }

    fn pass(
        &mut self,
        now: Time,
        class: ClassId,
        access: Access,
        len: u64,
    ) -> Result<Option<Ticket>, EnqueueError> {
        self.shared.tree.class(class).map_err(EnqueueError::Class)?;
        let Some(rested_since) = self.idle_since(now) else { return Ok(None) };
        if access.op == Op::Discard {
            // few are in the disk at once: it goes when it is their turn
            return Ok(None);
        }
        let ticket = self.insert(now, class, access, len)?;
        self.note_class(class);
        self.price_by_place(now, ticket.slot());
        let (node, cost) = (class.node(), self.requests.at(ticket.slot()).cost);
        let Some(nearly_idle) =
            self.reserve_at_once(now, class, Demand::new(cost, access.op, len, true))
        else {
            self.requests.remove(ticket.slot());
            return Ok(None);
        };
        self.requests.at_mut(ticket.slot()).fresh = true;
        self.fair.charge_unqueued(node, cost, len, now);
        self.enter_disk(now, ticket.slot(), nearly_idle);
        self.classes[class.index()].passed(access, len, cost);
        self.mark_idle(now, rested_since);
        Ok(Some(ticket))
    }

    /// Since when nothing has been waiting here, and nobody expects anything.
    fn idle_since(&self, now: Time) -> Option<Time> {
        let (stop, since) = self.stopped?;
        let peers = &self.shared.peers;
        let at_rest = stop.reason == Blocked::Empty
            && self.has_no_run(now)
            && self.requests.len() == self.totals.in_disk
            && self.fair.nothing_throttled()
            && !self.may_give_up(now)
            && (peers.alone() || (peers.is_idle(self.shard) && !self.would_be_late(now)));
        at_rest.then_some(since)
    }

    /// Takes what `ask` needs out of the budget if it is open; whether the disk
    /// was nearly idle.
    fn reserve_at_once(&mut self, now: Time, class: ClassId, mut ask: Demand) -> Option<bool> {
        if self.fair.limited(class.node(), now).is_some() {
            return None;
        }
        self.fair.activate_unqueued(class, now);
        self.follow_changes(now);
        self.check_lead(class.node(), ask.cost, now).ok()?;
        self.check_reserve(class.node(), &mut ask, now);
        match self.reserve(now, class.node(), &ask) {
            Reservation::Granted { nearly_idle, .. } => Some(nearly_idle),
            Reservation::Refused(_) => None,
            Reservation::LostRace => {
                self.collect_wakes(now);
                None
            }
        }
    }

    /// Nothing waits any more, as [`IoQueue::poll_dispatch`] would find.
    fn mark_idle(&mut self, now: Time, rested_since: Time) {
        let idle = &mut self.totals.blocked_nanos[Blocked::Empty.index()];
        *idle = idle.wrapping_add(now.nanos_since(rested_since));
        self.stopped = Some((Stop { reason: Blocked::Empty, resume_at: None }, now));
        self.lateness.end_turn(self.held > DiskTime::ZERO, None);
        if !self.shared.peers.alone() {
            self.wake_window_waiters(now, Blocked::Empty);
            self.publish_held(now);
        }
        self.update_flow(now);
    }
}
