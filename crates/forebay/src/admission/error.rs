//! Why a permit was not granted.

use std::io;

use forebay_core::{EnqueueError, GroupFull, Op};

use super::NoGrant;

/// Why a permit was not granted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AdmitError {
    /// A length that the operation cannot have.
    #[error("a {op:?} of 0 bytes: give at least 1 byte; only a flush has none")]
    Length {
        /// The operation.
        op: Op,
    },
    /// The class was removed.
    #[error("the class `{class}` was removed; ask in another class")]
    ClassRemoved {
        /// Its name.
        class: String,
    },
    /// More requests wait than the queue holds.
    #[error(
        "as many requests wait for the disk `{disk}` or are in it as SchedulerBuilder::requests_max \
         allows: wait for some"
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
    /// The time given has passed.
    #[error("no permit within the time given; ask again, or give more time")]
    TimedOut,
    /// The thread that wakes waiting tasks cannot be started.
    #[error("cannot start the timer thread: {0}; allow the process more threads")]
    Timer(#[source] io::Error),
}

impl AdmitError {
    pub(super) fn new(error: NoGrant, class: &str, disk: &str) -> Self {
        match error {
            NoGrant::TimedOut => Self::TimedOut,
            NoGrant::Timer(error) => Self::Timer(error),
            NoGrant::Refused(EnqueueError::Full) => Self::QueueFull { disk: disk.to_owned() },
            NoGrant::Refused(EnqueueError::Class(_)) => Self::removed(class),
        }
    }

    pub(super) fn removed(class: &str) -> Self {
        Self::ClassRemoved { class: class.to_owned() }
    }

    pub(super) fn no_shard(error: GroupFull, disk: &str) -> Self {
        Self::NoShard { disk: disk.to_owned(), shards_max: error.shards_max }
    }
}
