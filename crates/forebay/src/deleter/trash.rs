//! Trash directories, in which removed files wait, and in which the next process finds them.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;

use rustix::fs::{
    AtFlags, Dir, FileType, Mode, OFlags, RenameFlags, Stat, fstat, fsync, mkdirat, openat,
    renameat, renameat_with, statat, unlinkat,
};
use rustix::io::{Errno, retry_on_intr};
use rustix::process::geteuid;

use super::claims::Claims;
use super::directory::{Directory, file_type, same_file};
use super::entry_name::{EntryName, EntryNames};
use super::error::{DeleteErrorCause, DeleteOperation, During, TrashFault};
use crate::sys::fork::ParentFd;

/// The most attempts to make it while others remove it.
const TRIES_MAX: u32 = 8;

/// A trash directory.
pub(super) struct Trash {
    pub(super) fd: ParentFd,
    stat: Stat,
    /// The parent directory.
    pub(super) directory: Arc<Directory>,
    /// The owner in the names of entries that this deleter moves there.
    pub(super) owner: u64,
    name: OsString,
}

impl Trash {
    /// The trash in `directory` for the deleter `owner`. If there is none, it is made with `make`,
    /// and otherwise this returns `None`.
    pub(super) fn open(
        directory: &Arc<Directory>,
        name: &OsStr,
        owner: u64,
        make: bool,
    ) -> Result<Option<Self>, DeleteErrorCause> {
        let mut tries = 1;
        let (fd, stat) = loop {
            match open_or_make(directory, name, make) {
                Err(Errno::NOENT) if !make => return Ok(None),
                // Another process has removed the empty directory.
                Err(Errno::NOENT) if tries < TRIES_MAX => tries += 1,
                Ok(opened) => break opened,
                Err(errno) => return Err(why_not_opened(directory, name, errno)),
            }
        };
        check(directory, name, &stat)?;
        let (fd, directory) = (ParentFd::new(fd), Arc::clone(directory));
        let trash = Self { fd, stat, directory, owner, name: name.to_owned() };
        trash.claims().enter(owner);
        Ok(Some(trash))
    }

    /// Moves a file into the trash. Returns the name of its entry.
    pub(super) fn take(
        &self,
        from: &Directory,
        name: &OsStr,
        names: &mut EntryNames,
    ) -> Result<EntryName, Errno> {
        loop {
            let entry = names.next();
            match rename(&from.fd, name, &self.fd, &entry.to_os()) {
                Ok(()) => return Ok(entry),
                Err(Errno::EXIST | Errno::INTR) => {}
                Err(errno) => return Err(errno),
            }
        }
    }

    /// Moves back a directory that was moved here by mistake. Returns whether that is done.
    /// Otherwise another file has taken the name meanwhile, and is the entry now.
    pub(super) fn give_back(
        &self,
        entry: EntryName,
        to: &Directory,
        name: &OsStr,
    ) -> Result<bool, Errno> {
        let back = |flags| renameat_with(&self.fd, entry.to_os(), &to.fd, name, flags);
        match back(RenameFlags::NOREPLACE) {
            Ok(()) => Ok(true),
            Err(Errno::EXIST) => match back(RenameFlags::EXCHANGE) {
                // The name is free again.
                Ok(()) | Err(Errno::NOENT) => Ok(false),
                Err(errno) => Err(errno),
            },
            Err(errno) => Err(errno),
        }
    }

    /// Renames an entry.
    pub(super) fn rename(&self, entry: EntryName, to: EntryName) -> Result<(), Errno> {
        rename(&self.fd, &entry.to_os(), &self.fd, &to.to_os())
    }

    pub(super) fn stat_entry(&self, entry: EntryName) -> Result<Stat, Errno> {
        statat(&self.fd, entry.to_os(), AtFlags::SYMLINK_NOFOLLOW)
    }

    /// Removes an entry's name. It has no effect if another deleter has done so.
    pub(super) fn unlink(&self, entry: EntryName) -> Result<(), Errno> {
        match unlinkat(&self.fd, entry.to_os(), AtFlags::empty()) {
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

    /// Its path, with that of its directory as it was opened.
    pub(super) fn path(&self) -> PathBuf {
        self.directory.path.join(&self.name)
    }

    /// Whether both are the same directory, even if they were opened by different paths.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        same_file(&self.stat, &other.stat)
    }

    pub(super) fn claims(&self) -> Claims<'_> {
        Claims(self.fd.as_fd())
    }

    /// Up to `max` entries that other deleters moved here, and whether there are more.
    pub(super) fn entries_of_others(&self, max: usize) -> Result<(Vec<EntryName>, bool), Errno> {
        let mut found = Vec::new();
        let entries = match Dir::read_from(&self.fd) {
            Err(Errno::NOENT) => return Ok((found, false)),
            entries => entries?,
        };
        for entry in entries {
            let entry = entry?;
            let name = EntryName::parse(OsStr::from_bytes(entry.file_name().to_bytes()));
            // A deleter has no directories as entries.
            let Some(name) = name.filter(|name| {
                name.owner != self.owner && entry.file_type() != FileType::Directory
            }) else {
                continue;
            };
            if found.len() >= max {
                return Ok((found, true));
            }
            found.push(name);
        }
        Ok((found, false))
    }

