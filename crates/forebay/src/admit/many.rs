//! Permits for several requests.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use forebay_core::{Op, Time, saturating_nanos};

use super::ask::check;
use crate::messages;
use crate::permit::{
    AdmitError, BatchRequest, Batched, DiskGroup, Grant, NoGrant, Parking, Permit, PermitQueue,
    ThreadPermit, holds_permit,
};
use crate::sys::library_thread::is_library_thread;
use crate::sys::sync::Clock;
use crate::sys::waker::{KeptWaker, with_own};
use crate::{Class, Scheduler};

/// The time in nanoseconds between two polls by a thread of the library that waits for a grant.
const POLL_PERIOD: u64 = 1_000_000;

/// A permit for several requests, which is not requested yet: see [`Class::admit_many`]. A thread
/// [waits](Self::wait) for it, or a task awaits it.
///
/// Cancel safety: dropping it cancels the requests. Requests that have had their turn stay charged.
#[must_use = "it asks for the permit when it is waited for"]
pub struct AdmitMany<'a> {
    class: Class,
    requests: &'a [(Op, u64)],
    waiting: Option<Waiting>,
}

/// A batch that waits, or whose grant was not noticed.
struct Waiting {
    group: Arc<DiskGroup>,
    batch: usize,
}

impl AdmitMany<'_> {
    /// Waits until the requests are granted. See [`Class::admit_many`] for their number.
    ///
    /// # Errors
    /// As for [`Class::admit`], for any of the requests.
    pub fn wait(self) -> Result<ThreadPermit<'static>, AdmitError> {
        self.wait_until(None)
    }

    /// [`Self::wait`], but for at most `timeout`.
    ///
    /// # Errors
    /// As for [`Self::wait`], and [`AdmitError::TimedOut`]. Then nothing is granted, but requests
    /// that have had their turn stay charged.
    pub fn wait_timeout(self, timeout: Duration) -> Result<ThreadPermit<'static>, AdmitError> {
        let deadline = Clock::of_process().now().plus_nanos(saturating_nanos(timeout));
        self.wait_until(Some(deadline))
    }

    /// A permit for as many of the first requests as do not have to wait. `None` if the first one
    /// has to wait.
    ///
    /// # Errors
    /// As for [`Self::wait`].
    pub fn try_now(mut self) -> Result<Option<ThreadPermit<'static>>, AdmitError> {
        let now = Clock::of_process().now();
        self.class.holder |= holds_permit(now);
        let group = self.group()?;
        let Some((permits, request)) = self.ask(&group)? else {
            return Ok(Some(ThreadPermit::new(Grant::of_batch(group, Box::default()), now)));
        };
        match permits.try_admit_many(&group, now, request) {
            Ok(tickets) => {
                let grant = Grant::of_batch(Arc::clone(&group), tickets);
                Ok(Some(ThreadPermit::new(grant, now)))
            }
            Err(NoGrant::TimedOut) => Ok(None),
            Err(error) => Err(self.class.explain(error)),
        }
    }

    fn wait_until(mut self, deadline: Option<Time>) -> Result<ThreadPermit<'static>, AdmitError> {
        let clock = Clock::of_process();
        self.class.holder |= holds_permit(clock.now());
        let parking = Parking::take_place();
        let waker = Waker::from(Arc::clone(&parking));
        loop {
            let polled = with_own(&waker, |context| self.poll_grant(context.waker()));
            if let Poll::Ready(grant) = polled {
                return Ok(ThreadPermit::new(grant?, clock.now()));
            }
            if deadline.is_some_and(|deadline| deadline <= clock.now()) {
                return Err(AdmitError::TimedOut);
            }
            let until = if is_library_thread() { self.poll_here() } else { deadline };
            parking.park(clock, until);
        }
    }

    /// Polls the queue of permits in a waker that a thread of the library runs, because that thread
    /// may be the one that grants. Returns the time until which the thread sleeps.
    fn poll_here(&self) -> Option<Time> {
        if let Some(Waiting { group, .. }) = &self.waiting {
            group.poll_permits();
        }
        Some(Clock::of_process().now().plus_nanos(POLL_PERIOD))
    }

    fn poll_grant(&mut self, waker: &Waker) -> Poll<Result<Grant<'static>, AdmitError>> {
        self.class.disk.process.check()?;
        let waker = KeptWaker::of(waker);
        if let Some(Waiting { group, batch }) = &self.waiting {
            let Some(permits) = group.permits_if_used() else {
                messages::report_invariant("a batch waits where no permits are in use");
                return Poll::Pending;
            };
            let Some(tickets) = permits.poll_batch(group, *batch, waker) else {
                return Poll::Pending;
            };
            let grant = Grant::of_batch(Arc::clone(group), tickets);
            self.waiting = None;
            return Poll::Ready(Ok(grant));
        }
        let group = self.group()?;
        let Some((permits, request)) = self.ask(&group)? else {
            return Poll::Ready(Ok(Grant::of_batch(group, Box::default())));
        };
        match permits.start_batch(&group, request, waker) {
            Ok(Batched::Granted(tickets)) => Poll::Ready(Ok(Grant::of_batch(group, tickets))),
            Ok(Batched::Waits(batch)) => {
                self.waiting = Some(Waiting { group, batch });
                Poll::Pending
            }
            Err(error) => Poll::Ready(Err(self.class.explain(error))),
        }
    }

    /// The I/O group of the first request.
    fn group(&self) -> Result<Arc<DiskGroup>, AdmitError> {
        self.requests.iter().try_for_each(|&(op, len)| check(op, len))?;
        let op = self.requests.first().map_or(Op::Read, |&(op, _)| op);
        Ok(Arc::clone(self.class.disk.here().of(op)))
    }

    /// The queue of permits, and the first requests that are in its group. `None` if there are no
    /// requests.
    fn ask<'a>(
        &self,
        group: &'a Arc<DiskGroup>,
    ) -> Result<Option<(&'a PermitQueue, BatchRequest<'_>)>, AdmitError> {
        let Some(&(op, len)) = self.requests.first() else { return Ok(None) };
        let (permits, request) = self.class.ask(group, op.into(), len)?;
        let groups = self.class.disk.here();
        let is_here = |&&(op, _): &&(Op, u64)| Arc::ptr_eq(groups.of(op), group);
        let count = self.requests.iter().take_while(is_here).count().max(1);
        let (class, holder) = (request.class, request.holder);
        Ok(Some((permits, BatchRequest { class, requests: &self.requests[..count], holder })))
    }
}

