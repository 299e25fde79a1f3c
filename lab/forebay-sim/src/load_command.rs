//! What a simulated shard has its driver do.

use forebay_core::{Op, Place};
use forebay_driver::{Command as DriverCommand, Rest};

use crate::disk::Command;

/// A direct transfer that ends within a block of this many bytes ends at the end of the file.
const BLOCK: u64 = 512;

/// A command of a request of the load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LoadCommand {
    /// The key of its request.
    pub(crate) request: usize,
    /// What the disk is asked.
    pub(crate) io: Command,
    /// Of a discard, how many the disk gets.
    pub(crate) commands: u32,
    /// The key of what its owner holds until it is done.
    pub(crate) held: Option<usize>,
}

/// Why a command failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CommandError {
    /// The disk could not do it.
    Failed,
    /// The kernel could not do it now.
    Again,
    /// It was cancelled.
    Cancelled,
    /// The disk took none of its bytes.
    NothingWritten,
}

impl DriverCommand for LoadCommand {
    type Error = CommandError;

    fn op(&self) -> Op {
        self.io.op
    }

    fn bytes(&self) -> u64 {
        self.io.len
    }

    fn place(&self) -> Option<Place> {
        self.transfers().then_some(Place { file: 0, offset: self.io.offset })
    }

    fn commands(&self) -> u32 {
        self.commands
    }

    fn transfers(&self) -> bool {
        matches!(self.io.op, Op::Read | Op::Write)
    }

    /// What is asked for by a holder is asked for in one piece.
    fn part_alignment(&self) -> Option<u64> {
        (self.transfers() && self.held.is_none()).then_some(1)
    }

    fn transfer_alignment(&self) -> u64 {
        BLOCK
    }

    fn split_off(&mut self, at: u64) -> Option<Rest<Self>> {
        if at == 0 || at >= self.io.len {
            return None;
        }
        let Command { op, offset, len } = self.io;
        self.io.len = at;
        let io = Command { op, offset: offset + at, len: len - at };
        Some(Rest { command: Self { io, ..*self }, cuts_buffer: true })
    }

    fn unsplit(&mut self, rest: Rest<Self>) {
        self.io.len += rest.command.io.len;
    }

    fn is_transient(error: &CommandError) -> bool {
        *error == CommandError::Again
    }

    fn cancelled() -> CommandError {
        CommandError::Cancelled
    }

    fn nothing_written() -> CommandError {
        CommandError::NothingWritten
    }
}
