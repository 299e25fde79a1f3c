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
    /// No bytes, for another operation than a flush.
    #[error("{op:?} of 0 bytes: give at least 1 byte; only a flush has no length")]
    ZeroLength {
        /// The operation.
        op: Op,
    },
    /// More bytes than any file has.
    #[error("a {op:?} of {len} bytes: no file has more than 2^63 - 1; give the length of one I/O")]
    TooLong {
        /// The operation.
        op: Op,
        /// The length asked for, in bytes.
        len: u64,
    },
    /// So long that the disk would be closed to everybody else for more than
    /// 60 s, by what it is known to do.
    #[error(
        "a {op:?} of {len} bytes takes the disk `{disk}` more than {} s: split it, into 128 KiB or \
         a few times that",
        REQUEST_COST_MAX.as_nanos_ceil() / 1_000_000_000
    )]
    TooCostly {
        /// The operation.
        op: Op,
        /// The length asked for, in bytes.
        len: u64,
        /// The disk.
        disk: String,
    },
    /// Larger than the disk should do at a time, and not to be done in parts.
    #[error(
        "a {op:?} of {len} bytes would delay all others: give the disk `{disk}` at most {most} \
         bytes at a time; split it (AdmitFor::in_parts)"
    )]
    SeveralParts {
        /// The operation.
        op: Op,
        /// The length asked for, in bytes.
        len: u64,
        /// What the disk should get at a time, in bytes.
        most: u64,
        /// The disk.
        disk: String,
    },
    /// The class was removed.
    #[error("the class `{class}` was removed; ask in another class")]
    ClassRemoved {
        /// Its name.
        class: String,
    },
    /// More requests wait than the queue holds.
    #[error(
        "the disk `{disk}` has as many queued and executing requests as \
         SchedulerBuilder::requests_max allows: wait for some"
    )]
    QueueFull {
        /// The disk.
        disk: String,
    },
    /// There is no room for a queue that hands out permits.
    #[error(
        "the disk `{disk}` has as many queues as it may have ({shards_max}): allow more with \
         SchedulerBuilder::shards_max"
    )]
    NoShard {
        /// The disk.
        disk: String,
        /// How many queues it may have.
        shards_max: usize,
    },
    /// The disk of the permit's target cannot be looked up.
    #[error("cannot find the disk of the file that the permit is for: {0}")]
    Lookup(#[source] io::Error),
    /// What the permit is for is on a disk of another scheduler.
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
    /// This is a child of the process that made the scheduler.
    #[error(transparent)]
    Forked(#[from] Forked),
    /// The time given has passed.
    #[error("no permit was granted before the timeout; ask again, or use a longer one")]
    TimedOut,
    /// The thread that wakes waiting tasks cannot be started.
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
