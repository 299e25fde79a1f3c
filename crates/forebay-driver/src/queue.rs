//! A driver's I/O queues, and whose parts are in them.

use forebay_core::{ClassId, IoQueue, Op, Ticket, Time};

use crate::request::PartId;

/// Most queues of a driver.
pub const QUEUES_MAX: usize = 2;

/// The number of the queue for such requests, of so many (at least 1): one is
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
    /// Whoever asks holds another request until this one is done.
    pub holder: bool,
}

impl QueueClass {
    /// A small number, unique among the classes of a disk: for tables.
    pub fn index(self) -> usize {
        self.id.index() * QUEUES_MAX + self.queue
    }
}

/// An I/O queue, and the parts that are in it or in the disk.
#[derive(Debug)]
pub(crate) struct Queue {
    pub(crate) io: IoQueue,
    /// By the index of their tickets.
    parts: Vec<PartId>,
    /// When it was last asked what may go.
    pub(crate) asked_at: Time,
}

impl Queue {
    pub(crate) const fn new(io: IoQueue) -> Self {
        Self { io, parts: Vec::new(), asked_at: Time::ZERO }
    }

    /// Notes whose part a ticket is for.
    pub(crate) fn keep(&mut self, ticket: Ticket, part: PartId) {
        let index = ticket.index();
        if self.parts.len() <= index {
            self.parts.resize(index + 1, PartId::default());
        }
        self.parts[index] = part;
    }

    /// The part that is to go to the disk next.
    pub(crate) fn poll_dispatch(&mut self, now: Time) -> Option<PartId> {
        self.asked_at = now;
        let ticket = self.io.poll_dispatch(now)?;
        self.parts.get(ticket.index()).copied()
    }
}
