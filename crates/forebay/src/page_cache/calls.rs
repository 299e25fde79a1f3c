//! System calls about the page cache that no other crate has.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

/// `cachestat(2)`, since Linux 6.5; the same number on every architecture of today.
const SYS_CACHESTAT: libc::c_long = 451;

/// The bytes that `getrusage(2)` counts in.
const RUSAGE_BLOCK: u64 = 512;

/// Pages of a range that are in memory.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Residency {
    /// All of them.
    pub(crate) cached: u64,
    /// Those that differ from the disk.
    pub(crate) dirty: u64,
    /// Those that the disk is getting.
    pub(crate) in_writeback: u64,
    evicted: u64,
    recently_evicted: u64,
}

impl Residency {
    /// Whether the disk has, as far as can be seen, all that is in memory.
    pub(crate) const fn is_clean(&self) -> bool {
        self.dirty == 0 && self.in_writeback == 0
    }
}

#[repr(C)]
struct Range {
    offset: u64,
    len: u64,
}

/// What of `len` bytes of a file from `offset` on is in memory; a length of zero means up to its
/// end. All zero where the file's pages are another's (overlay).
///
/// # Errors
/// `ENOSYS` before Linux 6.5; `EPERM` for a file that the caller neither owns nor may write;
/// `EOPNOTSUPP` for one in huge pages.
pub(crate) fn residency(file: impl AsFd, offset: u64, len: u64) -> io::Result<Residency> {
    let range = Range { offset, len };
    let mut residency = Residency::default();
    let (fd, flags): (_, libc::c_uint) = (file.as_fd().as_raw_fd(), 0);
    // SAFETY: the descriptor is open, and the kernel reads and writes two structures of its layout.
    let result =
        unsafe { libc::syscall(SYS_CACHESTAT, fd, &raw const range, &raw mut residency, flags) };
    if result == 0 { Ok(residency) } else { Err(io::Error::last_os_error()) }
}

/// Writes the dirty pages of a range to the disk and waits until it has them (`sync_file_range`):
/// no metadata, and no flush of the disk's own cache. Takes the errors of writeback that the
/// description `file` was not told of yet.
///
/// Where the file's pages are another's (overlay) it does nothing, and succeeds.
/// Whether it did; where the system refuses the call (seccomp) the file is to be flushed.
pub(crate) fn write_back(file: BorrowedFd<'_>, offset: u64, len: u64) -> io::Result<bool> {
    let number = |bytes: u64| {
        libc::off64_t::try_from(bytes).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))
    };
    let (offset, len) = (number(offset)?, number(len)?);
    // A range that ends after the last byte that a file can have is none: its page goes all the same.
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

/// Fails with the error of writeback that the description `file` was not told of yet. It waits for
/// nothing.
pub(crate) fn take_errors(file: BorrowedFd<'_>) -> io::Result<()> {
    let (beyond_any_file, flags) = (1 << 62, libc::SYNC_FILE_RANGE_WAIT_BEFORE);
    // SAFETY: the descriptor is open, and the call touches no memory.
    let result = unsafe { libc::sync_file_range(file.as_raw_fd(), beyond_any_file, 1, flags) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// How many bytes block devices have read for the calling thread so far: also ahead of what it
/// asked for. Zero where the kernel counts none, and for file systems without a block device.
pub(crate) fn bytes_read_by_thread() -> u64 {
    let mut usage = MaybeUninit::<libc::rusage>::uninit();
    // SAFETY: the kernel fills the structure where the call succeeds.
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
