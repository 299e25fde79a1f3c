//! Requests that have to be done, and wait for a place because the queue is full.

use std::collections::BTreeMap;

use forebay_core::{EnqueueError, Ticket, Time};

use super::request::PermitRequest;
use crate::sys::waker::KeptWaker;
use crate::wait_list::WaiterId;

/// The queue is looked at again so long after a request found it full: places of requests that
/// were forgotten can be had by then.
const RETRY_NANOS: u64 = 1_000_000_000;

/// Requests in the order in which they came. Each free place is given to the first of them; its
/// owner finds its ticket when it is polled next. There are no more than flushes, writers, parts
/// that were asked for, and blocked threads.
#[derive(Default)]
pub(super) struct Overflow {
    waiting: BTreeMap<WaiterId, (PermitRequest, KeptWaker)>,
    /// What became of those that have left.
    left: BTreeMap<WaiterId, Result<Ticket, EnqueueError>>,
    retry_at: Time,
}

/// What has become of a request that waited for a place.
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

    /// Until when places of requests that were forgotten are waited for.
    pub(super) fn retry_at(&self) -> Option<Time> {
        (!self.is_empty()).then_some(self.retry_at)
    }

    /// The first request, if there is one.
    pub(super) fn first(&self) -> Option<PermitRequest> {
        self.waiting.first_key_value().map(|(_, (request, _))| *request)
    }

    /// The first request has got its place, or never will. Returns the waker of its owner.
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

    /// No place could be had: they are looked for again later.
    pub(super) fn postpone(&mut self, now: Time) {
        if self.retry_at <= now {
            self.retry_at = now.plus_nanos(RETRY_NANOS);
        }
    }

    /// What has become of a request; `waker` is woken next if it waits.
    pub(super) fn poll(&mut self, id: WaiterId, waker: KeptWaker) -> Place {
        if let Some(result) = self.left.remove(&id) {
            return Place::Has(result, waker);
        }
        match self.waiting.get_mut(&id) {
            Some((_, before)) => Place::Waits(std::mem::replace(before, waker)),
            // Nobody waits: its waker is not kept.
            None => Place::Waits(waker),
        }
    }

    /// Nobody is interested in a request any more. Returns its ticket, if it has a place, and its
    /// waker, to be dropped without a lock.
    pub(super) fn remove(&mut self, id: WaiterId) -> (Option<Ticket>, Option<KeptWaker>) {
        let ticket = self.left.remove(&id).and_then(Result::ok);
        (ticket, self.waiting.remove(&id).map(|(_, waker)| waker))
    }
}
