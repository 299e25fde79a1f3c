//! A request has come back from the disk.

use super::samples::DiskNanos;
use super::{Completion, IoQueue, Outcome, StaleTicket};
use crate::Time;
use crate::requests::{State, Ticket};

impl IoQueue {
    /// The disk has answered a dispatched request. Frees its part of the
    /// budget, so `poll_dispatch` should follow, here and where `poll_wake` says.
    ///
    /// # Errors
    /// [`StaleTicket`] if the request was not dispatched or has completed.
    #[inline]
    pub fn complete(
        &mut self,
        now: Time,
        ticket: Ticket,
        outcome: Outcome,
    ) -> Result<Completion, StaleTicket> {
        self.complete_polled(now, ticket, outcome, Time::ZERO)
    }

    /// As [`complete`](Self::complete), by an owner that knows when the disk
    /// answered: not before `previous_poll`, when it last looked. From such answers
    /// the group learns how late an idle disk answers. Whoever lets a request
    /// be carried out elsewhere, and is told of its end in its own time, does
    /// not know.
    ///
    /// # Errors
    /// As for [`complete`](Self::complete).
    pub fn complete_polled(
        &mut self,
        now: Time,
        ticket: Ticket,
        outcome: Outcome,
        previous_poll: Time,
    ) -> Result<Completion, StaleTicket> {
        let request = *self.requests.get(ticket).ok_or(StaleTicket)?;
        let class = self.class_counters(&request).class().ok_or(StaleTicket)?;
        let overdue = match request.state {
            State::InDisk => false,
            State::Overdue => true,
            State::Free | State::Queued | State::Parked => return Err(StaleTicket),
        };
        let took = DiskNanos::between(&request, previous_poll, now);
        let disk_nanos = took.most;
        self.shared.budget.completed(now, disk_nanos);
        if overdue {
            self.shared.budget.overdue.returned_late();
            self.requests.unlink(&mut self.given_up, ticket.slot());
        } else {
            self.leave_window(ticket.slot());
            self.pass_on_discards(now, ticket.slot());
            self.free_room(now);
        }
        self.leave_head(now, ticket.slot(), request.op);
        if self.model.seeks() {
            self.leave_to_run(now);
        }
        self.requests.remove(ticket.slot());
        self.lateness.take_back(request.cost);
        self.latest_disk_nanos = disk_nanos;
        let done = outcome == Outcome::Done;
        if request.nearly_idle && done && !overdue && took.is_known {
            let transfer = request.cost.as_nanos_ceil();
            let service_nanos = disk_nanos.saturating_sub(transfer);
            self.shared.budget.observe_idle_service(now, service_nanos);
        }
        self.sample(now, &request, done, took);
        self.report_to_knee(now, &request, done);
        self.fair.completed(request.class, now);
        self.totals.completed += 1;
        self.totals.in_disk -= 1;
        self.class_counters(&request).completed(now, request.op, request.len, disk_nanos, done);
        self.resume_at_once();
        let queue_nanos = request.dispatched_at.nanos_since(request.enqueued_at);
        let (op, len) = (request.op, request.len);
        Ok(Completion { class, queue_nanos, disk_nanos, overdue, op, len })
    }
}
