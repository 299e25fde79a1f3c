//! A shard's I/O queue, and what is under way in it.

use forebay_core::{ClassId, IoQueue, Op, Time};

use super::request::Part;
use crate::bench::scheduler::Place;

/// A shard's place in one I/O group. There are two where reads and writes have a budget each.
#[derive(Debug)]
pub(in crate::bench) struct Lane {
    pub(in crate::bench) queue: IoQueue,
    classes: Vec<ClassId>,
    /// By the index of their tickets.
    parts: Vec<Option<Part>>,
}

impl Lane {
    pub(in crate::bench) fn new(place: Place) -> Self {
        let Place { queue, classes } = place;
        Self { queue, classes, parts: Vec::new() }
    }

    /// The number of the lane for requests of this kind, of `lanes`.
    pub(super) fn number_for(op: Op, lanes: &[Self]) -> usize {
        if op == Op::Read { 0 } else { lanes.len().saturating_sub(1) }
    }

    /// The lane for requests of this kind.
    pub(in crate::bench) fn for_op(lanes: &mut [Self], op: Op) -> Option<&mut Self> {
        lanes.get_mut(Self::number_for(op, lanes))
    }

    /// The class of the job file with this index.
    pub(in crate::bench) fn class(&self, index: usize) -> Option<ClassId> {
        self.classes.get(index).copied()
    }

    /// Queues a part whose ticket `part` makes; `false` if the queue does not take it.
    pub(super) fn enqueue(
        &mut self,
        now: Time,
        (class, op, len): (ClassId, Op, u64),
        part: impl FnOnce(forebay_core::Ticket) -> Part,
    ) -> bool {
        let Ok(ticket) = self.queue.enqueue(now, class, op, len) else { return false };
        let index = ticket.index();
        if self.parts.len() <= index {
            self.parts.resize(index + 1, None);
        }
        self.parts[index] = Some(part(ticket));
        true
    }

    /// The part with a ticket of this index.
    pub(super) fn part(&self, index: usize) -> Option<Part> {
        self.parts.get(index).copied().flatten()
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
