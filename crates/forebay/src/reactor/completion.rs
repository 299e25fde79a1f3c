//! What comes of a shard's operations.

use std::io;

use forebay_driver::{OperationId, Resent};

use crate::engine::{Operation, Retries};

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

/// What a shard did more than once, reads and writes apart, and what never
/// should have happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShardCounters {
    /// Tried without blocking in vain: see
    /// [`Engine::retries`](crate::engine::Engine::retries).
    pub would_block: Retries,
    /// The rest requested again after a short transfer.
    pub short_transfers: Retries,
    /// Requested again because the kernel said so (`EAGAIN`, `EINTR`).
    pub transient_errors: Retries,
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
