//! The operations of a shard that are under way.

use std::io;

use forebay_core::{Join, Op, Parts, Ticket, Time};

use super::outcome::{Finished, OperationId};
use super::pieces::{self, Piece};
use crate::engine::Operation;
use crate::streams::StreamClass;

/// An operation from its submission until it is finished.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) generation: u32,
    pub(super) class: StreamClass,
    /// Bytes that it transfers; zero for those that transfer none.
    transfer_len: u64,
    join: Join<io::Error>,
    /// Of an operation that transfers nothing: why it failed, if it did.
    failure: Option<io::Error>,
    /// Its first part; most have no other.
    part: Part,
    besides: Option<Box<Besides>>,
    pub(super) cancelled: bool,
    enqueued: Time,
    /// When its last part was dispatched.
    pub(super) dispatched: Time,
    /// When its last part ended.
    pub(super) ended: Option<Time>,
}

/// What few requests have.
#[derive(Debug, Default)]
struct Besides {
    parts: Vec<Part>,
    /// What is done of parts that are not, with its place in the request.
    done: Vec<(u64, Piece)>,
}

/// A part of a request, which the I/O queue and the engine take for a request.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) ticket: Ticket,
    /// Where in the request it begins, and its length.
    pub(super) at: u64,
    pub(super) len: u64,
    /// Bytes of it that were transferred before what is left.
    pub(super) done: u64,
    pub(super) tries: u32,
    /// Whether it has ended.
    pub(super) is_over: bool,
    /// Of what is left: see [`Piece`].
    pub(super) continues: bool,
    /// What is left of it, unless the engine has it.
    pub(super) operation: Option<Operation>,
}

/// Names a part: the key of its request, and its number there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PartId {
    pub(super) request: u32,
    pub(super) number: u32,
}

impl PartId {
    /// What the engine knows it by.
    pub(super) const fn to_bits(self) -> u64 {
        (self.number as u64) << 32 | self.request as u64
    }

    pub(super) const fn from_bits(bits: u64) -> Self {
        Self { request: bits as u32, number: (bits >> 32) as u32 }
    }
}

/// What is asked of the disk by `operation`.
pub(super) fn op_of(operation: &Operation) -> Op {
    match operation {
        Operation::Read { .. } | Operation::ReadVectored { .. } => Op::Read,
        Operation::SyncData { .. } | Operation::SyncAll { .. } => Op::Flush,
        Operation::PunchHole { .. } | Operation::Unlink { .. } => Op::Discard,
        // A change of metadata is a small write.
        _ => Op::Write,
    }
}

/// What is asked of the disk by `operation`, and how many bytes it is about.
pub(crate) fn asked(operation: &Operation) -> (Op, u64) {
    (op_of(operation), pieces::len(operation))
}

/// Whether `operation` moves data.
pub(super) const fn transfers(operation: &Operation) -> bool {
    matches!(
        operation,
        Operation::Read { .. }
            | Operation::Write { .. }
            | Operation::ReadVectored { .. }
            | Operation::WriteVectored { .. }
    )
}

impl Part {
    pub(super) fn new(ticket: Ticket, (at, len): (u64, u64), piece: Piece) -> Self {
        let Piece { operation, continues } = piece;
        let operation = Some(operation);
        Self { ticket, at, len, done: 0, tries: 0, is_over: false, continues, operation }
    }

    /// What is left of it, with its place in the request.
    fn take(&mut self) -> Option<(u64, Piece)> {
        let operation = self.operation.take()?;
        Some((self.at + self.done, Piece { operation, continues: self.continues }))
    }
}

impl Request {
    /// A request of `parts`, of which the first is `part`; the others are to
    /// be added.
    pub(super) fn new(
        (generation, class): (u32, StreamClass),
        transfer_len: u64,
        parts: &Parts,
        part: Part,
        now: Time,
    ) -> Self {
        Self {
            generation,
            class,
            transfer_len,
            join: Join::new(parts),
            failure: None,
            part,
            besides: None,
            cancelled: false,
            enqueued: now,
            dispatched: now,
            ended: None,
        }
    }

    pub(super) fn add(&mut self, part: Part) {
        self.besides.get_or_insert_default().parts.push(part);
    }

    pub(super) fn part_mut(&mut self, number: u32) -> Option<&mut Part> {
        match number.checked_sub(1) {
            None => Some(&mut self.part),
            Some(number) => self.besides.as_mut()?.parts.get_mut(number as usize),
        }
    }

    /// Keeps what is done, from `at` on, of a part that is not.
    pub(super) fn keep(&mut self, at: u64, piece: Piece) {
        self.besides.get_or_insert_default().done.push((at, piece));
    }

    /// Takes the outcome of a part. Returns whether it was the last.
    pub(super) fn part_done(&mut self, at: u64, len: u64, outcome: io::Result<u64>) -> bool {
        let outcome = match outcome {
            Err(error) if self.transfer_len == 0 => {
                self.failure.get_or_insert(error);
                Ok(len)
            }
            outcome => outcome,
        };
        self.join.part_done(at, len, outcome)
    }

    /// The whole operation with its outcome, once every part is done; `None`
    /// if none ever was. `key` is where it was kept.
    pub(super) fn finish(&mut self, key: usize) -> Option<Finished> {
        let operation = self.whole()?;
        let result = match self.failure.take() {
            Some(error) => Err(error),
            // No more than the length of a buffer.
            None => self.join.finish().map(|bytes| bytes.min(self.transfer_len) as usize),
        };
        let ended = self.ended?;
        Some(Finished {
            id: OperationId::new(key, self.generation),
            result,
            operation,
            queue_nanos: self.dispatched.nanos_since(self.enqueued),
            disk_nanos: ended.nanos_since(self.dispatched),
        })
    }

    /// All of it, in one piece.
    fn whole(&mut self) -> Option<Operation> {
        let Some(besides) = self.besides.take() else { return self.part.operation.take() };
        let Besides { mut parts, done: mut pieces } = *besides;
        pieces.extend(self.part.take());
        pieces.extend(parts.iter_mut().filter_map(Part::take));
        pieces.sort_by_key(|(at, _)| *at);
        let whole = pieces.into_iter().map(|(_, piece)| piece).reduce(|mut front, piece| {
            front.unsplit(piece);
            front
        })?;
        Some(whole.operation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_known_again_when_the_engine_is_done() {
        let id = PartId { request: u32::MAX, number: 1 };
        assert_eq!(PartId::from_bits(id.to_bits()), id);
    }
}
