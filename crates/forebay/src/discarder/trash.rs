//! Trash directories: where files wait that were handed over, and where the next process finds them.

use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use rustix::fs::{
    AtFlags, Dir, FileType, FlockOperation, Mode, OFlags, RenameFlags, Stat, fstat, fsync, mkdirat,
    openat, renameat, renameat_with, statat, unlinkat,
};
use rustix::io::{Errno, retry_on_intr};
use rustix::process::geteuid;

use super::directory::{Directory, file_type};
use super::error::{DeleteErrorCause, DeleteOperation, During};

/// What the names of all entries begin with: nothing else in a trash is touched.
const PREFIX: &str = "forebay-";
/// Hexadecimal digits of the number of who moved them there.
const OWNER_LEN: usize = 16;

/// It is made so often if others remove it.
const TRIES_MAX: u32 = 8;

/// A trash directory.
pub(super) struct Trash {
    pub(super) fd: OwnedFd,
    /// The directory that it is in.
    pub(super) directory: Arc<Directory>,
    name: OsString,
}

/// Names of entries, which no other has.
pub(super) struct EntryNames {
    owner: u64,
    next: u64,
}

impl EntryNames {
    pub(super) const fn new(owner: u64) -> Self {
        Self { owner, next: 0 }
    }

    fn next(&mut self) -> OsString {
        self.next += 1;
        format!("{PREFIX}{:016x}-{:x}", self.owner, self.next).into()
    }

    fn has(&self, name: &OsStr) -> bool {
        owner_of(name) == Some(self.owner)
    }
}

/// Who moved an entry there; `None` if it is none.
fn owner_of(name: &OsStr) -> Option<u64> {
    let rest = name.to_str()?.strip_prefix(PREFIX)?;
    let (owner, number) = rest.split_once('-')?;
    let is_hex = |digits: &str| {
        !digits.is_empty() && digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    };
    (owner.len() == OWNER_LEN && is_hex(owner) && is_hex(number) && number.len() <= OWNER_LEN)
        .then(|| u64::from_str_radix(owner, 16).ok())
        .flatten()
}

impl Trash {
    /// The trash in `directory`, made if it is not there and `make` says so; `None` if it is not.
    pub(super) fn open(
        directory: &Arc<Directory>,
        name: &OsStr,
        make: bool,
    ) -> Result<Option<Self>, DeleteErrorCause> {
        let mut tries = 1;
        loop {
            match Self::open_or_make(directory, name, make) {
                Err(Errno::NOENT) if !make => return Ok(None),
                // Another has removed it meanwhile, as it was empty.
                Err(Errno::NOENT) if tries < TRIES_MAX => tries += 1,
                opened => return opened.during(DeleteOperation::OpenTrash).map(Some),
            }
        }
    }