    /// Removes the directory, unless it has entries or another deleter uses it.
    pub(super) fn remove_if_empty(&self) {
        // The claim is dropped first. If two deleters leave at once, the last one then finds no
        // other.
        self.claims().leave(self.owner);
        if self.claims().others(self.owner).is_empty() {
            let _ = unlinkat(&self.directory.fd, &self.name, AtFlags::REMOVEDIR);
        }
    }
}

fn open_or_make(directory: &Directory, name: &OsStr, make: bool) -> Result<(OwnedFd, Stat), Errno> {
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
    Ok((fd, stat))
}

/// Why the trash cannot be opened: the kind of the file in its place, or the error.
fn why_not_opened(directory: &Directory, name: &OsStr, errno: Errno) -> DeleteErrorCause {
    let user = geteuid().as_raw();
    let there = statat(&directory.fd, name, AtFlags::SYMLINK_NOFOLLOW);
    let fault = there.ok().and_then(|stat| match (errno, file_type(&stat)) {
        // The link is not followed, and is not a directory.
        (Errno::NOTDIR | Errno::LOOP, FileType::Symlink) => Some(TrashFault::SymbolicLink),
        (Errno::NOTDIR, _) => Some(TrashFault::NotADirectory),
        (Errno::ACCESS, _) if stat.st_uid != user => {
            Some(TrashFault::WrongOwner { owner: stat.st_uid, user })
        }
        (Errno::ACCESS, _) => Some(TrashFault::NotAccessible { user }),
        _ => None,
    });
    match fault {
        Some(fault) => DeleteErrorCause::Trash { path: directory.path.join(name), fault },
        None => {
            let (operation, errno) = (DeleteOperation::OpenTrash, errno.raw_os_error());
            DeleteErrorCause::System { operation, errno }
        }
    }
}

/// Checks that no other user can put files into the trash. They would be deleted with this user's
/// rights.
fn check(directory: &Directory, name: &OsStr, stat: &Stat) -> Result<(), DeleteErrorCause> {
    if stat.st_dev != directory.stat.st_dev {
        return Err(Errno::XDEV).during(DeleteOperation::OpenTrash);
    }
    let (here, mode) = (geteuid(), Mode::from_raw_mode(stat.st_mode));
    let fault = if stat.st_uid != here.as_raw() && !here.is_root() {
        TrashFault::WrongOwner { owner: stat.st_uid, user: here.as_raw() }
    } else if mode.intersects(Mode::WGRP | Mode::WOTH) {
        TrashFault::WritableByOthers { mode: mode.bits() & 0o7777 }
    } else {
        return Ok(());
    };
    Err(DeleteErrorCause::Trash { path: directory.path.join(name), fault })
}

/// Renames without replacing a file, if the file system supports that.
fn rename(from: impl AsFd, name: &OsStr, to: impl AsFd, new: &OsStr) -> Result<(), Errno> {
    match renameat_with(&from, name, &to, new, RenameFlags::NOREPLACE) {
        // The file system does not support it. Nobody else uses the names of entries.
        Err(Errno::INVAL | Errno::NOSYS) => renameat(from, name, to, new),
        moved => moved,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::Scheduler;

    /// Otherwise the directory would stay in the trash for ever.
    #[test]
    fn a_directory_that_was_taken_goes_back_although_its_name_was_taken_meanwhile() {
        let dir = tempfile::tempdir().unwrap();
        let scheduler = Scheduler::builder().build().unwrap();
        let class = scheduler.add_class("deletes", 50).unwrap();
        let directory = Arc::new(Directory::open(dir.path(), &class).unwrap());
        let mut names = EntryNames::new(7);
        let (name, of_trash) = (OsStr::new("name"), OsStr::new(".trash"));
        let trash = Trash::open(&directory, of_trash, names.owner, true).unwrap().unwrap();
        let there = dir.path().join(name);
        fs::create_dir_all(there.join("inside")).unwrap();
        let entry = trash.take(&directory, name, &mut names).unwrap();
        fs::write(&there, "newer").unwrap();
        assert!(!trash.give_back(entry, &directory, name).unwrap());
        assert!(there.join("inside").is_dir());
        let newer = dir.path().join(of_trash).join(entry.to_os());
        assert_eq!(fs::read(newer).unwrap(), b"newer");
        let entry = trash.take(&directory, name, &mut names).unwrap();
        assert!(trash.give_back(entry, &directory, name).unwrap());
        assert!(there.join("inside").is_dir());
    }
}
