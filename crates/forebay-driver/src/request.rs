//! Requests under way, and their parts.

use forebay_core::{Join, Ticket, Time};

use crate::class::QueueClass;
use crate::command::{Command, Rest};
use crate::slots::SlotId;

/// Names an operation of one driver, from its submission until its completion
/// has been taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OperationId(pub(crate) SlotId);

impl OperationId {
    /// A small number, unique among the present operations: for tables kept
    /// next to the driver.
    pub const fn index(self) -> usize {
        self.0.index as usize
    }
}

/// Names a part of a request, to the engine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct PartId {
    index: u32,
    /// The generation, and in the lowest bit whether it is the first part, which
    /// has the name of its request.
    tag: u32,
}

impl PartId {
    pub(crate) const fn new(slot: SlotId, is_first: bool) -> Self {
        Self { index: slot.index, tag: slot.generation << 1 | is_first as u32 }
    }

    pub(crate) const fn slot(self) -> SlotId {
        SlotId { index: self.index, generation: self.tag >> 1 }
    }

    pub(crate) const fn is_first(self) -> bool {
        self.tag & 1 == 1
    }

    /// As a number, for engines that take one.
    pub const fn to_bits(self) -> u64 {
        (self.tag as u64) << 32 | self.index as u64
    }

    /// What [`PartId::to_bits`] has made.
    pub const fn from_bits(bits: u64) -> Self {
        Self { index: bits as u32, tag: (bits >> 32) as u32 }
    }
}

/// A request that has ended.
#[derive(Debug)]
pub struct Completion<C: Command> {
    /// What it was known by.
    pub id: OperationId,
    /// Bytes that were transferred from its beginning on without a gap; zero
    /// for what transfers none. Or the error of the first part, where there are
    /// no such bytes.
    pub result: Result<u64, C::Error>,
    /// The command as it was submitted.
    pub command: C,
    /// When it was submitted.
    pub enqueued: Time,
    /// When its last part was dispatched.
    pub dispatched: Time,
    /// When its last part ended.
    pub ended: Time,
}

/// A request from its submission until its completion has been taken, without
/// its parts.
#[derive(Debug)]
pub(crate) struct Request<C: Command> {
    pub(crate) class: QueueClass,
    /// Bytes that it transfers; zero for those that transfer none.
    transfer_len: u64,
    join: Join<C::Error>,
    /// Of a request that transfers nothing: why it failed, if it did.
    failure: Option<C::Error>,
    pub(crate) multi_part: Option<Box<MultiPart<C>>>,
    pub(crate) cancelled: bool,
    enqueued: Time,
    pub(crate) dispatched: Time,
    pub(crate) ended: Option<Time>,
}

/// What few requests have.
#[derive(Debug)]
pub(crate) struct MultiPart<C> {
    /// Its parts after the first.
    pub(crate) parts: Vec<SlotId>,
    /// What is done of parts that are not, with its place in the request.
    pub(crate) done: Vec<Piece<C>>,
}

pub(crate) type Piece<C> = (u64, Rest<C>);

/// A part of a request, which the I/O queue and the engine take for a request.
#[derive(Debug)]
pub(crate) struct Part<C> {
    pub(crate) ticket: Ticket,
    /// Where in the request it begins, and its length.
    pub(crate) at: u64,
    pub(crate) len: u64,
    /// Bytes of it that were transferred before what is left.
    pub(crate) done: u64,
    pub(crate) tries: u32,
    /// Whether it has ended.
    pub(crate) is_over: bool,
    /// Of what is left: as in [`Rest`].
    cuts_buffer: bool,
    /// What is left of it, unless the engine has it.
    pub(crate) command: Option<C>,
}

impl<C: Command> Part<C> {
    #[inline(always)]
    pub(crate) fn new(ticket: Ticket, (at, len): (u64, u64), piece: Rest<C>) -> Self {
        let Rest { command, cuts_buffer } = piece;
        let command = Some(command);
        Self { ticket, at, len, done: 0, tries: 0, is_over: false, cuts_buffer, command }
    }

    /// Splits off `bytes` that are done; `None` if it cannot be cut there.
    pub(crate) fn split_done(&mut self, bytes: u64) -> Option<Piece<C>> {
        let rest = self.command.as_mut()?.split_off(bytes)?;
        let done = self.take_piece()?;
        self.done += bytes;
        self.cuts_buffer = rest.cuts_buffer;
        self.command = Some(rest.command);
        Some(done)
    }

    /// What is left of it, with its place in the request.
    pub(crate) fn take_piece(&mut self) -> Option<Piece<C>> {
        let (command, cuts_buffer) = (self.command.take()?, self.cuts_buffer);
        Some((self.at + self.done, Rest { command, cuts_buffer }))
    }
}

impl<C: Command> Request<C> {
    /// One that transfers this many bytes.
    #[inline(always)]
    pub(crate) const fn new(
        now: Time,
        class: QueueClass,
        transfer_len: u64,
        join: Join<C::Error>,
    ) -> Self {
        Self {
            class,
            transfer_len,
            join,
            failure: None,
            multi_part: None,
            cancelled: false,
            enqueued: now,
            dispatched: now,
            ended: None,
        }
    }

    pub(crate) fn multi_part(&mut self) -> &mut MultiPart<C> {
        self.multi_part
            .get_or_insert_with(|| Box::new(MultiPart { parts: Vec::new(), done: Vec::new() }))
    }

    /// Takes the outcome of a part. Returns whether it was the last.
    pub(crate) fn part_ended(&mut self, at: u64, len: u64, outcome: Result<u64, C::Error>) -> bool {
        let outcome = match outcome {
            Err(error) if self.transfer_len == 0 => {
                self.failure.get_or_insert(error);
                Ok(len)
            }
            outcome => outcome,
        };
        self.join.part_done(at, len, outcome)
    }

    /// What it comes to, with the whole of its command, once every part has
    /// ended.
    pub(crate) fn complete(&mut self, id: OperationId, command: C) -> Option<Completion<C>> {
        let (enqueued, dispatched, ended) = (self.enqueued, self.dispatched, self.ended?);
        let result = match self.failure.take() {
            Some(error) => Err(error),
            None => self.join.finish().map(|bytes| bytes.min(self.transfer_len)),
        };
        Some(Completion { id, result, command, enqueued, dispatched, ended })
    }
}
