//! Conversion of operations into the kernel's submission entries.

use std::os::fd::{AsFd, AsRawFd};

use io_uring::squeue::Entry;
use io_uring::{opcode, types};
use rustix::event::PollFlags;

use super::attempt::Attempt;
use crate::DirectFile;
use crate::engine::blocking::PUNCH_HOLE;
use crate::engine::operation::Operation;
use crate::engine::segment::Segment;

/// The entry for this attempt of `operation`, which [`Operation::check`] has accepted.
///
/// It points to the operation's buffers and path and to `segments`, which must stay where they are
/// until the operation completes.
pub(super) fn entry(
    operation: &mut Operation,
    segments: &mut Vec<Segment>,
    attempt: Attempt,
) -> Entry {
    segments.clear();
    let rw_flags = attempt.rw_flags();
    let entry = match operation {
        Operation::Read { file, offset, buffer, range } => {
            let (start, len) = buffer.part(range);
            opcode::Read::new(fd(file), start, len_u32(len))
                .offset(*offset)
                .rw_flags(rw_flags)
                .build()
        }
        Operation::Write { file, offset, buffer, range } => {
            let part = &buffer.filled()[range.clone()];
            opcode::Write::new(fd(file), part.as_ptr(), len_u32(part.len()))
                .offset(*offset)
                .rw_flags(rw_flags)
                .build()
        }
        Operation::ReadVectored { file, offset, buffers } => {
            segments.extend(buffers.iter_mut().map(|b| Segment::new(b)));
            opcode::Readv::new(fd(file), segments.as_ptr().cast(), len_u32(segments.len()))
                .offset(*offset)
                .rw_flags(rw_flags)
                .build()
        }
        Operation::WriteVectored { file, offset, buffers } => {
            segments.extend(buffers.iter_mut().map(|b| Segment::new(b)));
            opcode::Writev::new(fd(file), segments.as_ptr().cast(), len_u32(segments.len()))
                .offset(*offset)
                .rw_flags(rw_flags)
                .build()
        }
        Operation::SyncData { file } => {
            opcode::Fsync::new(fd(file)).flags(types::FsyncFlags::DATASYNC).build()
        }
        Operation::SyncAll { file } => opcode::Fsync::new(fd(file)).build(),
        Operation::Allocate { file, offset, len } => {
            opcode::Fallocate::new(fd(file), *len).offset(*offset).build()
        }
        Operation::PunchHole { file, offset, len } => opcode::Fallocate::new(fd(file), *len)
            .offset(*offset)
            .mode(PUNCH_HOLE.bits().cast_signed())
            .build(),
        Operation::Truncate { file, len } => opcode::Ftruncate::new(fd(file), *len).build(),
        Operation::Unlink { path, .. } => {
            opcode::UnlinkAt::new(types::Fd(rustix::fs::CWD.as_raw_fd()), path.as_ptr()).build()
        }
    };
    entry.flags(attempt.flags())
}

/// A poll that completes each time `eventfd` is written to.
pub(super) fn poll(eventfd: impl AsFd) -> Entry {
    let fd = types::Fd(eventfd.as_fd().as_raw_fd());
    opcode::PollAdd::new(fd, PollFlags::IN.bits().into()).multi(true).build()
}

fn fd(file: &DirectFile) -> types::Fd {
    types::Fd(file.as_fd().as_raw_fd())
}

/// The kernel cuts each request to less than 2 GiB. The cast must not wrap around before that.
fn len_u32(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}
