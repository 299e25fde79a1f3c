//! Permits for tasks.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use forebay_core::{Access, Ticket};

use crate::Class;
use crate::messages;
use crate::permit::{AdmitError, DiskGroup, Permit, Started};
use crate::sys::waker::KeptWaker;
use crate::wait_list::WaiterId;

/// A future that resolves to a [`Permit`]; see [`Class::admit_async`].
///
/// Cancel safety: dropping it cancels the request, in constant time. If it was already granted, the
/// grant ends. If it is granted but neither dropped nor polled, it loses its place in the queue
/// ([`requests_max`](crate::SchedulerBuilder::requests_max)) a second later if there is no free
/// place. The permit to which it still resolves is then not counted.
#[must_use = "it asks for the permit when it is polled"]
pub struct AdmitFuture {
    class: Class,
    access: Access,
    len: u64,
    need: Need,
    waiting: Option<Waiting>,
}

/// What happens if the queue is full or the class was removed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Need {
    /// The request is refused.
    Optional,
    /// The request waits for a place in the queue. If the class was removed, it is refused.
    InTurn,
    /// The request waits for a place in the queue. If the class was removed, it is untagged work.
    Required,
}

/// A request that waits, or whose grant was not noticed.
struct Waiting {
    group: Arc<DiskGroup>,
    at: At,
}

#[derive(Clone, Copy)]
enum At {
    Queue(Ticket),
    Overflow(WaiterId),
}

impl AdmitFuture {
    pub(crate) const fn new(class: Class, access: Access, len: u64) -> Self {
        Self::of(class, access, len, Need::Optional)
    }

    const fn of(class: Class, access: Access, len: u64, need: Need) -> Self {
        Self { class, access, len, need, waiting: None }
    }

    /// A request that waits for a place if the queue is full.
    pub(crate) const fn in_turn(class: Class, access: Access, len: u64) -> Self {
        Self::of(class, access, len, Need::InTurn)
    }

    /// A request for required I/O. If the queue is full it waits for a place, and if its class was
    /// removed it is untagged work. A holder's request gets no permit if the queue is full, because
    /// the holder's own permits may fill it.
    pub(crate) const fn required(class: Class, access: Access, len: u64) -> Self {
        Self::of(class, access, len, Need::Required)
    }

    fn start(&mut self, waker: &Waker) -> Poll<Result<Permit, AdmitError>> {
        let group = Arc::clone(self.class.disk.here().of(self.access.op));
        let (permits, request) = self.class.ask(&group, self.access, self.len)?;
        let waker = KeptWaker::of(waker);
        let started = permits.start_task(
            &group,
            request,
            waker,
            self.need != Need::Optional && !request.holder,
        );
        let at = match started.map_err(|error| self.class.explain(error))? {
            Started::Granted(ticket) => return Poll::Ready(Ok(Permit::new(group, ticket))),
            Started::Waits(ticket) => At::Queue(ticket),
            Started::WaitsForPlace(id) => At::Overflow(id),
        };
        self.waiting = Some(Waiting { group, at });
        Poll::Pending
    }

    /// Polls a request that waits.
    fn look(&mut self, waker: &Waker) -> Poll<Result<Permit, AdmitError>> {
        let Some(Waiting { group, at }) = self.waiting.take() else {
            messages::report_invariant("a permit was polled that was not requested");
            return Poll::Pending;
        };
        let Some(permits) = group.permits_if_used() else {
            messages::report_invariant("a request waits without a queue");
            return Poll::Pending;
        };
        let place = match at {
            At::Queue(ticket) => Poll::Ready(Ok(ticket)),
            At::Overflow(id) => permits.poll_place(id, KeptWaker::of(waker)),
        };
        let at = match place {
            Poll::Pending => at,
            Poll::Ready(Err(error)) => return Poll::Ready(Err(self.class.explain(error))),
            Poll::Ready(Ok(ticket)) => {
                if permits.poll_task(&group, ticket, KeptWaker::of(waker)) {
                    return Poll::Ready(Ok(Permit::new(group, ticket)));
                }
                At::Queue(ticket)
            }
        };
        self.waiting = Some(Waiting { group, at });
        Poll::Pending
    }
}

impl Future for AdmitFuture {
    type Output = Result<Permit, AdmitError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.class.disk.process.check()?;
        let waker = context.waker();
        let mut polled = if self.waiting.is_some() { self.look(waker) } else { self.start(waker) };
        let is_removed = matches!(polled, Poll::Ready(Err(AdmitError::ClassRemoved { .. })));
        if is_removed && self.need == Need::Required {
            self.need = Need::InTurn;
            self.class = self.class.default_class();
            polled = self.start(waker);
        }
        let is_full = matches!(polled, Poll::Ready(Err(AdmitError::QueueFull { .. })));
        if is_full && self.need != Need::Optional {
            return Poll::Ready(Ok(Permit::unscheduled()));
        }
        polled
    }
}

impl Drop for AdmitFuture {
    fn drop(&mut self) {
        if let Some(Waiting { group, at }) = self.waiting.take()
            && let Some(permits) = group.permits_if_used()
        {
            match at {
                At::Queue(ticket) => permits.abandon(&group, ticket),
                At::Overflow(id) => permits.abandon_place(&group, id),
            }
        }
    }
}

impl fmt::Debug for AdmitFuture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AdmitFuture")
            .field("class", &self.class)
            .field("access", &self.access)
            .field("len", &self.len)
            .finish_non_exhaustive()
    }
}
