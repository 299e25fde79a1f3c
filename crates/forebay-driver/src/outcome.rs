//! What an answer of the engine means for a part of a request.

use forebay_core::Op;

use crate::command::Command;
use crate::request::Part;

/// So often a part is tried again because it failed for the moment.
const TRIES_MAX: u32 = 16;

/// What becomes of a part.
pub(crate) enum Outcome<E> {
    /// The rest is to be sent, after this many bytes.
    Rest(u64),
    /// All of what the engine had is to be sent again.
    Again,
    /// It has ended, with this many bytes in all.
    Over(Result<u64, E>),
}

impl<E> Outcome<E> {
    /// Of `part`, of which the engine had `command`.
    pub(crate) fn of<C: Command<Error = E>>(
        part: &Part<C>,
        cancelled: bool,
        command: &C,
        result: Result<u64, E>,
    ) -> Self {
        match result {
            Ok(_) if !command.transfers() => Self::Over(Ok(part.len)),
            Ok(bytes) => Self::of_transfer(part, cancelled, command, bytes),
            Err(error) if C::is_transient(&error) && part.tries < TRIES_MAX && !cancelled => {
                Self::Again
            }
            Err(_) if part.done > 0 => Self::Over(Ok(part.done)),
            Err(error) => Self::Over(Err(error)),
        }
    }

    fn of_transfer<C: Command<Error = E>>(
        part: &Part<C>,
        cancelled: bool,
        command: &C,
        bytes: u64,
    ) -> Self {
        let done = part.done + bytes;
        if done == 0 && command.bytes() > 0 && command.op() != Op::Read {
            return Self::Over(Err(C::nothing_written()));
        }
        let at_end = bytes == 0 || !bytes.is_multiple_of(command.transfer_alignment());
        if done >= part.len || at_end || cancelled {
            Self::Over(Ok(done))
        } else {
            Self::Rest(bytes)
        }
    }
}
