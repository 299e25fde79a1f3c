//! The operations of a shard that are under way.

use std::io;

use forebay_core::{ClassId, Join, Op, Parts, Ticket, Time};

use super::outcome::{Finished, OperationId};
use super::pieces::{self, Piece};
use crate::engine::Operation;

/// An operation from its submission until it is finished.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) generation: u32,
    /// The number of the stream that its parts are in.
    pub(super) stream: usize,
    /// Bytes that it transfers; zero for those that transfer none.
    transfer_len: u64,
    join: Join<io::Error>,
    /// Of an operation that transfers nothing: why it failed, if it did.
    failure: Option<io::Error>,
    /// All of its parts, also those that are done.
    pub(super) tickets: Tickets,
    /// What is done of it, with its place in the request; most have one part.
    done: Option<(u64, Piece)>,
    done_besides: Vec<(u64, Piece)>,
    pub(super) cancelled: bool,
    pub(super) enqueued: Time,
    /// When its last part was dispatched.
    pub(super) dispatched: Time,
    /// When its last part ended.
    pub(super) ended: Option<Time>,
}

/// The tickets of a request's parts; most have one.
#[derive(Debug)]
pub(super) struct Tickets {
    pub(super) first: Ticket,
    pub(super) others: Vec<Ticket>,
}

/// A part of a request, which the I/O queue and the engine take for a request.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) ticket: Ticket,
    pub(super) class: ClassId,
    /// The key of its request.
    pub(super) request: usize,
    /// Where in the request it begins, and its length.
    pub(super) at: u64,
    pub(super) len: u64,
    /// Bytes of it that were transferred.
    pub(super) done: u64,
    pub(super) tries: u32,
    /// What is left of it, unless the engine has it.
    pub(super) operation: Option<Operation>,
    /// Of what is left: see [`Piece`].
    pub(super) continues: bool,
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

impl Request {
    pub(super) fn new(
        operation: &Operation,
        (tickets, parts): (Tickets, &Parts),
        (generation, stream): (u32, usize),
        now: Time,
    ) -> Self {
        let whole = parts.clone().map(|(_, len)| len).sum();
        Self {
            generation,
            stream,
            transfer_len: if transfers(operation) { whole } else { 0 },
            join: Join::new(parts),
            failure: None,
            tickets,
            done: None,
            done_besides: Vec::new(),
            cancelled: false,
            enqueued: now,
            dispatched: now,
            ended: None,
        }
    }

    /// Keeps what is done, from `at` on.
    pub(super) fn keep(&mut self, at: u64, piece: Piece) {
        match &self.done {
            None => self.done = Some((at, piece)),
            Some(_) => self.done_besides.push((at, piece)),
        }
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
    pub(super) fn finish(mut self, key: usize) -> Option<Finished> {
        let whole = self.whole()?;
        let result = match self.failure {
            Some(error) => Err(error),
            // No more than the length of a buffer.
            None => self.join.finish().map(|bytes| bytes.min(self.transfer_len) as usize),
        };
        let ended = self.ended?;
        Some(Finished {
            id: OperationId::new(key, self.generation),
            result,
            operation: whole.operation,
            queue_nanos: self.dispatched.nanos_since(self.enqueued),
            disk_nanos: ended.nanos_since(self.dispatched),
        })
    }
}

impl Request {
    /// All that was kept, in one piece.
    fn whole(&mut self) -> Option<Piece> {
        let one = self.done.take()?;
        if self.done_besides.is_empty() {
            return Some(one.1);
        }
        self.done_besides.push(one);
        self.done_besides.sort_by_key(|(at, _)| *at);
        self.done_besides.drain(..).map(|(_, piece)| piece).reduce(|mut front, piece| {
            front.unsplit(piece);
            front
        })
    }
}

impl Tickets {
    pub(super) fn get(&self, number: usize) -> Option<Ticket> {
        match number.checked_sub(1) {
            None => Some(self.first),
            Some(number) => self.others.get(number).copied(),
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Ticket> {
        std::iter::once(self.first).chain(self.others.iter().copied())
    }
}
