//! Through a directory and all below it, by descriptors, so that no link leads out of it.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use forebay::TRASH_NAME_DEFAULT;
use rustix::fs::Dir;
use rustix::io::{Errno, fcntl_dupfd_cloexec};

use super::argument::Argument;
use super::deletes::Deletes;
use super::entry::Entry;
use super::levels::{Level, Levels, open};
use super::text::system;
use crate::failure::Failure;

/// A walk through a directory.
pub(super) struct Walk<'a, 'b> {
    deletes: &'a mut Deletes<'b>,
    levels: Levels,
    /// Where it is, for people.
    path: PathBuf,
    /// Whether it goes into other file systems.
    crosses: bool,
    /// Directories in which files wait to be freed: of each file system that it is in the one.
    trashes: Vec<(OwnedFd, PathBuf)>,
}

/// Another descriptor of the same directory.
pub(super) fn dup(fd: impl AsFd) -> Result<OwnedFd, Errno> {
    fcntl_dupfd_cloexec(fd, 0)
}

impl<'a, 'b> Walk<'a, 'b> {
    /// A walk from a directory called `path`, into other file systems if it `crosses`; files wait in
    /// `trash` to be freed.
    pub(super) fn new(
        deletes: &'a mut Deletes<'b>,
        path: PathBuf,
        crosses: bool,
        trash: (OwnedFd, PathBuf),
    ) -> Self {
        Self { deletes, levels: Levels::default(), path, crosses, trashes: vec![trash] }
    }

    /// Deletes it with all that is in it, or as much as can be.
    pub(super) fn run(mut self, argument: &Argument) -> Result<(), Failure> {
        self.go_to_trash()?;
        let Argument { parent, name, entry, .. } = argument;
        if let Err(errno) = self.enter(parent, name, *entry, false)? {
            self.deletes.refused(&self.path, errno);
        }
        while !self.deletes.interrupt.is_raised() {
            let Some(level) = self.levels.last() else { break };
            match level.below.pop() {
                Some(name) => self.down(&name)?,
                None => self.up(parent)?,
            }
        }
        Ok(())
    }

    fn go_to_trash(&mut self) -> Result<(), Failure> {
        let Some((dir, path)) = self.trashes.last() else { return Ok(()) };
        let cannot = |errno| Failure::Run(format!("`{}`: {}", path.display(), system(errno)));
        let dir = dup(dir).map_err(cannot)?;
        self.deletes.go_to(dir, path)
    }

    /// Goes into a directory below.
    fn down(&mut self, name: &OsStr) -> Result<(), Failure> {
        let Some(level) = self.levels.last() else { return Ok(()) };
        let place = level.entry.place;
        let found = level.fd().and_then(dup).and_then(|dir| Ok((Entry::look(&dir, name)?, dir)));
        self.path.push(name);
        let failed = match found {
            Ok((entry, _)) if entry.place != place && !self.crosses => {
                let why = "another file system is mounted there; --cross-file-systems deletes its \
                     contents";
                self.deletes.failed(&self.path, why);
                Ok(())
            }
            Ok((entry, dir)) => match self.enter(&dir, name, entry, entry.place != place)? {
                Ok(()) => return Ok(()),
                failed => failed,
            },
            Err(errno) => Err(errno),
        };
        if let Err(errno) = failed {
            self.deletes.refused(&self.path, errno);
        }
        self.path.pop();
        Ok(())
    }

    /// Goes into a directory, whose path it has already, and tells of the files in it.
    fn enter(
        &mut self,
        dir: impl AsFd,
        name: &OsStr,
        entry: Entry,
        crosses: bool,
    ) -> Result<Result<(), Errno>, Failure> {
        let fd = match open(dir, name, &entry) {
            Ok(fd) => fd,
            Err(errno) => return Ok(Err(errno)),
        };
        if crosses {
            match dup(&fd) {
                Ok(trash) => self.trashes.push((trash, self.path.clone())),
                Err(errno) => return Ok(Err(errno)),
            }
            self.go_to_trash()?;
        }
        let mut level = Level::new(name.to_owned(), entry, fd);
        level.crosses = crosses;
        level.failed_before = self.deletes.counts.failed;
        if let Err(errno) = self.list(&mut level) {
            self.deletes.failed(&self.path, &format!("list it: {}", system(errno)));
        }
        self.deletes.leave();
        self.levels.push(level);
        Ok(Ok(()))
    }

    /// Tells of all in a directory but directories, which are kept for later.
    fn list(&mut self, level: &mut Level) -> Result<(), Errno> {
        let mut below = Vec::new();
        let dir = level.fd()?;
        for item in Dir::read_from(dir)? {
            let item = item?;
            let name = OsStr::from_bytes(item.file_name().to_bytes());
            if name == "." || name == ".." || self.is_trash(&level.entry, name) {
                continue;
            }
            if self.deletes.interrupt.is_raised() {
                break;
            }
            match Entry::look(dir, name) {
                Err(errno) => self.deletes.refused(&self.path.join(name), errno),
                Ok(entry) if entry.is_dir() => below.push(OsString::from(name)),
                Ok(entry) => self.deletes.file(dir, name, &entry, self.path.join(name)),
            }
        }
        level.below = below;
        Ok(())
    }

    /// Whether a name in a directory is that of the trash that is in use.
    fn is_trash(&self, dir: &Entry, name: &OsStr) -> bool {
        name == TRASH_NAME_DEFAULT && self.deletes.is_at(dir)
    }

    /// Leaves a directory of which all is deleted that can be, and deletes it. The topmost is in
    /// `parent`.
    fn up(&mut self, parent: &OwnedFd) -> Result<(), Failure> {
        let Some((level, above)) = self.levels.pop() else { return Ok(()) };
        if self.deletes.is_at(&level.entry) {
            // what waits to be freed is in it
            self.deletes.drain();
        }
        let may_be_full = self.deletes.counts.failed > level.failed_before;
        if !self.deletes.interrupt.is_raised() {
            let above = above.and_then(|()| match self.levels.last() {
                Some(above) => dup(above.fd()?),
                None => dup(parent),
            });
            match above {
                Ok(above) => {
                    self.deletes.directory(&above, &level.name, &self.path, may_be_full);
                }
                Err(errno) => {
                    let why = format!("its directory was moved in the meantime: {}", system(errno));
                    self.deletes.failed(&self.path, &why);
                    self.levels = Levels::default();
                }
            }
        }
        self.path.pop();
        if level.crosses {
            self.trashes.pop();
            self.go_to_trash()?;
        }
        Ok(())
    }
}
