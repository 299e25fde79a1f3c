//! Permits for tasks.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use forebay_core::{Access, Ticket};

use crate::Class;
use crate::messages;
use crate::permit::{AdmitError, DiskGroup, Permit, PermitQueue};
use crate::sys::waker::KeptWaker;

/// Resolves to a [`Permit`]; see [`Class::admit_async`].
///
/// Cancel safety: dropping it takes the request back, in constant time; if it
/// had been granted meanwhile, the grant ends.
///
/// One that is neither dropped nor polled once it is granted gives its place
/// among [`requests_max`](crate::SchedulerBuilder::requests_max) away a second
/// later if there is no other; the permit that it still resolves to is counted
/// nowhere.
#[must_use = "it asks for the permit when it is polled"]
pub struct AdmitFuture {
    class: Class,
    access: Access,
    len: u64,
    waiting: Option<Waiting>,
}

/// Behind the ticket that waits, or was granted and not noticed.
struct Waiting {
    group: Arc<DiskGroup>,
    ticket: Ticket,
}

impl AdmitFuture {
    pub(crate) const fn new(class: Class, access: Access, len: u64) -> Self {
        Self { class, access, len, waiting: None }
    }
}

impl Future for AdmitFuture {
    type Output = Result<Permit, AdmitError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.class.disk.process.check()?;
        let waker = KeptWaker::of(context.waker());
        if let Some(waiting) = &self.waiting {
            let granted = waiting
                .permits()
                .is_none_or(|permits| permits.poll_task(&waiting.group, waiting.ticket, waker));
            if !granted {
                return Poll::Pending;
            }
        } else {
            let group = Arc::clone(self.class.disk.here().of(self.access.op));
            let (permits, request) = self.class.ask(&group, self.access, self.len)?;
            let started = permits.start_task(&group, request, waker);
            let (ticket, granted) = started.map_err(|error| self.class.explain(error))?;
            if granted {
                return Poll::Ready(Ok(Permit::new(group, ticket)));
            }
            self.waiting = Some(Waiting { group, ticket });
            return Poll::Pending;
        }
        match self.waiting.take() {
            Some(Waiting { group, ticket }) => Poll::Ready(Ok(Permit::new(group, ticket))),
            None => {
                messages::note_bug("what is granted was waiting");
                Poll::Pending
            }
        }
    }
}

impl Waiting {
    fn permits(&self) -> Option<&PermitQueue> {
        self.group.permits_if_used()
    }
}

impl Drop for AdmitFuture {
    fn drop(&mut self) {
        if let Some(waiting) = self.waiting.take()
            && let Some(permits) = waiting.permits()
        {
            permits.abandon(&waiting.group, waiting.ticket);
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
