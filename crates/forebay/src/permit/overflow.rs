//! Required requests, which wait for a place while the queue is full.

use std::collections::BTreeMap;

use forebay_core::{EnqueueError, Ticket, Time};

use super::request::PermitRequest;
use crate::sys::waker::KeptWaker;
use crate::wait_list::WaiterId;

/// The time after which a full queue is checked again, in nanoseconds. By then the places of
/// forgotten requests can be reused.
const RETRY_NANOS: u64 = 1_000_000_000;

/// Waiting requests, in the order of arrival. A free place goes to the first one, whose owner finds
/// its ticket at its next poll. Their number is bounded by the number of flushes, writers, active
/// parts and blocked threads.
#[derive(Default)]
pub(super) struct Overflow {
    waiting: BTreeMap<WaiterId, (PermitRequest, KeptWaker)>,
    /// The results of requests that have left, until their owners poll.
    left: BTreeMap<WaiterId, Result<Ticket, EnqueueError>>,
    retry_at: Time,
}

/// The state of a request that waits, or waited, for a place.
pub(super) enum Place {
    Waits(#[expect(dead_code, reason = "held until it may be dropped")] KeptWaker),
    Has(
        Result<Ticket, EnqueueError>,
        #[expect(dead_code, reason = "held until it may be dropped")] KeptWaker,
    ),
}

impl Overflow {
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(super) fn add(&mut self, now: Time, request: PermitRequest, waker: KeptWaker) -> WaiterId {
        if self.is_empty() {
            self.retry_at = now.plus_nanos(RETRY_NANOS);
        }
        let id = WaiterId::new();
        self.waiting.insert(id, (request, waker));
        id
    }

    /// The time at which the queue is to be checked for places of forgotten requests. `None` if no
    /// request waits.
    pub(super) fn retry_at(&self) -> Option<Time> {
        (!self.is_empty()).then_some(self.retry_at)
    }

    /// The first request, if there is one.
    pub(super) fn first(&self) -> Option<PermitRequest> {
        self.waiting.first_key_value().map(|(_, (request, _))| *request)
    }

    /// Removes the first request, which has got its place or an error. Returns the waker of its
    /// owner.
    pub(super) fn leave_first(
        &mut self,
        now: Time,
        result: Result<Ticket, EnqueueError>,
    ) -> Option<KeptWaker> {
        let (id, (_, waker)) = self.waiting.pop_first()?;
        self.left.insert(id, result);
        self.retry_at = now.plus_nanos(RETRY_NANOS);
        Some(waker)
    }

    /// Sets the time of the next check, after one that found no place.
    pub(super) fn postpone(&mut self, now: Time) {
        if self.retry_at <= now {
            self.retry_at = now.plus_nanos(RETRY_NANOS);
        }
    }

    /// The state of a request. If it waits, `waker` is woken next.
    pub(super) fn poll(&mut self, id: WaiterId, waker: KeptWaker) -> Place {
        if let Some(result) = self.left.remove(&id) {
            return Place::Has(result, waker);
        }
        match self.waiting.get_mut(&id) {
            Some((_, before)) => Place::Waits(std::mem::replace(before, waker)),
            // The request does not wait, so its waker is not kept.
            None => Place::Waits(waker),
        }
    }

    /// Abandons a request. Returns its ticket, if it has a place, and its waker, to be dropped
    /// without a lock.
    pub(super) fn remove(&mut self, id: WaiterId) -> (Option<Ticket>, Option<KeptWaker>) {
        let ticket = self.left.remove(&id).and_then(Result::ok);
        (ticket, self.waiting.remove(&id).map(|(_, waker)| waker))
    }
}
