//! The state file with the old settings of a disk, whose lock allows one governor per disk.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FlockOperation, Mode, OFlags};
use rustix::io::{Errno, retry_on_intr};

use crate::error::GovernError;

/// The directory of the state files of all disks.
pub(crate) const STATE_DIRECTORY: &str = "/run/forebay";

/// The state file of one disk, locked while this value lives.
#[derive(Debug)]
pub(crate) struct StateFile {
    dir: OwnedFd,
    /// Its path.
    pub(crate) path: PathBuf,
    name: String,
    _lock: OwnedFd,
}

impl StateFile {
    /// Locks the file of a disk in `dir`, which is created if it is missing.
    pub(crate) fn lock(dir: &Path, disk: &str) -> Result<Self, GovernError> {
        let path = dir.join(format!("{disk}.json"));
        let at = |error: Errno| GovernError::at(dir)(error.into());
        match rustix::fs::mkdir(dir, Mode::from_raw_mode(0o755)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(at(error)),
        }
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = rustix::fs::open(dir, flags, Mode::empty()).map_err(at)?;
        let stat = rustix::fs::fstat(&opened).map_err(at)?;
        if stat.st_uid != rustix::process::geteuid().as_raw() || stat.st_mode & 0o022 != 0 {
            let dir = dir.display();
            return Err(GovernError::Missing(format!(
                "others may write to {dir}; give it to root alone: chown root {dir}; chmod 755 {dir}"
            )));
        }
        let lock =
            open(&opened, &format!("{disk}.lock"), OFlags::RDWR | OFlags::CREATE).map_err(at)?;
        match rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Self { dir: opened, path, name: format!("{disk}.json"), _lock: lock }),
            Err(Errno::WOULDBLOCK) => Err(GovernError::Missing(format!(
                "{disk} already has a governor; end that one first"
            ))),
            Err(error) => Err(at(error)),
        }
    }

    /// Its text. `None` if the file is missing.
    pub(crate) fn read(&self) -> Result<Option<String>, GovernError> {
        match open(&self.dir, &self.name, OFlags::RDONLY) {
            Ok(file) => io::read_to_string(File::from(file)).map(Some),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
        .map_err(GovernError::at(&self.path))
    }

    /// What is in the files of other disks.
    pub(crate) fn others(&self) -> Vec<String> {
        let entries = Dir::read_from(&self.dir).into_iter().flatten().flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        let names = names.filter(|name| name.ends_with(".json") && *name != self.name);
        let open = |name: String| open(&self.dir, &name, OFlags::RDONLY).ok();
        names.filter_map(|name| io::read_to_string(File::from(open(name)?)).ok()).collect()
    }

    /// Waits until no other governor puts settings back, and keeps others from it while the result lives.
    pub(crate) fn put_back_alone(&self) -> Result<OwnedFd, GovernError> {
        let lock = || {
            let dir = open(&self.dir, ".", OFlags::DIRECTORY)?;
            retry_on_intr(|| rustix::fs::flock(&dir, FlockOperation::LockExclusive))?;
            Ok(dir)
        };
        lock().map_err(|error: Errno| GovernError::at(&self.path)(error.into()))
    }

    /// Replaces its text atomically.
    pub(crate) fn write(&self, text: &str) -> Result<(), GovernError> {
        let new = format!("{}.new", self.name);
        let write = || {
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC;
            let mut file = File::from(open(&self.dir, &new, flags)?);
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            rustix::fs::renameat(&self.dir, &new, &self.dir, &self.name).map_err(io::Error::from)
        };
        write().map_err(GovernError::at(&self.path))
    }

    pub(crate) fn remove(&self) -> Result<(), GovernError> {
        match rustix::fs::unlinkat(&self.dir, &self.name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(GovernError::at(&self.path)(error.into())),
        }
    }
}

fn open(dir: &OwnedFd, name: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
    let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(dir, name, flags, Mode::RUSR | Mode::WUSR)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

    use super::*;

    #[test]
    fn a_disk_has_one_governor() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().join("forebay");
        let first = StateFile::lock(&dir, "sda").unwrap();
        let said = StateFile::lock(&dir, "sda").unwrap_err().to_string();
        assert!(said.contains("sda already has a governor"), "{said}");
        StateFile::lock(&dir, "sdb").unwrap();
        drop(first);
        StateFile::lock(&dir, "sda").unwrap();
    }

    #[test]
    fn only_the_owner_may_read_the_file_and_links_are_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        let file = StateFile::lock(dir.path(), "sda").unwrap();
        assert_eq!(file.read().unwrap(), None);
        for text in ["one", "another one"] {
            file.write(text).unwrap();
            assert_eq!(file.read().unwrap().as_deref(), Some(text));
        }
        assert_eq!(file.path.metadata().unwrap().mode() & 0o777, 0o600);
        file.remove().unwrap();
        let other = dir.path().join("other");
        std::fs::write(&other, "kept").unwrap();
        for name in ["sda.json", "sda.json.new"] {
            symlink(&other, dir.path().join(name)).unwrap();
        }
        assert!(file.read().is_err() && file.write("text").is_err());
        assert_eq!(std::fs::read_to_string(&other).unwrap(), "kept");
    }

    #[test]
    fn a_directory_that_others_may_write_to_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
        let said = StateFile::lock(dir.path(), "sda").unwrap_err().to_string();
        assert!(said.contains("others may write") && said.contains("chown root"), "{said}");
    }
}
