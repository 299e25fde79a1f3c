//! Errors from making a shard and from submitting operations.

use std::io;

use forebay_core::{EnqueueError, GroupFull, Op, REQUEST_COST_MAX};

use crate::engine::PushError;
use crate::sys::fork::Forked;
use crate::validation::RequestError;

/// Why a shard could not be made.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum ShardError {
    /// The I/O group has no place for another queue: see
    /// [`shards_max`](crate::SchedulerBuilder::shards_max).
    #[error(
        "the disk `{disk}` has as many queues as it may have ({}): allow more with \
         SchedulerBuilder::shards_max",
        full.shards_max
    )]
    NoShard {
        /// The disk.
        disk: String,
        /// The limit of queues.
        full: GroupFull,
    },
    /// The engine cannot be made with this configuration.
    #[error("no I/O engine: {0}")]
    Engine(#[from] io::Error),
}

/// Why an operation was not accepted.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SubmitError {
    /// The queue is full.
    #[error("the I/O queue is full: wait until some of its requests have ended")]
    Full,
    /// The process was forked after it made the shard, and this is the child.
    #[error(transparent)]
    Forked(#[from] Forked),
    /// A piece of the operation takes the disk more than 60 s. The operation is not split, or not
    /// into enough parts.
    #[error(
        "a {op:?} of {len} bytes in one piece takes the disk more than {} s: split it",
        REQUEST_COST_MAX.as_nanos_ceil() / 1_000_000_000
    )]
    TooCostly {
        /// The operation as the scheduler charges it.
        op: Op,
        /// The length of the piece, in bytes.
        len: u64,
    },
    /// The class was removed.
    #[error("the class was removed: submit in another class")]
    ClassRemoved,
    /// The class belongs to another scheduler.
    #[error("the class `{class}` belongs to another scheduler: use one of the disk's")]
    OtherScheduler {
        /// The name of the class.
        class: String,
    },
    /// The request is invalid on any disk: a buffer is not aligned, or a range is invalid.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// The engine did not accept the operation.
    #[error(transparent)]
    Operation(#[from] PushError),
}

forebay_core::debug_as_display!(ShardError, SubmitError);

impl From<EnqueueError> for SubmitError {
    fn from(error: EnqueueError) -> Self {
        match error {
            EnqueueError::Full => Self::Full,
            EnqueueError::Class(_) => Self::ClassRemoved,
            EnqueueError::TooCostly { op, len } => Self::TooCostly { op, len },
        }
    }
}
