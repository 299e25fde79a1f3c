//! Classes, and the queues that their requests are in.

use forebay_core::{ClassId, Op};

/// Most queues of a driver.
pub const QUEUES_MAX: usize = 2;

/// The number of the queue for such requests, of this many (at least 1): one is
/// for all, of two the first is for reads.
pub const fn queue_for(op: Op, queues: usize) -> usize {
    if matches!(op, Op::Read) { 0 } else { queues - 1 }
}

/// A class as one of the queues knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueClass {
    /// The number of the queue.
    pub queue: usize,
    /// The class there.
    pub id: ClassId,
    /// The caller holds another request until this one is done.
    pub holder: bool,
}

impl QueueClass {
    /// A small number, unique among the classes of a disk: for tables.
    pub fn index(self) -> usize {
        self.id.index() * QUEUES_MAX + self.queue
    }
}
