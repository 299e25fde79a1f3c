//! What comes of a shard's operations.

use std::io;

use forebay_core::{EnqueueError, Op, REQUEST_COST_MAX};
use forebay_driver::{OperationId, Resent};

use crate::RequestError;
use crate::engine::{Operation, PushError, Retries};
use crate::sys::fork::Forked;

/// An operation that has ended.
#[derive(Debug)]
pub struct Completion {
    /// What it was known by.
    pub id: OperationId,
    /// Bytes transferred, which are fewer than asked for at the end of the
    /// file, or where a later part of a large request failed; zero for what
    /// transfers none. Or the error of the disk; `ECANCELED` when cancelled.
    pub result: io::Result<usize>,
    /// The operation as it was submitted, with its buffers.
    pub operation: Operation,
    /// From its submission to the dispatch of its last part, in nanoseconds.
    pub queue_nanos: u64,
    /// From there to its end, in nanoseconds.
    pub disk_nanos: u64,
}

/// Why an operation was not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SubmitError {
    /// More requests wait than the queue holds.
    #[error("the I/O queue is full: wait until some of its requests have ended")]
    Full,
    /// This is a child of the process that made the shard.
    #[error(transparent)]
    Forked(#[from] Forked),
    /// It is not cut into parts, or not into enough, and takes the disk more
    /// than 60 s.
    #[error(
        "a {op:?} of {len} bytes in one piece takes the disk more than {} s: split it",
        REQUEST_COST_MAX.as_nanos_ceil() / 1_000_000_000
    )]
    TooCostly {
        /// What is asked of the disk.
        op: Op,
        /// The length of the piece, in bytes.
        len: u64,
    },
    /// The class was removed.
    #[error("the class was removed: submit in another class")]
    ClassRemoved,
    /// The class is of another scheduler.
    #[error("the class `{class}` belongs to another scheduler: use one of the disk's")]
    OtherScheduler {
        /// Its name.
        class: String,
    },
    /// No disk could execute it: a buffer is not aligned as the file needs it,
    /// or a range is none.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// The engine cannot do this.
    #[error(transparent)]
    Operation(#[from] PushError),
}

/// What a shard did more than once, reads and writes apart, and what never
/// should have happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShardCounters {
    /// Tried without blocking in vain: see
    /// [`Engine::retries`](crate::engine::Engine::retries).
    pub blocked: Retries,
    /// The rest requested again after a short transfer.
    pub short: Retries,
    /// Requested again because the kernel said so (`EAGAIN`, `EINTR`).
    pub again: Retries,
    /// How often its state was impossible: each is a bug of this library. The
    /// first is told in the log.
    pub bugs: u64,
}

impl Completion {
    pub(super) fn of(driven: forebay_driver::Completion<Operation>) -> Self {
        let forebay_driver::Completion { id, result, command, enqueued, dispatched, ended } =
            driven;
        Self {
            id,
            // No more than the length of a buffer.
            result: result.map(|bytes| bytes as usize),
            operation: command,
            queue_nanos: dispatched.nanos_since(enqueued),
            disk_nanos: ended.nanos_since(dispatched),
        }
    }
}

impl From<Resent> for Retries {
    fn from(Resent { reads, writes }: Resent) -> Self {
        Self { reads, writes }
    }
}

impl From<EnqueueError> for SubmitError {
    fn from(error: EnqueueError) -> Self {
        match error {
            EnqueueError::Full => Self::Full,
            EnqueueError::Class(_) => Self::ClassRemoved,
            EnqueueError::TooCostly { op, len } => Self::TooCostly { op, len },
        }
    }
}
