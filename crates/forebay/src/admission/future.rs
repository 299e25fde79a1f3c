//! Permits for tasks.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use forebay_core::{Op, Ticket};

use super::{Admission, AdmitError, Permit};
use crate::Class;
use crate::disk::DiskGroup;

/// Resolves to a [`Permit`]; see [`Class::admit_async`].
///
/// Cancel safety: dropping it takes the request back, in constant time; if it
/// had been granted meanwhile, the grant ends.
#[must_use = "it asks for the permit when it is polled"]
pub struct Admit {
    class: Class,
    op: Op,
    len: u64,
    waiting: Option<Waiting>,
}

/// Behind the ticket that waits, or was granted and not noticed.
struct Waiting {
    group: Arc<DiskGroup>,
    ticket: Ticket,
}

impl Admit {
    pub(super) const fn new(class: Class, op: Op, len: u64) -> Self {
        Self { class, op, len, waiting: None }
    }
}

impl Future for Admit {
    type Output = Result<Permit, AdmitError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let waker = context.waker().clone();
        if let Some(waiting) = &self.waiting {
            let granted = waiting
                .admission()
                .is_none_or(|admission| admission.poll_task(waiting.ticket, waker));
            if !granted {
                return Poll::Pending;
            }
        } else {
            let group = Arc::clone(self.class.disk.here().of(self.op));
            let (admission, asked) = self.class.ask(&group, self.op, self.len)?;
            let started = admission.start_task(&group, asked, waker);
            let (ticket, granted) = started.map_err(|error| self.class.explain(error))?;
            if granted {
                return Poll::Ready(Ok(Permit::new(group, ticket)));
            }
            self.waiting = Some(Waiting { group, ticket });
            return Poll::Pending;
        }
        match self.waiting.take() {
            Some(Waiting { group, ticket }) => Poll::Ready(Ok(Permit::new(group, ticket))),
            None => Poll::Pending,
        }
    }
}

impl Waiting {
    fn admission(&self) -> Option<&Admission> {
        self.group.admission_if_used()
    }
}

impl Drop for Admit {
    fn drop(&mut self) {
        if let Some(waiting) = self.waiting.take()
            && let Some(admission) = waiting.admission()
        {
            admission.abandon(&waiting.group, waiting.ticket);
        }
    }
}

impl fmt::Debug for Admit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Admit")
            .field("class", &self.class)
            .field("op", &self.op)
            .field("len", &self.len)
            .finish_non_exhaustive()
    }
}

/// Resolves to a [`Permit`] beside the one that is held; see
/// [`Permit::admit_more`].
///
/// Cancel safety: dropping it loses nothing; nothing is charged before it
/// resolves.
#[must_use = "it asks for the permit when it is polled"]
#[derive(Debug)]
pub struct AdmitMore<'a> {
    /// Held as long as this waits.
    _permit: &'a Permit,
    class: Class,
    op: Op,
    len: u64,
    alarm: Option<(Arc<DiskGroup>, u64)>,
}

impl Permit {
    /// Another permit, of `class`, for the piece of work that this one belongs
    /// to. It passes the queue and the window, on every disk, and waits only
    /// for the pace and the limits of the class: waiting for others, it could
    /// wait for somebody who waits for this one.
    ///
    /// Cancel safety: dropping the future loses nothing; nothing is charged
    /// before it resolves.
    pub fn admit_more(&self, class: &Class, op: Op, len: u64) -> AdmitMore<'_> {
        AdmitMore { _permit: self, class: class.clone(), op, len, alarm: None }
    }
}

impl AdmitMore<'_> {
    fn take_back_alarm(&mut self) {
        if let Some((group, number)) = self.alarm.take()
            && let Some(admission) = group.admission_if_used()
        {
            admission.take_back_alarm(number);
        }
    }
}

impl Future for AdmitMore<'_> {
    type Output = Result<Permit, AdmitError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.take_back_alarm();
        let group = Arc::clone(self.class.disk.here().of(self.op));
        let (admission, asked) = self.class.ask(&group, self.op, self.len)?;
        let waker = context.waker().clone();
        match admission.poll_past_window(&group, asked, waker) {
            Ok(Ok(ticket)) => Poll::Ready(Ok(Permit::new(group, ticket))),
            Ok(Err(number)) => {
                self.alarm = Some((group, number));
                Poll::Pending
            }
            Err(error) => Poll::Ready(Err(self.class.explain(error))),
        }
    }
}

impl Drop for AdmitMore<'_> {
    fn drop(&mut self) {
        self.take_back_alarm();
    }
}
