//! Directories in which files are deleted.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use forebay_block::{BlockDevice, Machine, Stack};
use rustix::fs::{CWD, FileType, Mode, OFlags, Stat, fstat, fsync, openat};
use rustix::io::Errno;

use super::error::{DeleteErrorCause, DeleteOperation, During};
use crate::{Class, Scheduler};

/// An open directory in which files are deleted.
pub(super) struct Directory {
    /// The path with which it was opened.
    pub(super) path: PathBuf,
    pub(super) fd: OwnedFd,
    pub(super) stat: Stat,
    /// The class, on the disk of the directory.
    pub(super) class: Class,
    /// Whether freed blocks are discarded.
    pub(super) discards: bool,
    /// A directory that may be searched but not listed cannot be flushed.
    is_readable: bool,
}

/// Splits a path into its directory and the name in it.
pub(super) fn split(path: &Path) -> Result<(PathBuf, OsString), Errno> {
    let bytes = path.as_os_str().as_bytes();
    if bytes.is_empty() {
        return Err(Errno::NOENT);
    }
    if bytes.contains(&0) {
        return Err(Errno::INVAL);
    }
    let begin = bytes.iter().rposition(|byte| *byte == b'/').map_or(0, |at| at + 1);
    let name = &bytes[begin..];
    if matches!(name, b"" | b"." | b"..") {
        let is_dir = path.symlink_metadata().is_ok_and(|metadata| metadata.is_dir());
        return Err(if is_dir { Errno::ISDIR } else { Errno::NOTDIR });
    }
    let directory =
        if begin == 0 { Path::new(".") } else { Path::new(OsStr::from_bytes(&bytes[..begin])) };
    Ok((directory.to_owned(), OsStr::from_bytes(name).to_owned()))
}

impl Directory {
    pub(super) fn open(path: &Path, class: &Class) -> Result<Self, DeleteErrorCause> {
        let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
        let open = |more| openat(CWD, path, flags | more, Mode::empty());
        let (fd, is_readable) = match open(OFlags::RDONLY) {
            Err(Errno::ACCESS) => {
                (open(OFlags::PATH).during(DeleteOperation::OpenDirectory)?, false)
            }
            fd => (fd.during(DeleteOperation::OpenDirectory)?, true),
        };
        let stat = fstat(&fd).during(DeleteOperation::OpenDirectory)?;
        let looked_up = |error| DeleteErrorCause::io(DeleteOperation::FindDisk, &error);
        let disk = Scheduler::of(&class.scheduler).disk_of_file(&fd).map_err(looked_up)?;
        let class = Class { disk: Arc::clone(&disk.record), ..class.clone() };
        let machine = Machine::this();
        let discards =
            Stack::of_file(&machine, fd.as_fd()).is_ok_and(|stack| discards(&machine, &stack));
        Ok(Self { path: path.to_owned(), fd, stat, class, discards, is_readable })
    }

    /// Makes changes of the directory durable.
    pub(super) fn flush(&self) -> Result<(), Errno> {
        if self.is_readable { rustix::io::retry_on_intr(|| fsync(&self.fd)) } else { Ok(()) }
    }
}

/// Whether deletes send discards: the file system is mounted with `discard`, and its device
/// supports them.
fn discards(machine: &Machine, stack: &Stack) -> bool {
    let takes = || {
        let device = BlockDevice::find(machine, stack.block_device()?)?;
        device.queue_number(machine, "discard_max_bytes")
    };
    stack.mount.as_ref().is_some_and(|mount| mount.discards())
        && takes().is_some_and(|most| most > 0)
}

pub(super) fn same_file(one: &Stat, other: &Stat) -> bool {
    (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino)
}

pub(super) fn file_type(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

/// The allocated size of a file, in bytes.
pub(super) fn allocated(stat: &Stat) -> u64 {
    u64::try_from(stat.st_blocks).unwrap_or(0).saturating_mul(512)
}
