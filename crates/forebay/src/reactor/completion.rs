//! The completions of a shard's operations.

use std::io;

use forebay_driver::{OperationId, Resent};

use crate::engine::{Operation, Retries};

/// A completed operation.
#[derive(Debug)]
pub struct Completion {
    /// The id of the operation.
    pub id: OperationId,
    /// The number of bytes transferred, or the error. There are fewer bytes than requested at the
    /// end of the file, or if a later part of a large request failed; 0 for operations that
    /// transfer none. The error is `ECANCELED` if it was cancelled.
    pub result: io::Result<usize>,
    /// The operation as it was submitted, with its buffers.
    pub operation: Operation,
    /// The time from its submission to the dispatch of its last part, in nanoseconds.
    pub queue_nanos: u64,
    /// The time from that dispatch to its end, in nanoseconds.
    pub disk_nanos: u64,
}

/// Counters of a shard's repeated operations, separately for reads and writes, and of broken
/// invariants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShardCounters {
    /// Failed attempts without blocking: see [`Engine::retries`](crate::engine::Engine::retries).
    pub would_block: Retries,
    /// Requests for the rest after a short transfer.
    pub short_transfers: Retries,
    /// Repetitions after temporary errors of the kernel (`EAGAIN`, `EINTR`).
    pub transient_errors: Retries,
    /// The number of broken invariants. Each is a bug of this library. The first one is logged.
    pub bugs: u64,
}

impl Completion {
    pub(super) fn of(driven: forebay_driver::Completion<Operation>) -> Self {
        let forebay_driver::Completion { id, result, command, enqueued, dispatched, ended } =
            driven;
        Self {
            id,
            // The number is at most the length of a buffer.
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
