//! What all submission paths have in common.

use std::io;
use std::task::Waker;
use std::time::Duration;

use forebay::engine::{Backend, Operation};
use forebay_core::{Op, Time};

/// A request as a path takes it.
pub(in crate::bench) struct Submission {
    /// What comes back with the operation.
    pub(in crate::bench) token: usize,
    /// The index of the class in the job file.
    pub(in crate::bench) class: usize,
    pub(in crate::bench) op: Op,
    /// Bytes that it is charged for.
    pub(in crate::bench) len: u64,
    pub(in crate::bench) operation: Operation,
}

/// A request that has ended.
#[derive(Debug)]
pub(in crate::bench) struct Completion {
    pub(in crate::bench) token: usize,
    pub(in crate::bench) result: io::Result<usize>,
    pub(in crate::bench) operation: Operation,
    /// From its submission until the disk got the last of it.
    pub(in crate::bench) queue_nanos: u64,
}

/// How one thread's requests get to the disk.
///
/// Dropping it takes back what waits, and waits for what the disk has.
pub(in crate::bench) trait SubmissionPath {
    /// Sends a request, at the latest in the next [`run_once`](Self::run_once).
    fn submit(&mut self, now: Time, submission: Submission) -> Result<(), (io::Error, Operation)>;

    /// Goes on with what waits, and sleeps until a request has ended, there is a wake-up, or
    /// `timeout` has passed; not at all if there is something to pop.
    fn run_once(&mut self, now: Time, timeout: Duration) -> io::Result<()>;

    /// A request that has ended.
    fn pop(&mut self) -> Option<Completion>;

    /// Ends a sleep.
    fn waker(&self) -> Waker;

    /// What does the I/O, and why it is not io_uring where that was wanted most; `None` if
    /// another thread knows.
    fn backend(&self) -> Option<(Backend, Option<String>)>;
}

/// The error of a system that has no memory for requests now: what is in flight makes room when
/// it completes.
pub(in crate::bench) fn unless_out_of_memory(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
            std::thread::sleep(Duration::from_millis(1));
            Ok(())
        }
        result => result,
    }
}
