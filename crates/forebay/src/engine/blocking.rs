//! Execution of an operation with ordinary system calls.

use std::io::{self, IoSlice, IoSliceMut};

use rustix::fs::FallocateFlags;
use rustix::io::{pread, preadv, pwrite, pwritev, retry_on_intr};

use super::operation::Operation;

/// Executes `operation`, which [`Operation::check`] has accepted, and waits for its end.
pub(super) fn execute(operation: &mut Operation) -> io::Result<usize> {
    let outcome = match operation {
        Operation::Read { file, offset, buffer, range } => {
            retry_on_intr(|| pread(&*file, &mut buffer.zeroed()[range.clone()], *offset))
        }
        Operation::Write { file, offset, buffer, range } => {
            retry_on_intr(|| pwrite(&*file, &buffer.filled()[range.clone()], *offset))
        }
        Operation::ReadVectored { file, offset, buffers } => {
            let mut segments: Vec<_> = buffers.iter_mut().map(|b| IoSliceMut::new(b)).collect();
            retry_on_intr(|| preadv(&*file, &mut segments, *offset))
        }
        Operation::WriteVectored { file, offset, buffers } => {
            let segments: Vec<_> = buffers.iter().map(|b| IoSlice::new(b)).collect();
            retry_on_intr(|| pwritev(&*file, &segments, *offset))
        }
        Operation::SyncData { file } => retry_on_intr(|| rustix::fs::fdatasync(&*file)).map(|()| 0),
        Operation::SyncAll { file } => retry_on_intr(|| rustix::fs::fsync(&*file)).map(|()| 0),
        Operation::Allocate { file, offset, len } => {
            fallocate(file, FallocateFlags::empty(), *offset, *len)
        }
        Operation::PunchHole { file, offset, len } => fallocate(file, PUNCH_HOLE, *offset, *len),
        Operation::Truncate { file, len } => {
            retry_on_intr(|| rustix::fs::ftruncate(&*file, *len)).map(|()| 0)
        }
        Operation::Unlink { path, .. } => rustix::fs::unlink(path.as_c_str()).map(|()| 0),
    };
    Ok(outcome?)
}

/// The kernel punches holes only if the length of the file is kept.
pub(super) const PUNCH_HOLE: FallocateFlags =
    FallocateFlags::PUNCH_HOLE.union(FallocateFlags::KEEP_SIZE);

fn fallocate(
    file: &crate::DirectFile,
    mode: FallocateFlags,
    offset: u64,
    len: u64,
) -> rustix::io::Result<usize> {
    retry_on_intr(|| rustix::fs::fallocate(file, mode, offset, len)).map(|()| 0)
}
