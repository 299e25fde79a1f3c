//! Having a file system do what it has put off, and write no data for it.

use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{Mode, OFlags, Timespec, Timestamps, UTIME_NOW, fsync, futimens, openat};
use rustix::io::{Errno, retry_on_intr};

/// A file without a name and without data: to flush it commits every change of its file system that
/// was made before, and writes the data of no other file.
pub(super) struct Flusher(OwnedFd);

impl Flusher {
    /// On the file system of `directory`; not every one has such files.
    pub(super) fn open(directory: impl AsFd) -> Result<Self, Errno> {
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        openat(directory, ".", flags, Mode::RUSR | Mode::WUSR).map(Self)
    }

    pub(super) fn flush(&self) -> Result<(), Errno> {
        // A flush without a change before it may do nothing.
        let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
        futimens(&self.0, &Timestamps { last_access: now, last_modification: now })?;
        retry_on_intr(|| fsync(&self.0))
    }
}
