//! One thread's I/O queue, with an engine of its own.
//!
//! This is the first of three topologies for the threads of a program. All of them share the disk's
//! one budget, and shares apply across them.
//!
//! **A queue per thread**, for a thread per core: no request is passed between threads, and there
//! are no locks.
//!
//! ```text
//!   thread 0            thread 1            thread 2
//!   [Shard: queue]      [Shard: queue]      [Shard: queue]
//!        |                   |                   |
//!        +---------+---------+---------+---------+
//!                  one budget: I/O group
//!                           disk
//! ```
//!
//! **One shared queue**, for programs that do their own I/O: every request gets a
//! [permit](crate::Permit) from one queue behind a lock.
//!
//! ```text
//!   thread 0     thread 1     thread 2
//!       \           |           /
//!        [permits: queue, locked]
//!       /           |           \
//!     I/O          I/O          I/O     each thread does its own
//!                  disk
//! ```
//!
//! **Coordinators**: I/O threads that execute the requests of all others. They serve
//! [files](crate::File); [`io_queues`](crate::SchedulerBuilder::io_queues) sets their number. With
//! one, all requests are in one queue and the order is exact. With more, one thread does not limit
//! a fast disk. Within a class, the submitting threads get equal disk time.
//!
//! ```text
//!   thread 0   thread 1   thread 2   thread 3
//!        \       /             \       /
//!        [inbox]               [inbox]
//!        I/O thread            I/O thread
//!        [Shard: queue]        [Shard: queue]
//!             |                     |
//!             +----------+----------+
//!               one budget: I/O group
//!                      disk
//! ```

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::sync::Arc;
use std::time::Duration;

use forebay_core::{IoQueue, Op};
use forebay_driver::{Command, QueueClass};

pub use crate::reactor::{Completion, ShardCounters, ShardError, SubmitError};
pub use forebay_driver::OperationId;

use crate::engine::{Backend, EngineConfig, EngineWaker, Operation};
use crate::permit::holds_permit;
use crate::reactor::Reactor;
use crate::sys::fork::OfProcess;
use crate::validation::check_operation;
use crate::{Class, Disk};

/// A thread's own I/O queue on a disk, with the engine that executes its dispatched requests.
///
/// It is for programs with a thread per core, whose event loop it becomes a part of:
///
/// 1. [`submit`](Self::submit) operations, in their classes;
/// 2. [`run_once`](Self::run_once) dispatches requests and sleeps until one has ended;
/// 3. [`pop`](Self::pop) completions until there are none.
///
/// A program with its own event loop sleeps there instead. It calls `run_once` with a timeout of
/// zero, and then waits until the shard's descriptor is readable or [`timeout`](Self::timeout) has
/// passed.
///
/// The queue belongs to the disk's I/O group: shares and budget apply across all threads. A request
/// that costs more than one effective goal is split, and has one result: the length of its
/// beginning that succeeded without a gap.
///
/// A shard belongs to the thread that made it. Dropping it removes waiting requests, cancels those
/// in the disk if possible, and waits for the rest for at most [`EngineConfig::shutdown_timeout`].
///
/// ```
/// use forebay::engine::{EngineConfig, Operation};
/// use forebay::{AlignedBuf, DirectFile, Scheduler};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let dir = tempfile::tempdir()?;
/// # let path = dir.path().join("data");
/// let scheduler = Scheduler::builder().build()?;
/// let queries = scheduler.add_class("queries", 200)?;
/// let file = DirectFile::options().read(true).write(true).create(true).open(&path)?;
///
/// let mut shard = scheduler.disk_of(&path)?.shard(&EngineConfig::default())?;
/// let buffer = AlignedBuf::new(4096, 4096)?;
/// let write = shard.submit(&queries, Operation::write(file, 0, buffer)).map_err(|(e, _)| e)?;
/// let completion = loop {
///     shard.run_once(None)?;
///     if let Some(completion) = shard.pop() {
///         break completion;
///     }
/// };
/// assert_eq!((completion.id, completion.result?), (write, 4096));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Shard {
    reactor: OfProcess<Reactor>,
    disk: Disk,
}

impl Disk {
    /// Makes a shard for the calling thread: an I/O queue with its own engine.
    ///
    /// # Errors
    /// The disk already has the most queues, or the engine cannot be made.
    pub fn shard(&self, config: &EngineConfig) -> Result<Shard, ShardError> {
        self.record.process.check().map_err(io::Error::from)?;
        let groups = self.record.here().clone();
        let full = |full| ShardError::NoShard { disk: self.name().to_owned(), full };
        let reactor = Reactor::new(groups, config)?.map_err(full)?;
        let reactor = OfProcess::new(reactor);
        Ok(Shard { reactor, disk: self.clone() })
    }
}

