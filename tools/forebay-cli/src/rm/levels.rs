//! The directories from the argument down to where the walk is.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::entry::Entry;

/// How many of them are open at a time; those further up are opened again on the way back.
const OPEN_MAX: usize = 32;

/// A directory that is being deleted.
#[derive(Debug)]
pub(super) struct Level {
    pub(super) name: OsString,
    pub(super) entry: Entry,
    /// Directories in it that are still to be deleted.
    pub(super) below: Vec<OsString>,
    /// Whether another file system begins here.
    pub(super) crosses: bool,
    /// How many deletions had failed before it.
    pub(super) failed_before: u64,
    fd: Option<OwnedFd>,
}

/// They, from the top.
#[derive(Debug, Default)]
pub(super) struct Levels(Vec<Level>);

/// Opens a directory of this name, not following a link; it must be what `entry` is.
pub(super) fn open(dir: impl AsFd, name: &OsStr, entry: &Entry) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let fd = rustix::fs::openat(dir, name, flags, Mode::empty())?;
    let is_same = Entry::of_file(&fd)?.is_same(entry);
    is_same.then_some(fd).ok_or(Errno::STALE)
}

impl Level {
    pub(super) fn new(name: OsString, entry: Entry, fd: OwnedFd) -> Self {
        let (below, fd) = (Vec::new(), Some(fd));
        Self { name, entry, below, crosses: false, failed_before: 0, fd }
    }

    /// Its descriptor; the lowest level is always open.
    pub(super) fn fd(&self) -> Result<BorrowedFd<'_>, Errno> {
        self.fd.as_ref().map(AsFd::as_fd).ok_or(Errno::BADF)
    }
}

impl Levels {
    /// Goes down. What is far above is closed.
    pub(super) fn push(&mut self, level: Level) {
        self.0.push(level);
        if let Some(far) = self.0.len().checked_sub(OPEN_MAX + 1) {
            self.0[far].fd = None;
        }
    }

    pub(super) fn last(&mut self) -> Option<&mut Level> {
        self.0.last_mut()
    }

    /// Goes up. The directory above is opened again if it was closed, by the one that is left: if
    /// that was moved elsewhere meanwhile, what is above it is another.
    pub(super) fn pop(&mut self) -> Option<(Level, Result<(), Errno>)> {
        let level = self.0.pop()?;
        let opened = match self.0.last_mut() {
            Some(above) if above.fd.is_none() => {
                let fd = level.fd().and_then(|fd| open(fd, OsStr::new(".."), &above.entry));
                fd.map(|fd| above.fd = Some(fd))
            }
            _ => Ok(()),
        };
        Some((level, opened))
    }
}
