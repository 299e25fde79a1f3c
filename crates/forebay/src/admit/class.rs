//! Requests for permits of a class, or of the current class.

use std::time::Duration;

use forebay_core::{Access, EnqueueError, Op, Time, saturating_nanos};

use super::future::AdmitFuture;
use crate::permit::{
    AdmitError, Grant, NoGrant, Permit, PermitRequest, ThreadPermit, block_on, holds_permit,
    holds_permit_now,
};
use crate::sys::sync::Clock;
use crate::{Class, Scheduler};

impl Class {
    /// Waits until the scheduler grants `op` of `len` bytes to this class.
    ///
    /// The caller then does the I/O, and drops the permit. A permit orders the work that the disk
    /// does while it is held: direct I/O, reads that miss the page cache, and flushes of few bytes.
    /// It cannot order the write-back after a buffered write. For that there are
    /// [`Class::buffered_writer`], [`Class::sync_data`] and [`Class::read_at`]; see [which engine
    /// needs which](crate#what-a-permit-orders). Do not wait for anything else while holding a
    /// permit, because it keeps others from the disk.
    ///
    /// `len` is in bytes, 1 to 2^63 - 1. The length of a flush is ignored, and may be 0. Deleting a
    /// file is a discard of its length. Split it if the cost of discards depends on their length:
    /// on a disk with `discard_gib_us: 5000` a discard of 1 TiB keeps all others waiting for 5 s. A
    /// part that costs no more than the [effective goal](crate::Disk::effective_goal) delays others
    /// no longer than any other I/O: with a goal of 750 us on that disk, 128 MiB. Truncate the file
    /// from its end by one part with each permit, and unlink it with the last.
    ///
    /// Ask for each I/O separately, of 128 KiB or a few times that. A permit is not split, so one
    /// of many MiB delays all other classes by its whole cost.
    /// [`AdmitFor::in_parts`](crate::AdmitFor::in_parts) has one permit for each part. A permit for
    /// more than 1 MiB that would take the disk more than 60 s is refused.
    ///
    /// If the queue is full ([`requests_max`](crate::SchedulerBuilder::requests_max)), the call
    /// first waits for a place, in the order of the calls. A thread that holds a permit is refused
    /// instead, because its own permits may fill the queue. [`admit_timeout`](Self::admit_timeout),
    /// [`try_admit`](Self::try_admit) and [`admit_async`](Self::admit_async) are refused too.
    ///
    /// # Errors
    /// The length is 0 for an operation other than a flush, is above 2^63 - 1, or takes the disk
    /// more than 60 s. The class was removed. [`AdmitError`] lists the rarer errors.
    pub fn admit(&self, op: Op, len: u64) -> Result<ThreadPermit<'_>, AdmitError> {
        self.admit_access(op.into(), len, None)
    }

    /// [`Class::admit`], but waits for at most `timeout`.
    ///
    /// # Errors
    /// As for [`Class::admit`], and [`AdmitError::TimedOut`], after which nothing is charged.
    pub fn admit_timeout(
        &self,
        op: Op,
        len: u64,
        timeout: Duration,
    ) -> Result<ThreadPermit<'_>, AdmitError> {
        self.admit_access(op.into(), len, Some(timeout))
    }

    /// [`Class::admit`] if it does not have to wait: the budget is open, and no other request goes
    /// first. Otherwise `None`.
    ///
    /// # Errors
    /// As for [`Class::admit`].
    pub fn try_admit(&self, op: Op, len: u64) -> Result<Option<ThreadPermit<'_>>, AdmitError> {
        self.try_admit_access(op.into(), len)
    }

    /// [`Class::admit`] for a task: a future that resolves to the permit.
    ///
    /// The first poll makes the request. The future works with any executor. The permits of tasks
    /// are not tracked. A task that needs another permit before it drops the first one has to ask
    /// with the class [for its holder](Self::nested_in).
    ///
    /// Cancel safety: dropping the future cancels the request, in constant time. If it was already
    /// granted, the grant ends.
    pub fn admit_async(&self, op: Op, len: u64) -> AdmitFuture {
        AdmitFuture::new(self.clone(), op.into(), len)
    }

    /// This class, for nested requests of a caller that holds a permit and keeps it until they are
    /// done: requests for permits, and of files and shards. They wait for their turn like all
    /// others. While they wait, the window of their disk does not apply, so they proceed even if it
    /// is full of permits whose holders wait. A thread that holds a [`ThreadPermit`] does not need
    /// this.
    #[must_use]
    pub fn nested_in(&self, _: &Permit) -> Self {
        Self { holder: true, ..self.clone() }
    }

    /// [`Class::admit_timeout`] of an access, or [`Class::admit`] for `None`.
    pub(crate) fn admit_access(
        &self,
        access: Access,
        len: u64,
        timeout: Option<Duration>,
    ) -> Result<ThreadPermit<'_>, AdmitError> {
        let now = Clock::of_process().now();
        let deadline = timeout.map(|timeout| now.plus_nanos(saturating_nanos(timeout)));
        let group = self.disk.here().of(access.op);
        let (permits, mut request) = self.ask(group, access, len)?;
        request.holder |= holds_permit(now);
        match permits.admit(group, now, request, deadline) {
            Ok((ticket, now)) => Ok(ThreadPermit::new(Grant::new(group, ticket), now)),
            Err(error) => self.wait_for_place(error, request, deadline),
        }
    }

    /// If the queue is full, waits for a place. A holder does not, because its own permits may fill
    /// the queue.
    #[cold]
    fn wait_for_place(
        &self,
        error: NoGrant,
        request: PermitRequest,
        deadline: Option<Time>,
    ) -> Result<ThreadPermit<'static>, AdmitError> {
        let waits = deadline.is_none() && !request.holder;
        if !waits || !matches!(error, NoGrant::Refused(EnqueueError::Full)) {
            return Err(self.explain(error));
        }
        self.wait_as_task(AdmitFuture::in_turn(self.clone(), request.access, request.len))
    }

    /// [`Self::admit_access`] for required I/O: see [`AdmitFuture::required`].
    pub(crate) fn admit_required(&self, access: Access, len: u64) -> Result<Permit, AdmitError> {
        match self.admit_access(access, len, None) {
            Err(AdmitError::ClassRemoved { .. } | AdmitError::QueueFull { .. }) => {
                let holder = self.holder || holds_permit_now();
                let admit = AdmitFuture::required(Self { holder, ..self.clone() }, access, len);
                // A thread of the library must not wait for itself.
                block_on(admit).unwrap_or_else(|| Ok(Permit::unscheduled()))
            }
            admitted => admitted.map(ThreadPermit::detach),
        }
    }

    #[cold]
    fn wait_as_task(&self, admit: AdmitFuture) -> Result<ThreadPermit<'static>, AdmitError> {
        let full = || self.explain(NoGrant::Refused(EnqueueError::Full));
        let permit = block_on(admit).ok_or_else(full)??;
        permit.into_thread(Clock::of_process().now()).ok_or_else(full)
    }

    /// [`Class::try_admit`] of an access.
    pub(super) fn try_admit_access(
        &self,
        access: Access,
        len: u64,
    ) -> Result<Option<ThreadPermit<'_>>, AdmitError> {
        let now = Clock::of_process().now();
        let group = self.disk.here().of(access.op);
        let (permits, mut request) = self.ask(group, access, len)?;
        request.holder |= holds_permit(now);
        match permits.try_admit(group, now, request) {
            Ok((ticket, now)) => Ok(Some(ThreadPermit::new(Grant::new(group, ticket), now))),
            Err(NoGrant::TimedOut) => Ok(None),
            Err(error) => Err(self.explain(error)),
        }
    }
}

