//! Flushes of a file system's pending changes that write no file data.

use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{Mode, OFlags, Timespec, Timestamps, UTIME_NOW, fsync, futimens, openat};
use rustix::io::{Errno, retry_on_intr};

/// A file without a name and without data. Its flush commits every earlier change of its file
/// system, and writes the data of no other file.
pub(super) struct Flusher(OwnedFd);

impl Flusher {
    /// Makes one on the file system of `directory`. Not every file system supports such files.
    pub(super) fn open(directory: impl AsFd) -> Result<Self, Errno> {
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        openat(directory, ".", flags, Mode::RUSR | Mode::WUSR).map(Self)
    }

    pub(super) fn flush(&self) -> Result<(), Errno> {
        // Without a change, the flush may do nothing.
        let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
        futimens(&self.0, &Timestamps { last_access: now, last_modification: now })?;
        retry_on_intr(|| fsync(&self.0))
    }
}