    fn open_or_make(directory: &Arc<Directory>, name: &OsStr, make: bool) -> Result<Self, Errno> {
        if make {
            match mkdirat(&directory.fd, name, Mode::RWXU) {
                Ok(()) => directory.flush()?,
                Err(Errno::EXIST) => {}
                Err(errno) => return Err(errno),
            }
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = openat(&directory.fd, name, flags, Mode::empty())?;
        let stat = fstat(&fd)?;
        if stat.st_dev != directory.stat.st_dev {
            return Err(Errno::XDEV);
        }
        // What others may put there would be deleted with our rights.
        let (here, of_all) =
            (geteuid(), Mode::from_raw_mode(stat.st_mode) & (Mode::WGRP | Mode::WOTH));
        if (stat.st_uid != here.as_raw() && !here.is_root()) || !of_all.is_empty() {
            return Err(Errno::PERM);
        }
        Ok(Self { fd, directory: Arc::clone(directory), name: name.to_owned() })
    }

    /// Moves a file here; returns its name here.
    pub(super) fn take(
        &self,
        from: &Directory,
        name: &OsStr,
        names: &mut EntryNames,
    ) -> Result<OsString, Errno> {
        loop {
            let entry = names.next();
            let moved =
                match renameat_with(&from.fd, name, &self.fd, &entry, RenameFlags::NOREPLACE) {
                    // The file system has no such rename; nobody else makes these names.
                    Err(Errno::INVAL | Errno::NOSYS) => renameat(&from.fd, name, &self.fd, &entry),
                    moved => moved,
                };
            match moved {
                Ok(()) => return Ok(entry),
                Err(Errno::EXIST | Errno::INTR) => {}
                Err(errno) => return Err(errno),
            }
        }
    }

    /// Gives back what was taken by mistake.
    pub(super) fn give_back(
        &self,
        entry: &OsStr,
        to: &Directory,
        name: &OsStr,
    ) -> Result<(), Errno> {
        renameat_with(&self.fd, entry, &to.fd, name, RenameFlags::NOREPLACE)
    }

    pub(super) fn stat(&self, entry: &OsStr) -> Result<Stat, Errno> {
        statat(&self.fd, entry, AtFlags::SYMLINK_NOFOLLOW)
    }

    /// Opens an entry to free it.
    pub(super) fn open_entry(&self, entry: &OsStr) -> Result<OwnedFd, Errno> {
        let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        retry_on_intr(|| openat(&self.fd, entry, flags | OFlags::NOCTTY, Mode::empty()))
    }

    /// Removes an entry's name; nothing if another has done it.
    pub(super) fn unlink(&self, entry: &OsStr) -> Result<(), Errno> {
        match unlinkat(&self.fd, entry, AtFlags::empty()) {
            Err(Errno::NOENT) => Ok(()),
            result => result,
        }
    }

    pub(super) fn flush(&self) -> Result<(), Errno> {
        retry_on_intr(|| fsync(&self.fd))
    }

    /// Whether its directory was removed.
    pub(super) fn is_gone(&self) -> bool {
        fstat(&self.fd).is_ok_and(|stat| stat.st_nlink == 0)
    }

    /// Says that a discarder uses it; whether no other does.
    pub(super) fn claim(&self) -> bool {
        let alone = rustix::fs::flock(&self.fd, FlockOperation::NonBlockingLockExclusive).is_ok();
        let _ = rustix::fs::flock(&self.fd, FlockOperation::NonBlockingLockShared);
        alone
    }

    /// Up to `max` entries, but not those of `own`, with what they are; and whether there are more.
    pub(super) fn entries(
        &self,
        own: &EntryNames,
        max: usize,
    ) -> Result<(Vec<(OsString, Stat)>, bool), Errno> {
        let mut found = Vec::new();
        for entry in Dir::read_from(&self.fd)? {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if owner_of(name).is_none() || own.has(name) {
                continue;
            }
            if found.len() >= max {
                return Ok((found, true));
            }
            // It may be gone meanwhile, and directories are not ours.
            match self.stat(name) {
                Ok(stat) if file_type(&stat) != FileType::Directory => {
                    found.push((name.to_owned(), stat));
                }
                Ok(_) | Err(Errno::NOENT) => {}
                Err(errno) => return Err(errno),
            }
        }
        Ok((found, false))
    }

    /// Removes the directory, unless there is something in it or another uses it.
    pub(super) fn remove_if_empty(&self) {
        if rustix::fs::flock(&self.fd, FlockOperation::NonBlockingLockExclusive).is_ok() {
            let _ = unlinkat(&self.directory.fd, &self.name, AtFlags::REMOVEDIR);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_known_by_their_names_alone() {
        let mut names = EntryNames::new(0xabc);
        let one = names.next();
        assert_eq!(one, "forebay-0000000000000abc-1");
        assert_ne!(one, names.next());
        assert!(names.has(&one) && !EntryNames::new(1).has(&one));
        for other in [
            "",
            "forebay-",
            "forebay-abc-1",
            "forebay-0000000000000abc-",
            "forebay-0000000000000abc",
            "forebay-0000000000000ABC-1",
            "forebay-0000000000000abc-1x",
            "xforebay-0000000000000abc-1",
            "forebay-+000000000000abc-1",
            "forebay-0000000000000abc-1-2",
        ] {
            assert_eq!(owner_of(OsStr::new(other)), None, "{other}");
        }
    }
}
