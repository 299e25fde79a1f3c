//! Why a permit was not granted.

use std::io;

use forebay_core::{EnqueueError, GroupFull, Op, REQUEST_COST_MAX};

use super::request::NoGrant;
use crate::sys::fork::Forked;

/// Why a permit was not granted. `?` converts it to an [`io::Error`], of which it is the source.
/// The kind is `TimedOut` if the time has passed, `InvalidInput` if the request can never be
/// granted, and `QuotaExceeded` if the queue is full.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum AdmitError {
    /// The length is 0, and the operation is not a flush.
    #[error("{op:?} of 0 bytes: give at least 1 byte; only a flush has no length")]
    ZeroLength {
        /// The operation.
        op: Op,
    },
    /// The length exceeds that of any file (2^63 - 1 bytes).
    #[error("a {op:?} of {len} bytes: no file has more than 2^63 - 1; give the length of one I/O")]
    TooLong {
        /// The operation.
        op: Op,
        /// The length asked for, in bytes.
        len: u64,
    },
    /// By the rates of the disk, the request takes more than 60 s. Others would have to wait for
    /// all of it.
    #[error(
        "a {op:?} of {len} bytes takes the disk `{disk}` more than {} s: split it, into 128 KiB or \
         a few times that",
        REQUEST_COST_MAX.as_nanos_ceil() / 1_000_000_000
    )]
    TooCostly {
        /// The operation.
        op: Op,
        /// The requested length, in bytes.
        len: u64,
        /// The disk.
        disk: String,
    },
    /// The request has several parts, and was made with
    /// [`AdmitFor::in_one_part`](crate::AdmitFor::in_one_part).
    #[error(
        "a {op:?} of {len} bytes would delay all others: give the disk `{disk}` at most {most} \
         bytes at a time; split it (AdmitFor::in_parts)"
    )]
    SeveralParts {
        /// The operation.
        op: Op,
        /// The requested length, in bytes.
        len: u64,
        /// The most bytes that a part may have.
        most: u64,
        /// The disk.
        disk: String,
    },
    /// The class was removed.
    #[error("the class `{class}` was removed; ask in another class")]
    ClassRemoved {
        /// The name of the class.
        class: String,
    },
    /// The queue of the disk is full: see [`requests_max`](crate::SchedulerBuilder::requests_max).
    #[error(
        "the disk `{disk}` has as many queued and executing requests as \
         SchedulerBuilder::requests_max allows: wait for some"
    )]
    QueueFull {
        /// The disk.
        disk: String,
    },
    /// The I/O group has no place for the queue of permits: see
    /// [`shards_max`](crate::SchedulerBuilder::shards_max).
    #[error(
        "the disk `{disk}` has as many queues as it may have ({shards_max}): allow more with \
         SchedulerBuilder::shards_max"
    )]
    NoShard {
        /// The disk.
        disk: String,
        /// The most queues that the I/O group may have.
        shards_max: usize,
    },
    /// The disk of the permit's target cannot be looked up.
    #[error("cannot find the disk of the file that the permit is for: {0}")]
    Lookup(#[source] io::Error),
    /// The target of the permit is on a disk of another scheduler.
    #[error(
        "the disk `{disk}` belongs to another scheduler than the class `{class}`: use a class of \
         its own"
    )]
    OtherScheduler {
        /// The class.
        class: String,
        /// The disk.
        disk: String,
    },
    /// The process was forked after it made the scheduler, and this is the child.
    #[error(transparent)]
    Forked(#[from] Forked),
    /// The timeout has passed.
    #[error("no permit was granted before the timeout; ask again, or use a longer one")]
    TimedOut,
    /// The thread that keeps the deadlines of waiting tasks cannot be started.
    #[error("cannot start the timer thread: {0}; allow the process more threads")]
    Timer(#[source] io::Error),
}

impl AdmitError {
    pub(crate) fn new(error: NoGrant, class: &str, disk: &str) -> Self {
        match error {
            NoGrant::TimedOut => Self::TimedOut,
            NoGrant::Timer(error) => Self::Timer(error),
            NoGrant::Refused(EnqueueError::Full) => Self::QueueFull { disk: disk.to_owned() },
            NoGrant::Refused(EnqueueError::Class(_)) => Self::removed(class),
            NoGrant::Refused(EnqueueError::TooCostly { op, len }) => {
                Self::TooCostly { op, len, disk: disk.to_owned() }
            }
        }
    }

    #[cold]
    pub(crate) fn removed(class: &str) -> Self {
        Self::ClassRemoved { class: class.to_owned() }
    }

    #[cold]
    pub(crate) fn no_shard(error: GroupFull, disk: &str) -> Self {
        Self::NoShard { disk: disk.to_owned(), shards_max: error.shards_max }
    }
}

impl From<AdmitError> for io::Error {
    fn from(error: AdmitError) -> Self {
        let kind = match &error {
            AdmitError::TimedOut => io::ErrorKind::TimedOut,
            AdmitError::QueueFull { .. } => io::ErrorKind::QuotaExceeded,
            AdmitError::Timer(cause) | AdmitError::Lookup(cause) => cause.kind(),
            AdmitError::NoShard { .. } | AdmitError::Forked(_) => io::ErrorKind::Other,
            AdmitError::ZeroLength { .. }
            | AdmitError::TooLong { .. }
            | AdmitError::TooCostly { .. }
            | AdmitError::SeveralParts { .. }
            | AdmitError::OtherScheduler { .. }
            | AdmitError::ClassRemoved { .. } => io::ErrorKind::InvalidInput,
        };
        Self::new(kind, error)
    }
}

forebay_core::debug_as_display!(AdmitError);