impl Future for AdmitMany<'_> {
    type Output = Result<Permit, AdmitError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.poll_grant(context.waker()).map_ok(Permit::of)
    }
}

impl Drop for AdmitMany<'_> {
    fn drop(&mut self) {
        if let Some(Waiting { group, batch }) = self.waiting.take()
            && let Some(permits) = group.permits_if_used()
        {
            permits.abandon_batch(&group, batch);
        }
    }
}

impl fmt::Debug for AdmitMany<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AdmitMany")
            .field("class", &self.class)
            .field("requests", &self.requests)
            .finish_non_exhaustive()
    }
}

impl Class {
    /// One permit for as many of the first `requests` as may be dispatched together. `requests` are
    /// operations and their lengths in bytes. It is for look-ups of many keys, whose reads are sent
    /// at once, and costs one lock and one wake-up.
    ///
    /// [`Permit::requests`] returns their number: as many as cost one [effective
    /// goal](crate::Disk::effective_goal) of disk time, at most 128, and at least one. On a
    /// [duplex](crate::DiskConfig::duplex) disk the permit ends before the first request of the
    /// other direction. With a [policy](crate::Policy) other than the default or the open one it is
    /// for one request. Ask for the rest after these requests are done, or [as the
    /// holder](Self::nested_in) of their permit. So a batch of any length can be done on any disk.
    ///
    /// Each request is ordered, counted and charged as if it were made alone, one after the other.
    /// None of them takes room in the window until all have had their turn, so two batches do not
    /// wait for each other. Then all of them are dispatched, even if the window is full. In this
    /// way the disk gets at most one goal beyond the window, and what its rate allows. Requests
    /// beyond that wait for room before the rest of their class.
    ///
    /// For an empty slice the permit is granted at once.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let scheduler = forebay::Scheduler::builder().build()?;
    /// # let queries = scheduler.add_class("queries", 200)?;
    /// # let reads = vec![(forebay::Op::Read, 16_384); 200];
    /// # let submit = |reads: &[(forebay::Op, u64)]| reads.iter().map(|_| Ok(())).collect::<Vec<_>>();
    /// let mut rest = &reads[..];
    /// while !rest.is_empty() {
    ///     let mut permit = queries.admit_many(rest).wait()?;
    ///     let (now, later) = rest.split_at(permit.requests());
    ///     for (index, result) in submit(now).iter().enumerate() {
    ///         permit.complete_one(index, result);
    ///     }
    ///     rest = later;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn admit_many<'a>(&self, requests: &'a [(Op, u64)]) -> AdmitMany<'a> {
        AdmitMany { class: self.clone(), requests, waiting: None }
    }
}

impl Scheduler {
    /// [`Class::admit_many`] in the [current class](Self::current_class).
    pub fn admit_many<'a>(&self, requests: &'a [(Op, u64)]) -> AdmitMany<'a> {
        self.current_class().admit_many(requests)
    }
}
