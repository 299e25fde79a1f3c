//! A driver's I/O queues, and whose parts are in them.

use forebay_core::{IoQueue, Ticket, Time};

use crate::request::PartId;

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
