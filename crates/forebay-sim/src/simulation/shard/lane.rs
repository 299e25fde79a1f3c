//! A shard's I/O queue, and what is under way in it.

use forebay_core::{ClassId, IoQueue, Op, Ticket, Time};

use super::commands::Part;

/// A shard's place in one I/O group.
#[derive(Debug)]
pub(crate) struct Lane {
    pub(crate) queue: IoQueue,
    /// By the index of their tickets.
    pub(super) parts: Vec<Option<Part>>,
}

impl Lane {
    pub(super) fn new(queue: IoQueue) -> Self {
        Self { queue, parts: Vec::new() }
    }

    /// The number of the lane for requests of this kind, of so many.
    pub(super) fn number_for(op: Op, lanes: usize) -> usize {
        if op == Op::Read { 0 } else { lanes - 1 }
    }

    /// Queues a part whose ticket `part` makes; `None` if the queue does not take it.
    pub(super) fn enqueue(
        &mut self,
        now: Time,
        (class, op, len): (ClassId, Op, u64),
        part: impl FnOnce(Ticket) -> Part,
    ) -> Option<Ticket> {
        let ticket = self.queue.enqueue(now, class, op, len).ok()?;
        Some(self.keep(ticket, part))
    }

    /// [`Lane::enqueue`] for an owner who holds another part.
    pub(super) fn enqueue_for_holder(
        &mut self,
        now: Time,
        (class, op, len): (ClassId, Op, u64),
        part: impl FnOnce(Ticket) -> Part,
    ) -> Option<Ticket> {
        let ticket = self.queue.enqueue_for_holder(now, class, op, len).ok()?;
        Some(self.keep(ticket, part))
    }

    fn keep(&mut self, ticket: Ticket, part: impl FnOnce(Ticket) -> Part) -> Ticket {
        let index = ticket.index();
        if self.parts.len() <= index {
            self.parts.resize(index + 1, None);
        }
        self.parts[index] = Some(part(ticket));
        ticket
    }

    /// The part with a ticket of this index.
    pub(super) fn part_mut(&mut self, index: usize) -> Option<&mut Part> {
        self.parts.get_mut(index)?.as_mut()
    }

    /// Whether there is a part with a ticket of this index.
    pub(super) fn has(&self, index: usize) -> bool {
        self.parts.get(index).is_some_and(Option::is_some)
    }

    /// Forgets the part with a ticket of this index.
    pub(super) fn take(&mut self, index: usize) -> Option<Part> {
        self.parts.get_mut(index)?.take()
    }

    /// Takes back all that still waits.
    pub(super) fn cancel_all(&mut self, now: Time) {
        for part in self.parts.iter().flatten() {
            self.queue.cancel(now, part.ticket);
        }
    }
}
