//! The results of requests, in the form that callers get.

use std::io;

use crate::engine::Operation;
use crate::io_thread::{Completion, Timing};
use crate::{AlignedBuf, IoBuf};

/// The result of a read or a write, with its buffer or buffers.
#[derive(Debug)]
#[must_use = "it may be an error"]
pub struct BufResult<B>(
    /// The number of bytes transferred, or the error.
    pub io::Result<usize>,
    /// The buffer or buffers of the request.
    pub B,
);

impl<B> BufResult<B> {
    /// The number of bytes and the buffer, if the transfer succeeded.
    ///
    /// # Errors
    /// The error of the transfer. The buffer is dropped.
    pub fn into_result(self) -> io::Result<(usize, B)> {
        let Self(result, buffer) = self;
        result.map(|bytes| (bytes, buffer))
    }
}

/// A result that is made from a completion.
pub trait Outcome {
    /// Makes it from `completion`.
    fn of(completion: Completion) -> Self;
}

impl Outcome for (io::Result<usize>, Operation) {
    fn of(Completion { result, operation, .. }: Completion) -> Self {
        (result, operation)
    }
}

impl<T: Outcome> Outcome for (T, Timing) {
    fn of(completion: Completion) -> Self {
        let timing = completion.timing;
        (T::of(completion), timing)
    }
}

impl<B: IoBuf> Outcome for BufResult<B> {
    fn of(Completion { result, operation, .. }: Completion) -> Self {
        Self(result, operation.into_buffer().unwrap_or_default())
    }
}

impl Outcome for BufResult<Vec<AlignedBuf>> {
    fn of(Completion { result, operation, .. }: Completion) -> Self {
        let buffers = match operation {
            Operation::ReadVectored { buffers, .. } | Operation::WriteVectored { buffers, .. } => {
                buffers
            }
            _ => Vec::new(),
        };
        Self(result, buffers)
    }
}

impl Outcome for io::Result<()> {
    fn of(completion: Completion) -> Self {
        completion.result.map(drop)
    }
}
