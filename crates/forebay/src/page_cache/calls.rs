//! System calls about the page cache that no other crate has.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

/// `cachestat(2)`, since Linux 6.5. It has the same number on all present architectures.
const SYS_CACHESTAT: libc::c_long = 451;

/// The unit of `getrusage(2)`, in bytes.
const RUSAGE_BLOCK: u64 = 512;

/// The pages of a range that are in memory, in bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Residency {
    /// All pages in memory.
    pub(crate) cached: u64,
    /// The pages that differ from the disk.
    pub(crate) dirty: u64,
    /// The pages under write-back.
    pub(crate) in_writeback: u64,
    evicted: u64,
    recently_evicted: u64,
}

impl Residency {
    /// Whether the disk has all pages in memory, as far as the kernel shows.
    pub(crate) const fn is_clean(&self) -> bool {
        self.dirty == 0 && self.in_writeback == 0
    }
}

#[repr(C)]
struct Range {
    offset: u64,
    len: u64,
}

/// The pages in memory of `len` bytes of a file from `offset` on. A length of 0 means up to its
/// end. All zero if the pages belong to another file (overlay).
///
/// # Errors
/// `ENOSYS` before Linux 6.5; `EPERM` for a file that the caller neither owns nor may write;
/// `EOPNOTSUPP` for a file in huge pages.
pub(crate) fn residency(file: impl AsFd, offset: u64, len: u64) -> io::Result<Residency> {
    let range = Range { offset, len };
    let mut residency = Residency::default();
    let (fd, flags): (_, libc::c_uint) = (file.as_fd().as_raw_fd(), 0);
    // SAFETY: the descriptor is open, and the kernel reads and writes two structures of its layout.
    let result =
        unsafe { libc::syscall(SYS_CACHESTAT, fd, &raw const range, &raw mut residency, flags) };
    if result == 0 { Ok(residency) } else { Err(io::Error::last_os_error()) }
}

/// Writes the dirty pages of a range to the disk and waits for their end (`sync_file_range`). It
/// writes no metadata, and does not flush the disk's own cache. It takes errors of writeback that
/// were not yet reported through the description `file`.
///
/// If the pages belong to another file (overlay), it has no effect and succeeds. Returns false if
/// the system refuses the call (seccomp), and the file has to be flushed.
pub(crate) fn write_back(file: BorrowedFd<'_>, offset: u64, len: u64) -> io::Result<bool> {
    let number = |bytes: u64| {
        libc::off64_t::try_from(bytes).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))
    };
    let (offset, len) = (number(offset)?, number(len)?);
    // A range that ends beyond the last possible byte is an error. Its page is written in any case.
    let len = len.min(libc::off64_t::MAX - offset);
    let flags = libc::SYNC_FILE_RANGE_WAIT_BEFORE
        | libc::SYNC_FILE_RANGE_WRITE
        | libc::SYNC_FILE_RANGE_WAIT_AFTER;
    // SAFETY: the descriptor is open, and the call touches no memory.
    let result = unsafe { libc::sync_file_range(file.as_raw_fd(), offset, len, flags) };
    if result == 0 {
        return Ok(true);
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::ENOSYS | libc::EPERM) => Ok(false),
        _ => Err(error),
    }
}

/// Fails with an error of writeback that was not yet reported through the description `file`. It
/// does not wait.
pub(crate) fn take_errors(file: BorrowedFd<'_>) -> io::Result<()> {
    let (beyond_any_file, flags) = (1 << 62, libc::SYNC_FILE_RANGE_WAIT_BEFORE);
    // SAFETY: the descriptor is open, and the call touches no memory.
    let result = unsafe { libc::sync_file_range(file.as_raw_fd(), beyond_any_file, 1, flags) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The number of bytes that block devices have read for the calling thread, including read-ahead. 0
/// if the kernel does not count them, and for file systems without a block device.
pub(crate) fn bytes_read_by_thread() -> u64 {
    let mut usage = MaybeUninit::<libc::rusage>::uninit();
    // SAFETY: the kernel fills the structure if the call succeeds.
    let usage = unsafe {
        if libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr()) != 0 {
            return 0;
        }
        usage.assume_init()
    };
    u64::try_from(usage.ru_inblock).unwrap_or(0).saturating_mul(RUSAGE_BLOCK)
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::fs::FileExt;

    use super::*;

    #[test]
    fn a_range_that_was_written_is_dirty_until_it_is_written_back() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&[7; 65536]).unwrap();
        let Ok(before) = residency(&file, 0, 65536) else { return };
        write_back(file.as_fd(), 0, 65536).unwrap();
        let after = residency(&file, 0, 65536).unwrap();
        assert!(after.cached >= before.cached);
        // tmpfs has no disk, an overlay shows nothing
        if before.dirty > 0 {
            assert!(after.is_clean(), "{before:?}, then {after:?}");
        }
    }

    #[test]
    fn invalid_ranges_and_files_are_refused() {
        let file = tempfile::tempfile().unwrap();
        assert!(write_back(file.as_fd(), u64::MAX, 1).is_err());
        assert!(write_back(file.as_fd(), 0, u64::MAX).is_err());
        let (reader, _writer) = io::pipe().unwrap();
        assert!(write_back(reader.as_fd(), 0, 4096).is_err());
    }

    #[test]
    fn reads_from_the_disk_are_counted_for_the_thread_that_makes_them() {
        let mut file = tempfile::tempfile_in(".").unwrap();
        file.write_all(&[7; 65536]).unwrap();
        file.sync_all().unwrap();
        rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
        let gone = residency(&file, 0, 65536).is_ok_and(|left| left.cached == 0);
        let before = bytes_read_by_thread();
        file.read_exact_at(&mut [0; 65536], 0).unwrap();
        let read = bytes_read_by_thread() - before;
        assert!(read.is_multiple_of(RUSAGE_BLOCK) && read <= 1 << 20, "{read}");
        let before = bytes_read_by_thread();
        file.read_exact_at(&mut [0; 65536], 0).unwrap();
        assert!(!gone || bytes_read_by_thread() == before, "it is in memory now");
    }
}
