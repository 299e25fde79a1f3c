//! Putting operations into the I/O queue, in parts if need be.

use forebay_core::{Parts, Ticket, Time};

use super::operations::Operations;
use super::outcome::{OperationId, SubmitError};
use super::pieces::Piece;
use super::request::{Part, PartId, Request, op_of, transfers};
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
        let mut piece = Piece::whole(operation);
        let parts = self.parts_of(class, &piece);
        let (first, others) = match self.enqueue(now, class, &piece, parts.clone()) {
            Ok(tickets) => tickets,
            Err(error) => return Err((error, piece.operation)),
        };
        self.generation = self.generation.wrapping_add(1);
        let generation = self.generation;
        let entry = self.requests.vacant_entry();
        let key = entry.key();
        let stream = &mut self.streams[class.stream];
        let mut id = PartId { request: key as u32, number: 0 };
        stream.keep(first, id);
        let transfer_len = if transfers(&piece.operation) { piece.len() } else { 0 };
        let mut ranges = parts.clone();
        let range = ranges.next().unwrap_or_default();
        let mut rest = if others.is_empty() { None } else { piece.split_off(range.1) };
        let part = Part::new(first, range, piece);
        let request =
            entry.insert(Request::new((generation, class), transfer_len, &parts, part, now));
        for (ticket, range) in others.into_iter().zip(ranges) {
            let Some(mut piece) = rest else { break };
            rest = piece.split_off(range.1);
            id.number += 1;
            stream.keep(ticket, id);
            request.add(Part::new(ticket, range, piece));
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
        if matches!(piece.operation, Operation::Unlink { .. }) {
            return Parts::new(len, len);
        }
        let parts = self.streams[class.stream].queue.split(class.id, op_of(&piece.operation), len);
        let first = parts.clone().next().map_or(len, |(_, len)| len);
        let alignment = alignment_of(&piece.operation);
        if first >= alignment { parts } else { Parts::new(len, alignment) }
    }

    /// Queues all parts of a request, or none. The tickets of the first, and
    /// of the others: most have none.
    fn enqueue(
        &mut self,
        now: Time,
        class: StreamClass,
        piece: &Piece,
        mut parts: Parts,
    ) -> Result<(Ticket, Vec<Ticket>), SubmitError> {
        let (op, is_range) = (op_of(&piece.operation), piece.len() > 0);
        let queue = &mut self.streams[class.stream].queue;
        let mut enqueue = |(_, len): (u64, u64)| {
            let len = if is_range { len } else { 0 };
            if class.holder {
                queue.enqueue_for_holder(now, class.id, op, len)
            } else {
                queue.enqueue(now, class.id, op, len)
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
                    return Err(error.into());
                }
            }
        }
        Ok((first, others))
    }
}

/// What parts of `operation` must be multiples of, in bytes.
fn alignment_of(operation: &Operation) -> u64 {
    match operation {
        Operation::Read { file, .. } | Operation::ReadVectored { file, .. } => {
            file.offset_alignment() as u64
        }
        Operation::Write { file, .. }
        | Operation::WriteVectored { file, .. }
        | Operation::PunchHole { file, .. } => file.write_alignment() as u64,
        _ => 1,
    }
}
