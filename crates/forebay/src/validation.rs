//! Checks for requests that no disk could execute.

use std::io;
use std::iter;

use crate::engine::{Operation, SEGMENTS_MAX};
use crate::{AlignedBuf, DirectFile};

/// Why a request was refused before it was queued. It is the source of an [`io::Error`] of the kind
/// `InvalidInput`.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// The address of the buffer is not aligned for the file.
    #[error(
        "a buffer at address {address:#x}: this file needs multiples of {alignment}; use an \
         AlignedBuf of that alignment, or open the file with FileOptions::direct(false)"
    )]
    Buffer {
        /// The address.
        address: usize,
        /// The required alignment, in bytes.
        alignment: usize,
    },
    /// The offset is not aligned for the file.
    #[error("the offset {offset}: this file needs multiples of {alignment}")]
    Offset {
        /// The offset, in bytes.
        offset: u64,
        /// The required alignment, in bytes.
        alignment: usize,
    },
    /// The length is not aligned for the file.
    #[error(
        "a buffer of {len} bytes: this file needs multiples of {alignment}; pass such a part with \
         IoBuf::slice, or open the file with FileOptions::direct(false)"
    )]
    Length {
        /// The length, in bytes.
        len: usize,
        /// The required alignment, in bytes.
        alignment: usize,
    },
    /// There is no buffer, or more than [`SEGMENTS_MAX`].
    #[error("{count} buffers in one request: use 1 to {SEGMENTS_MAX}")]
    BufferCount {
        /// The number of buffers.
        count: usize,
    },
    /// The range ends at 2^63 bytes or later.
    #[error("{len} bytes from {offset} on: the end must not be beyond 2^63 - 1")]
    Range {
        /// The start of the range, in bytes.
        offset: u64,
        /// The length of the range, in bytes.
        len: u64,
    },
    /// The range or the buffers have 0 bytes.
    #[error("a request for 0 bytes: give at least 1")]
    Empty,
    /// The file was not opened as a [growing](crate::FileOptions::growing) file.
    #[error(
        "only a file opened with FileOptions::growing can be trimmed; truncate this one instead"
    )]
    NotGrowing,
    /// The class belongs to another scheduler than the file.
    #[error("the class `{class}` belongs to another scheduler than the file: use one of its own")]
    OtherScheduler {
        /// The name of the class.
        class: String,
    },
    /// The class was removed.
    #[error("the class `{class}` was removed: use another one")]
    ClassRemoved {
        /// The name of the class.
        class: String,
    },
}

forebay_core::debug_as_display!(RequestError);

impl From<RequestError> for io::Error {
    fn from(error: RequestError) -> Self {
        Self::new(io::ErrorKind::InvalidInput, error)
    }
}

/// Checks that some disk could execute `operation`.
pub(crate) fn check_operation(operation: &Operation) -> Result<(), RequestError> {
    match operation {
        Operation::Read { file, offset, buffer, range } => {
            check_part(file, (*offset, file.offset_alignment()), buffer.location(range))
        }
        Operation::Write { file, offset, buffer, range } => {
            check_part(file, (*offset, file.write_alignment()), buffer.location(range))
        }
        Operation::ReadVectored { file, offset, buffers } => {
            check_buffers(file, (*offset, file.offset_alignment()), buffers)
        }
        Operation::WriteVectored { file, offset, buffers } => {
            check_buffers(file, (*offset, file.write_alignment()), buffers)
        }
        Operation::Allocate { offset, len, .. } | Operation::PunchHole { offset, len, .. } => {
            check_range(*offset, *len)
        }
        Operation::Unlink { len, .. } => check_end(0, *len),
        _ => Ok(()),
    }
}

fn check_part(
    file: &DirectFile,
    place: (u64, usize),
    part: Option<(usize, usize)>,
) -> Result<(), RequestError> {
    // The engine refuses ranges outside of their buffers.
    part.map_or(Ok(()), |part| check_transfer(file, place, iter::once(part)))
}

fn check_buffers(
    file: &DirectFile,
    place: (u64, usize),
    buffers: &[AlignedBuf],
) -> Result<(), RequestError> {
    let count = buffers.len();
    if !(1..=SEGMENTS_MAX).contains(&count) {
        return Err(RequestError::BufferCount { count });
    }
    let parts = buffers.iter().map(|buffer| (buffer.as_ptr().addr(), buffer.len()));
    check_transfer(file, place, parts)
}

/// Checks that `file` can transfer buffers of these addresses and lengths to or from `offset`. The
/// offset and the sum of the lengths have to be multiples of `whole` bytes.
fn check_transfer(
    file: &DirectFile,
    (offset, whole): (u64, usize),
    buffers: impl Iterator<Item = (usize, usize)>,
) -> Result<(), RequestError> {
    if !is_aligned(offset, whole) {
        return Err(RequestError::Offset { offset, alignment: whole });
    }
    let mut total = 0u64;
    for (address, len) in buffers {
        let alignment = file.offset_alignment();
        if !is_aligned(len as u64, alignment) {
            return Err(RequestError::Length { len, alignment });
        }
        let alignment = file.memory_alignment();
        if len > 0 && !is_aligned(address as u64, alignment) {
            return Err(RequestError::Buffer { address, alignment });
        }
        total += len as u64;
    }
    if !is_aligned(total, whole) {
        return Err(RequestError::Length { len: total as usize, alignment: whole });
    }
    check_range(offset, total)
}

/// Whether `value` is a multiple of `alignment`, a power of two. A mask is faster than a division.
const fn is_aligned(value: u64, alignment: usize) -> bool {
    value & (alignment as u64 - 1) == 0
}

fn check_range(offset: u64, len: u64) -> Result<(), RequestError> {
    if len == 0 {
        return Err(RequestError::Empty);
    }
    check_end(offset, len)
}

/// Checks that the range of `len` bytes from `offset` on ends below 2^63.
fn check_end(offset: u64, len: u64) -> Result<(), RequestError> {
    match offset.checked_add(len).map(i64::try_from) {
        Some(Ok(_)) => Ok(()),
        _ => Err(RequestError::Range { offset, len }),
    }
}
