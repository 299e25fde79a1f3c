//! The kernel's page cache: the pages of files in it, and their way to the disk.

use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::FileType;
use rustix::ioctl::{Getter, ioctl, opcode};

mod calls;
mod compare;
mod counters;
mod disk_files;
mod held_file;
mod held_files;
mod probe;

pub(crate) use self::calls::{bytes_read_by_thread, residency, take_errors, write_back};
pub(crate) use self::compare::pages_on_disk;
pub use self::counters::PageCacheCounters;
pub(crate) use self::counters::ReadCounts;
pub(crate) use self::disk_files::DiskFiles;
pub(crate) use self::held_file::HeldFile;
pub(crate) use self::held_files::LeavingFile;
pub use self::probe::PageCacheSupport;

/// The size of a page in bytes.
pub(crate) fn page_size() -> u64 {
    rustix::param::page_size() as u64
}

/// The whole pages that contain a range of bytes.
pub(crate) fn whole_pages(range: &Range<u64>) -> Range<u64> {
    let page = page_size();
    range.start - range.start % page..range.end.checked_next_multiple_of(page).unwrap_or(u64::MAX)
}

/// `BLKGETSIZE64`.
const DEVICE_LEN: rustix::ioctl::Opcode = opcode::read::<usize>(0x12, 114);

/// `BLKGETDISKSEQ`.
const DISK_NUMBER: rustix::ioctl::Opcode = opcode::read::<u64>(0x12, 128);

/// A number that no other disk has had since the system was started. 0 if the system has none
/// (before Linux 5.15).
pub(crate) fn disk_number(device: BorrowedFd<'_>) -> u64 {
    // SAFETY: this request writes 64 bits, on every architecture.
    unsafe { ioctl(device, Getter::<DISK_NUMBER, u64>::new()) }.unwrap_or(0)
}

/// The length of a file or a block device, in bytes. It does not move the position of the
/// descriptor.
///
/// # Errors
/// Those of `fstat(2)`, and of `ioctl(2)` for a block device.
pub(crate) fn file_len(file: impl AsFd) -> io::Result<u64> {
    let stat = rustix::fs::fstat(&file)?;
    if FileType::from_raw_mode(stat.st_mode) == FileType::BlockDevice {
        // SAFETY: this request writes 64 bits, on every architecture.
        return Ok(unsafe { ioctl(&file, Getter::<DEVICE_LEN, u64>::new()) }?);
    }
    Ok(u64::try_from(stat.st_size).unwrap_or(0))
}
