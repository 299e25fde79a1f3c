//! What an answer of the engine means for a part of a request.

use std::io;

use rustix::io::Errno;

use super::request::{Part, transfers};
use crate::engine::{Operation, Retries};

/// So often a part is requested again because the kernel says so.
const TRIES_MAX: u32 = 16;

/// What becomes of a part.
pub(super) enum Ending {
    /// The rest is to be requested, after so many bytes.
    Rest(u64),
    /// All of what the engine had is to be requested again.
    Again,
    /// It has ended, with so many bytes in all.
    Done(io::Result<u64>),
}

impl Ending {
    /// Of `part`, of which the engine had `operation`.
    pub(super) fn of(
        part: &Part,
        cancelled: bool,
        operation: &Operation,
        result: io::Result<usize>,
    ) -> Self {
        match result {
            Ok(_) if !transfers(operation) => Self::Done(Ok(part.len)),
            Ok(bytes) => Self::of_transfer(part, cancelled, operation, bytes as u64),
            Err(error) if is_passing(&error) && part.tries < TRIES_MAX && !cancelled => Self::Again,
            Err(_) if part.done > 0 => Self::Done(Ok(part.done)),
            Err(error) => Self::Done(Err(error)),
        }
    }

    fn of_transfer(part: &Part, cancelled: bool, operation: &Operation, bytes: u64) -> Self {
        let done = part.done + bytes;
        let (reads, alignment) = match operation {
            Operation::Read { file, .. } | Operation::ReadVectored { file, .. } => {
                (true, file.offset_alignment() as u64)
            }
            Operation::Write { file, .. } | Operation::WriteVectored { file, .. } => {
                (false, file.offset_alignment() as u64)
            }
            _ => (false, 1),
        };
        if done == 0 && operation.transfer_len() > 0 && !reads {
            return Self::Done(Err(io::ErrorKind::WriteZero.into()));
        }
        // A direct transfer that ends within a block ends at the end of the
        // file, and could not go on from there.
        let is_over = done >= part.len || bytes == 0 || !bytes.is_multiple_of(alignment);
        if is_over || cancelled { Self::Done(Ok(done)) } else { Self::Rest(bytes) }
    }
}

/// Adds one to the reads or the writes.
pub(super) fn count(retries: &mut Retries, operation: &Operation) {
    match operation {
        Operation::Read { .. } | Operation::ReadVectored { .. } => retries.reads += 1,
        _ => retries.writes += 1,
    }
}

fn is_passing(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::AGAIN | Errno::INTR))
}
