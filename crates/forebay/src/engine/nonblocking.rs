//! Execution of an operation at once, if it does not have to wait for the disk.

use std::io::{IoSlice, IoSliceMut};

use rustix::io::{Errno, ReadWriteFlags, preadv2, pwritev2};

use super::operation::{Operation, Retries};

/// Executes a read or a write of a buffered file, if the page cache allows it without blocking.
/// `None` if a thread has to do it. A failed attempt is counted.
///
/// A direct request is not tried, because it always waits for the disk.
pub(super) fn execute(operation: &mut Operation, retries: &mut Retries) -> Option<usize> {
    let wanted = operation.transfer_len();
    let (file, op) = operation.transfer()?;
    if file.is_direct() || !file.may_not_block() {
        return None;
    }
    let file = file.clone();
    match attempt(operation) {
        Ok(len) if len == wanted => return Some(len),
        Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => {
            file.always_blocks();
            return None;
        }
        // The transfer is partial, or failed with an error that the thread will meet again. A read
        // of 0 bytes need not be the end of the file: Linux 5.9 and 5.10 also return 0 for pages
        // that are not in memory.
        _ => {}
    }
    retries.count(op);
    None
}

fn attempt(operation: &mut Operation) -> Result<usize, Errno> {
    let flags = ReadWriteFlags::NOWAIT;
    match operation {
        Operation::Read { file, offset, buffer, range } => {
            let mut segments = [IoSliceMut::new(&mut buffer.zeroed()[range.clone()])];
            preadv2(&*file, &mut segments, *offset, flags)
        }
        Operation::Write { file, offset, buffer, range } => {
            pwritev2(&*file, &[IoSlice::new(&buffer.filled()[range.clone()])], *offset, flags)
        }
        Operation::ReadVectored { file, offset, buffers } => {
            let mut segments: Vec<_> = buffers.iter_mut().map(|b| IoSliceMut::new(b)).collect();
            preadv2(&*file, &mut segments, *offset, flags)
        }
        Operation::WriteVectored { file, offset, buffers } => {
            let segments: Vec<_> = buffers.iter().map(|b| IoSlice::new(b)).collect();
            pwritev2(&*file, &segments, *offset, flags)
        }
        _ => Err(Errno::OPNOTSUPP),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AlignedBuf, DirectFile};

    fn file(direct: bool) -> (tempfile::TempDir, DirectFile) {
        let dir = tempfile::tempdir().unwrap();
        let options = DirectFile::options().read(true).write(true).create(true).direct(direct);
        let file = options.open(dir.path().join("data")).unwrap();
        (dir, file)
    }

    fn buffer() -> AlignedBuf {
        AlignedBuf::new(8192, 4096).unwrap()
    }

    #[test]
    fn a_read_from_memory_is_done_at_once_and_others_are_counted() {
        let (_dir, file) = file(false);
        rustix::io::pwrite(&file, &[7; 8192], 0).unwrap();
        let mut retries = Retries::default();
        let mut cached = Operation::read(file.clone(), 0, buffer());
        // On a file system that does not support such reads, threads do them, and they are not
        // counted.
        let cached = execute(&mut cached, &mut retries);
        let refused = !file.may_not_block();
        assert_eq!(cached, (!refused).then_some(8192));
        let beyond = execute(&mut Operation::read(file.clone(), 4096, buffer()), &mut retries);
        assert_eq!(beyond, None, "a part of it is for the thread");
        assert_eq!(retries, Retries { reads: u64::from(!refused), writes: 0 });
    }

    /// As on Linux 5.9 and 5.10.
    #[test]
    fn a_read_of_nothing_is_left_to_a_thread() {
        let (_dir, file) = file(false);
        rustix::io::pwrite(&file, &[7; 8192], 0).unwrap();
        let read_nothing = move || {
            let filter = seccompiler::SeccompFilter::new(
                [(libc::SYS_preadv2, Vec::new())].into(),
                seccompiler::SeccompAction::Allow,
                seccompiler::SeccompAction::Errno(0),
                std::env::consts::ARCH.try_into().unwrap(),
            );
            let program = seccompiler::BpfProgram::try_from(filter.unwrap()).unwrap();
            seccompiler::apply_filter(&program).unwrap();
            execute(&mut Operation::read(file, 0, buffer()), &mut Retries::default())
        };
        assert_eq!(std::thread::spawn(read_nothing).join().unwrap(), None);
    }

    #[test]
    fn a_write_that_needs_space_is_left_to_a_thread() {
        let (_dir, file) = file(false);
        let mut retries = Retries::default();
        let buffers = vec![buffer(), buffer()];
        let mut write = Operation::WriteVectored { file: file.clone(), offset: 0, buffers };
        let done = execute(&mut write, &mut retries);
        let counted = u64::from(done.is_none() && file.may_not_block());
        assert_eq!(retries, Retries { reads: 0, writes: counted });
    }

    #[test]
    fn direct_requests_and_flushes_are_not_tried() {
        let (_dir, file) = file(true);
        let mut retries = Retries::default();
        if file.is_direct() {
            assert_eq!(
                execute(&mut Operation::read(file.clone(), 0, buffer()), &mut retries),
                None
            );
        }
        assert_eq!(execute(&mut Operation::SyncAll { file }, &mut retries), None);
        assert_eq!(retries, Retries::default());
    }
}
