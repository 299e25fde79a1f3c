//! Putting operations into the I/O queue, in parts if need be.

use forebay_core::{Parts, Time};

use super::operations::Operations;
use super::outcome::{OperationId, SubmitError};
use super::pieces::Piece;
use super::request::{Part, Request, Tickets, op_of};
use crate::engine::Operation;
use crate::streams::StreamClass;

impl Operations {
    /// Queues an operation that was made at `now` or before.
    pub(crate) fn submit(
        &mut self,
        now: Time,
        class: StreamClass,
        operation: Operation,
    ) -> Result<OperationId, (SubmitError, Operation)> {
        if let Err(error) = operation.check() {
            return Err((error.into(), operation));
        }
        let piece = Piece::whole(operation);
        let parts = self.parts_of(class, &piece);
        let tickets = match self.enqueue(now, class, &piece, &parts) {
            Ok(tickets) => tickets,
            Err(error) => return Err((error, piece.operation)),
        };
        self.generation = self.generation.wrapping_add(1);
        let generation = self.generation;
        let request =
            Request::new(&piece.operation, (tickets, &parts), (generation, class.stream), now);
        let entry = self.requests.vacant_entry();
        let key = entry.key();
        let request = entry.insert(request);
        let mut rest = Some(piece);
        for (ticket, (at, len)) in request.tickets.iter().zip(parts) {
            let Some(mut piece) = rest else { break };
            rest = piece.split_off(len);
            let Piece { operation, continues } = piece;
            let operation = Some(operation);
            let part = Part {
                ticket,
                class: class.id,
                request: key,
                at,
                len,
                done: 0,
                tries: 0,
                operation,
                continues,
            };
            self.streams[class.stream].keep(part);
        }
        Ok(OperationId::new(key, generation))
    }

    /// How a request is cut: into parts that each cost at most what may wait
    /// in the disk, and that its file takes.
    fn parts_of(&mut self, class: StreamClass, piece: &Piece) -> Parts {
        let len = piece.len();
        if len == 0 {
            return Parts::new(1, 1);
        }
        let parts = self.streams[class.stream].queue.split(class.id, op_of(&piece.operation), len);
        let first = parts.clone().next().map_or(len, |(_, len)| len);
        let alignment = alignment_of(&piece.operation);
        if first >= alignment { parts } else { Parts::new(len, alignment) }
    }

    /// Queues all parts of a request, or none.
    fn enqueue(
        &mut self,
        now: Time,
        class: StreamClass,
        piece: &Piece,
        parts: &Parts,
    ) -> Result<Tickets, SubmitError> {
        let (op, is_range) = (op_of(&piece.operation), piece.len() > 0);
        let queue = &mut self.streams[class.stream].queue;
        let mut tickets: Option<Tickets> = None;
        for (_, len) in parts.clone() {
            let len = if is_range { len } else { 0 };
            match (queue.enqueue(now, class.id, op, len), &mut tickets) {
                (Ok(ticket), Some(tickets)) => tickets.others.push(ticket),
                (Ok(first), none) => *none = Some(Tickets { first, others: Vec::new() }),
                (Err(error), queued) => {
                    for ticket in queued.iter().flat_map(Tickets::iter) {
                        queue.cancel(now, ticket);
                    }
                    return Err(error.into());
                }
            }
        }
        tickets.ok_or(SubmitError::Full)
    }
}

/// What parts of `operation` must be multiples of, in bytes.
fn alignment_of(operation: &Operation) -> u64 {
    match operation {
        Operation::Read { file, .. }
        | Operation::Write { file, .. }
        | Operation::ReadVectored { file, .. }
        | Operation::WriteVectored { file, .. }
        | Operation::PunchHole { file, .. } => file.offset_alignment() as u64,
        _ => 1,
    }
}
