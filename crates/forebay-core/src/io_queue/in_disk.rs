//! A request goes to the disk, and leaves the window again.

use super::IoQueue;
use crate::budget::Demand;
use crate::requests::{Request, State, Ticket};
use crate::{ClassId, DiskTime, Op, Time};

impl IoQueue {
    // on the way of each request; other callers are rare
    #[inline(always)]
    pub(super) fn dispatch(&mut self, now: Time, index: u32, nearly_idle: bool) -> Ticket {
        self.full_since = None;
        self.enter_disk(now, index, nearly_idle);
        let Request { enqueued_at, already_charged, cost, class, len, .. } =
            *self.requests.at(index);
        let charged = if already_charged { DiskTime::ZERO } else { cost };
        let counters = &mut self.classes[ClassId::index_of(class)];
        counters.dispatched(now, now.nanos_since(enqueued_at), len, charged);
        self.requests.ticket(index)
    }

    /// A request that the budget has let through, in the disk from now on.
    // on the way of each request; other callers are rare
    #[inline(always)]
    pub(super) fn enter_disk(&mut self, now: Time, index: u32, nearly_idle: bool) {
        let request = self.requests.at_mut(index);
        debug_assert!(
            matches!(request.state, State::Queued | State::Parked),
            "only what waits goes to the disk"
        );
        request.state = State::InDisk;
        request.dispatched_at = now;
        request.nearly_idle = nearly_idle;
        let Request { cost, class, op, len, already_charged, .. } = *request;
        self.requests.push_back(&mut self.in_disk, index);
        self.held = self.held.plus(cost);
        self.move_head(now, index, op);
        let totals = &mut self.totals;
        totals.in_disk += 1;
        totals.in_disk_max = totals.in_disk_max.max(totals.in_disk);
        if !already_charged {
            totals.dispatched += 1;
            totals.consumption = totals.consumption.plus(cost);
            let bytes = if op == Op::Discard { 0 } else { len };
            self.fair.charge_limits(class, now, bytes);
            self.count_in_mix(now, op, cost);
        }
        if op == Op::Discard {
            self.shared.discards.stop_waiting(self.shard);
        }
    }

    // on the way of each request; other callers are rare
    #[inline(always)]
    pub(super) fn leave_window(&mut self, index: u32) {
        let ask = ask(self.requests.at(index));
        if self.requests.at(index).op == Op::Discard {
            self.shared.discards.leave();
        }
        debug_assert!(self.held >= ask.cost, "a request leaves the window that is in it");
        self.requests.unlink(&mut self.in_disk, index);
        self.held = self.held.minus(ask.cost);
        self.shared.budget.leave(&ask);
    }
}

pub(super) fn ask(request: &Request) -> Demand {
    Demand::new(request.cost, request.op, request.len, request.fresh)
}
