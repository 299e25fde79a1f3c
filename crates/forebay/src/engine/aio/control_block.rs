//! Conversion of reads and writes into the kernel's control blocks.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use rustix::io::ReadWriteFlags;

use crate::engine::operation::Operation;
use crate::engine::segment::Segment;

const PREAD: u16 = 0;
const PWRITE: u16 = 1;
const PREADV: u16 = 7;
const PWRITEV: u16 = 8;

/// The kernel signals the end of the request to the eventfd `notified`.
const FLAG_RESFD: u32 = 1;

/// A request in the kernel's layout (`iocb`).
#[repr(C)]
#[derive(Clone, Debug, Default)]
pub(super) struct ControlBlock {
    /// Returned with the end of the request.
    pub(super) data: u64,
    #[cfg(target_endian = "little")]
    key: u32,
    rw_flags: u32,
    #[cfg(target_endian = "big")]
    key: u32,
    opcode: u16,
    priority: i16,
    fd: u32,
    buffer: u64,
    len: u64,
    offset: i64,
    reserved: u64,
    flags: u32,
    notified: u32,
}

impl ControlBlock {
    /// The control block for `operation`, if it is a read or a write. It does not block the caller,
    /// and the kernel signals its end to the eventfd `notified`.
    ///
    /// It points to the operation's buffers and to `segments`, which must stay where they are:
    /// buffers until the request has ended, segments until the kernel has accepted the request.
    pub(super) fn new(
        operation: &mut Operation,
        segments: &mut Vec<Segment>,
        data: u64,
        notified: BorrowedFd<'_>,
    ) -> Option<Self> {
        let (opcode, file, buffer, len, offset) = match operation {
            Operation::Read { file, offset, buffer, range } => {
                let (start, len) = buffer.part(range);
                (PREAD, file, start.expose_provenance(), len, *offset)
            }
            Operation::Write { file, offset, buffer, range } => {
                let part = &buffer.filled()[range.clone()];
                (PWRITE, file, part.as_ptr().expose_provenance(), part.len(), *offset)
            }
            Operation::ReadVectored { file, offset, buffers } => {
                segments.extend(buffers.iter_mut().map(|buffer| Segment::new(buffer)));
                (PREADV, file, segments.as_ptr().expose_provenance(), segments.len(), *offset)
            }
            Operation::WriteVectored { file, offset, buffers } => {
                segments.extend(buffers.iter_mut().map(|buffer| Segment::new(buffer)));
                (PWRITEV, file, segments.as_ptr().expose_provenance(), segments.len(), *offset)
            }
            _ => return None,
        };
        Some(Self {
            data,
            rw_flags: ReadWriteFlags::NOWAIT.bits(),
            opcode,
            fd: number(file.as_fd()),
            buffer: buffer as u64,
            len: len as u64,
            // `Operation::check` has ensured that the offset is less than 2^63.
            offset: offset.cast_signed(),
            flags: FLAG_RESFD,
            notified: number(notified),
            ..Self::default()
        })
    }

    /// The control block of a request that ends when `file` is readable.
    #[cfg(test)]
    pub(super) fn poll(file: &crate::DirectFile, data: u64) -> Self {
        const POLL: u16 = 5;
        let events = rustix::event::PollFlags::IN.bits().into();
        Self { data, opcode: POLL, fd: number(file.as_fd()), buffer: events, ..Self::default() }
    }
}

/// The number of an open descriptor, which is not negative.
fn number(fd: BorrowedFd<'_>) -> u32 {
    fd.as_raw_fd().cast_unsigned()
}
