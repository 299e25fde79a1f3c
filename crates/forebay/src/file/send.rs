//! Sending operations to the I/O threads of their disk.

use std::io;
use std::sync::Arc;

use forebay_core::Op;
use forebay_driver::{Command, QueueClass};

use super::growth::Growth;
use super::outcome::Outcome;
use super::request::{Request, Sent, State};
use crate::disk_groups::DiskGroups;
use crate::engine::Operation;
use crate::io_thread::{Completion, Inbox, Message, Submission, Submitter, submitter};
use crate::permit::holds_permit;
use crate::sys::clock::Clock;
use crate::validation::{RequestError, check_operation};
use crate::{Class, Disk};

/// The destination of operations, and the state of their file.
#[derive(Clone, Copy)]
pub(super) struct Target<'a> {
    pub(super) disk: &'a Disk,
    /// Set if the file grows.
    pub(super) growth: Option<&'a Growth>,
}

/// Sends an operation, or refuses one that no disk could execute.
pub(super) fn send<T: Outcome>(to: Target<'_>, class: &Class, operation: Operation) -> Request<T> {
    let Target { disk, growth } = to;
    let op = operation.op();
    if let Err(forked) = disk.record.process.check() {
        return refused(forked.into(), operation);
    }
    let checked = check_operation(&operation).map_err(io::Error::from);
    let ready = checked.and_then(|()| {
        let address = address(disk, class, op)?;
        growth.map_or(Ok(()), |growth| growth.make_room_for(&operation))?;
        Ok(address)
    });
    let state = match ready {
        Ok((class, inbox)) => {
            let since = Clock::of_process().now();
            let class = QueueClass { holder: class.holder || holds_permit(since), ..class };
            let request = Submission { class, since, submitter: submitter().number, operation };
            State::Sent(Sent::new(disk, request, inbox))
        }
        Err(error) => State::Refused(Completion::refusal(error, operation)),
    };
    Request::new(state)
}

/// The answer to an operation that is not sent.
pub(super) fn refused<T: Outcome>(error: io::Error, operation: Operation) -> Request<T> {
    Request::new(State::Refused(Completion::refusal(error, operation)))
}

impl Disk {
    /// The inbox for requests of the calling thread, and the I/O groups that serve them.
    pub(super) fn inbox(
        &self,
        submitter: Submitter,
    ) -> io::Result<(&Arc<Inbox<Message>>, &DiskGroups)> {
        self.record.process.check()?;
        let (groups, threads) = self.record.io_threads_here();
        let inbox = threads.inbox(groups, self.name(), submitter);
        Ok((inbox.map_err(io::Error::other)?, groups))
    }

    /// Sends an [`Operation`] to an I/O thread of this disk, as [files](crate::File) do. Its
    /// descriptor must be on this disk.
    ///
    /// An operation that no disk could execute is refused with a [`RequestError`]. The result is
    /// that of a [`Completion`](crate::shard::Completion), with the operation, which can be used
    /// again.
    ///
    /// This is how a file is deleted in the background:
    ///
    /// ```
    /// use forebay::Scheduler;
    /// use forebay::engine::Operation;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// # let path = dir.path().join("obsolete");
    /// # std::fs::write(&path, [7; 8192])?;
    /// let scheduler = Scheduler::builder().build()?;
    /// let cleaning = scheduler.add_class("cleaning", 20)?;
    /// let len = std::fs::metadata(&path)?.len();
    /// let unlink = Operation::unlink(&path, len)?;
    /// let (deleted, _) = scheduler.disk_of(&path)?.submit(&cleaning, unlink).wait();
    /// deleted?;
    /// assert!(!path.exists());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Cancel safety: dropping the handle cancels the parts of the operation that have not
    /// happened. The operation is lost with its buffers.
    pub fn submit(
        &self,
        class: &Class,
        operation: Operation,
    ) -> Request<(io::Result<usize>, Operation)> {
        send(Target { disk: self, growth: None }, class, operation)
    }
}

/// The class on the file's disk, and the inbox for its requests.
fn address(disk: &Disk, class: &Class, op: Op) -> io::Result<(QueueClass, Arc<Inbox<Message>>)> {
    let name = || class.name().to_owned();
    if !Arc::ptr_eq(&class.scheduler, &disk.scheduler) {
        return Err(RequestError::OtherScheduler { class: name() }.into());
    }
    let (inbox, groups) = disk.inbox(submitter())?;
    let class = class.in_queue(groups, op);
    let class = class.ok_or_else(|| RequestError::ClassRemoved { class: name() })?;
    Ok((class, Arc::clone(inbox)))
}
