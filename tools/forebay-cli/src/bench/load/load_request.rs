//! The requests under way on a thread.

use forebay_core::{Op, Time};

/// A request of a job, from its enqueueing until it is done.
#[derive(Debug)]
pub(super) struct LoadRequest {
    /// The position of the job among those of the thread.
    pub(super) job: usize,
    pub(super) fiber: u32,
    pub(super) op: Op,
    /// Where it begins, from the beginning of the job's data; for an unlink the number of the file.
    pub(super) offset: u64,
    pub(super) len: u64,
    pub(super) intended: Time,
    pub(super) enqueued: Time,
    /// For how long the last of its operations waited for the disk: what comes after is the disk's
    /// time alone.
    pub(super) queue_nanos: u64,
    /// Operations that are not done: there are several where one has not enough segments.
    pub(super) operations_left: u64,
    pub(super) ok: bool,
}