impl Shard {
    /// Queues an operation in `class`, which a later [`run_once`](Self::run_once) dispatches.
    /// Returns its id, which is valid until it is popped. It is charged to this shard's disk, on
    /// which its file should be.
    ///
    /// # Errors
    /// The operation is returned with the reason why it was not accepted.
    pub fn submit(
        &mut self,
        class: &Class,
        operation: Operation,
    ) -> Result<OperationId, (SubmitError, Operation)> {
        if !Arc::ptr_eq(&class.scheduler, &self.disk.scheduler) {
            let class = class.name().to_owned();
            return Err((SubmitError::OtherScheduler { class }, operation));
        }
        if let Err(forked) = self.reactor.process().check() {
            return Err((forked.into(), operation));
        }
        if let Err(error) = check_operation(&operation) {
            return Err((error.into(), operation));
        }
        let Some(class) = class.in_queue(self.reactor.groups(), operation.op()) else {
            return Err((SubmitError::ClassRemoved, operation));
        };
        let now = self.reactor.now();
        let class = QueueClass { holder: class.holder || holds_permit(now), ..class };
        self.reactor.submit(now, class, operation)
    }

    /// Dispatches requests, and sleeps until an operation ends, a wake-up comes, the queue has to
    /// be polled again, or `timeout` has passed. It does not sleep with a timeout of zero, or while
    /// there is a completion to pop; `None` sets no limit.
    ///
    /// After a call with a timeout of zero, the shard's descriptor becomes readable as soon as the
    /// next call has something to do.
    ///
    /// # Errors
    /// The kernel accepts no submissions, or no thread can be started. No operation is lost: the
    /// call can be repeated.
    pub fn run_once(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        self.reactor.process().check()?;
        self.reactor.run_once(timeout, &mut |_, _| ())?;
        if timeout == Some(Duration::ZERO) {
            self.reactor.watch();
        }
        Ok(())
    }

    /// The next operation that has ended. `None` if there is none.
    pub fn pop(&mut self) -> Option<Completion> {
        self.reactor.process().check().ok()?;
        self.reactor.pop()
    }

    /// The time within which the next [`run_once`](Self::run_once) must be called if nothing
    /// happens before. `None` if it need not be.
    pub fn timeout(&self) -> Option<Duration> {
        self.reactor.timeout(self.reactor.now())
    }

    /// Cancels an operation, which ends with `ECANCELED`. An operation in the queue has ended when
    /// this returns, and was not charged. One in the disk is cancelled if that is possible, and
    /// otherwise ends as usual. Returns false if the operation has ended already.
    pub fn cancel(&mut self, id: OperationId) -> bool {
        let now = self.reactor.now();
        self.reactor.process().is_here() && self.reactor.cancel(now, id)
    }

    /// The number of operations that were submitted and not popped.
    pub fn len(&self) -> usize {
        self.reactor.len()
    }

    /// Whether there are no such operations.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The backend that executes the operations.
    pub fn backend(&self) -> Backend {
        self.reactor.engine().backend()
    }

    /// Why [`BackendChoice::Auto`](crate::engine::BackendChoice::Auto) did not choose io_uring.
    pub fn fallback_reason(&self) -> Option<&str> {
        self.reactor.engine().fallback_reason()
    }

    /// A handle with which other threads can end a sleep of this shard.
    pub fn waker(&self) -> EngineWaker {
        self.reactor.engine().waker()
    }

    /// The I/O queue, for its counters; on a duplex disk the queue of reads.
    pub fn queue(&self) -> &IoQueue {
        self.queue_of(Op::Read)
    }

    /// The I/O queue for requests with this operation, for its counters. There is only one, except
    /// on a duplex disk.
    pub fn queue_of(&self, op: Op) -> &IoQueue {
        self.reactor.queue(op)
    }

    /// The counters of repeated operations.
    pub fn counters(&self) -> ShardCounters {
        self.reactor.counters()
    }

    /// The disk.
    pub fn disk(&self) -> &Disk {
        &self.disk
    }
}

impl AsFd for Shard {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.reactor.engine().as_fd()
    }
}

impl AsRawFd for Shard {
    fn as_raw_fd(&self) -> RawFd {
        self.as_fd().as_raw_fd()
    }
}
