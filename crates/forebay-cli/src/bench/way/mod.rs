//! The ways in which the load of a thread gets to the disk.
//!
//! They are those of the library: a shard per thread, one queue of permits that all threads
//! share, and I/O threads to which requests are sent.

mod coordinators;
mod per_thread;
mod permits;
mod ready;

use std::io;
use std::task::Waker;
use std::time::Duration;

use clap::ValueEnum;
use forebay::engine::{Backend, EngineConfig, Operation};
use forebay_core::{Op, Time};

use self::coordinators::Coordinators;
use self::per_thread::PerThread;
use self::permits::Permits;
use super::scheduler::Scheduled;

/// How the threads of a run share the scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Topology {
    /// Each thread has an I/O queue and does its own I/O
    PerThread,
    /// One I/O queue for all threads, which ask it for permits and do their own I/O
    Shared,
    /// --io-queues threads with an I/O queue each do the I/O that all others send them
    Coordinators,
}

impl Topology {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::PerThread => "per-thread",
            Self::Shared => "shared",
            Self::Coordinators => "coordinators",
        }
    }

    /// The way of the calling thread.
    pub(super) fn way(
        self,
        scheduled: &Scheduled,
        config: &EngineConfig,
    ) -> io::Result<Box<dyn Way>> {
        Ok(match self {
            Self::PerThread => Box::new(PerThread::new(scheduled, config)?),
            Self::Shared => Box::new(Permits::new(scheduled, config)?),
            Self::Coordinators => Box::new(Coordinators::new(scheduled)),
        })
    }
}

/// A request as a way takes it.
pub(super) struct Submission {
    /// What comes back with the operation.
    pub(super) token: usize,
    /// The index of the class in the job file.
    pub(super) class: usize,
    pub(super) op: Op,
    /// Bytes that it is charged for.
    pub(super) len: u64,
    pub(super) operation: Operation,
}

/// A request that has ended.
#[derive(Debug)]
pub(super) struct Done {
    pub(super) token: usize,
    pub(super) result: io::Result<usize>,
    pub(super) operation: Operation,
    /// From its submission until the disk got the last of it.
    pub(super) queue_nanos: u64,
}

/// How one thread's requests get to the disk.
///
/// Dropping it takes back what waits, and waits for what the disk has.
pub(super) trait Way {
    /// Sends a request, at the latest with the next turn.
    fn submit(&mut self, now: Time, submission: Submission) -> Result<(), (io::Error, Operation)>;

    /// Goes on with what waits, and sleeps until a request has ended, there is a wake-up, or
    /// `timeout` has passed; not at all if there is something to pop.
    fn turn(&mut self, now: Time, timeout: Duration) -> io::Result<()>;

    /// A request that has ended.
    fn pop(&mut self) -> Option<Done>;

    /// Ends a sleep.
    fn waker(&self) -> Waker;

    /// What does the I/O, and why it is not io_uring where that was wanted most; `None` if
    /// another thread knows.
    fn backend(&self) -> Option<(Backend, Option<String>)>;
}

/// The error of a system that has no memory for requests now: what is in flight makes room when
/// it completes.
fn unless_out_of_memory(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
            std::thread::sleep(Duration::from_millis(1));
            Ok(())
        }
        result => result,
    }
}