/// The same methods in the [current class](Scheduler::current_class).
impl Scheduler {
    /// [`Class::admit`] in the current class.
    ///
    /// # Errors
    /// As for [`Class::admit`].
    pub fn admit(&self, op: Op, len: u64) -> Result<ThreadPermit<'static>, AdmitError> {
        Ok(self.current_class().admit(op, len)?.into_owned())
    }

    /// [`Class::admit_timeout`] in the current class.
    ///
    /// # Errors
    /// As for [`Class::admit_timeout`].
    pub fn admit_timeout(
        &self,
        op: Op,
        len: u64,
        timeout: Duration,
    ) -> Result<ThreadPermit<'static>, AdmitError> {
        Ok(self.current_class().admit_timeout(op, len, timeout)?.into_owned())
    }

    /// [`Class::try_admit`] in the current class.
    ///
    /// # Errors
    /// As for [`Class::try_admit`].
    pub fn try_admit(&self, op: Op, len: u64) -> Result<Option<ThreadPermit<'static>>, AdmitError> {
        Ok(self.current_class().try_admit(op, len)?.map(ThreadPermit::into_owned))
    }

    /// [`Class::admit_async`] in the class that is current on the calling
    /// thread.
    ///
    /// Cancel safety: as for [`Class::admit_async`].
    pub fn admit_async(&self, op: Op, len: u64) -> AdmitFuture {
        self.current_class().admit_async(op, len)
    }
}

impl Permit {
    /// A nested permit in `class`: [`Class::admit_async`] of `class` [for the
    /// holder](Class::nested_in) of this one.
    ///
    /// Cancel safety: as for [`Class::admit_async`].
    pub fn admit_nested(&self, class: &Class, op: Op, len: u64) -> AdmitFuture {
        class.nested_in(self).admit_async(op, len)
    }
}
