//! Putting requests into the I/O queue, in parts if need be.

use forebay_core::{Access, EnqueueError, Join, Parts, Ticket, Time};

use crate::class::QueueClass;
use crate::command::{Command, Rest};
use crate::driver::Driver;
use crate::request::{OperationId, Part, Request};

impl<C: Command> Driver<C> {
    /// Queues an operation that was made at `now` or before, in the queue of
    /// its class. What it is known by until its completion has been taken.
    ///
    /// # Errors
    /// The command comes back with the reason why the queue did not take it.
    pub fn submit(
        &mut self,
        now: Time,
        class: QueueClass,
        mut command: C,
    ) -> Result<OperationId, (EnqueueError, C)> {
        let mut parts = self.parts_of(class, &command);
        let (first, others) = match self.enqueue(now, class, &command, parts.clone()) {
            Ok(tickets) => tickets,
            Err(error) => return Err((error, command)),
        };
        let transfer_len = if command.transfers() { command.bytes() } else { 0 };
        let join = Join::new(&parts);
        let range = parts.next().unwrap_or_default();
        let mut rest = if others.is_empty() { None } else { command.split_off(range.1) };
        let (id, part) = self.table.insert(
            Request::new(now, class, transfer_len, join),
            Part::new(first, range, Rest::whole(command)),
        );
        self.queues[class.queue].keep(first, part);
        for (ticket, range) in others.into_iter().zip(parts) {
            let Some(mut piece) = rest else {
                self.report_invariant("a command cannot be cut where its parts begin");
                self.queues[class.queue].io.cancel(now, ticket);
                if let Some(request) = self.table.request(id) {
                    request.part_ended(range.0, range.1, Ok(0));
                }
                rest = None;
                continue;
            };
            rest = piece.command.split_off(range.1);
            let part = self.table.add(id, Part::new(ticket, range, piece));
            self.queues[class.queue].keep(ticket, part);
        }
        Ok(id)
    }

    /// How a request is cut: into parts that each cost at most what may wait
    /// in the disk, and that its file takes.
    fn parts_of(&mut self, class: QueueClass, command: &C) -> Parts {
        let len = command.bytes();
        if len == 0 {
            return Parts::new(1, 1);
        }
        let Some(alignment) = command.part_alignment() else { return Parts::new(len, len) };
        let parts = self.queues[class.queue].io.split(class.id, command.op(), len);
        let first = parts.clone().next().map_or(len, |(_, len)| len);
        if first >= alignment { parts } else { Parts::new(len, alignment) }
    }

    /// Queues all parts of a request, or none. The tickets of the first, and
    /// of the others: most have none.
    fn enqueue(
        &mut self,
        now: Time,
        class: QueueClass,
        command: &C,
        mut parts: Parts,
    ) -> Result<(Ticket, Vec<Ticket>), EnqueueError> {
        let (op, place, is_range) = (command.op(), command.place(), command.bytes() > 0);
        let commands = command.commands();
        let queue = &mut self.queues[class.queue].io;
        let mut enqueue = |(at, len): (u64, u64)| {
            let len = if is_range { len } else { 0 };
            let access = Access { op, place: place.map(|place| place.plus(at)), commands };
            if class.holder {
                queue.enqueue_nested(now, class.id, access, len)
            } else {
                queue.enqueue(now, class.id, access, len)
            }
        };
        let first = enqueue(parts.next().unwrap_or_default())?;
        let mut others = Vec::new();
        for part in parts {
            match enqueue(part) {
                Ok(ticket) => others.push(ticket),
                Err(error) => {
                    for ticket in std::iter::once(first).chain(others) {
                        queue.cancel(now, ticket);
                    }
                    return Err(error);
                }
            }
        }
        Ok((first, others))
    }
}
