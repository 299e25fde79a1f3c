//! tracefs, seen by this process only.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{CWD, Dir, Mode, OFlags};
use rustix::io::Errno;
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags};

use crate::error::TraceError;

/// The folder of folders for instances.
const INSTANCES: &str = "instances";

/// Where it is mounted by most systems.
const USUAL: &str = "/sys/kernel/tracing";

/// Opens the root of tracefs. It is mounted for this descriptor alone and nowhere in the tree of
/// files, so no name space is needed, nobody sees it, and nothing is left of it however this
/// process ends. Where that is forbidden, the one that is mounted already.
pub(crate) fn open() -> Result<OwnedFd, TraceError> {
    if !rustix::process::geteuid().is_root() {
        return Err(TraceError::NotRoot);
    }
    detached().or_else(|error| {
        let usual = directory(CWD, USUAL);
        let usual = usual.and_then(|root| directory(&root, INSTANCES).map(|_| root));
        usual.map_err(|_| TraceError::NoTracefs(error.into()))
    })
}

fn detached() -> Result<OwnedFd, Errno> {
    let context = rustix::mount::fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    rustix::mount::fsconfig_create(&context)?;
    let attributes = MountAttrFlags::empty();
    rustix::mount::fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)
}

/// Opens a directory.
pub(crate) fn directory(root: impl AsFd, path: &str) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::openat(root, path, flags, Mode::empty())
}

/// The folder of instances.
pub(crate) fn instances(root: &OwnedFd) -> Result<OwnedFd, TraceError> {
    directory(root, INSTANCES).map_err(TraceError::at(INSTANCES))
}

/// Writes a setting.
pub(crate) fn write(root: impl AsFd, path: &str, text: &str) -> Result<(), TraceError> {
    let flags = OFlags::WRONLY | OFlags::TRUNC | OFlags::CLOEXEC;
    let file = rustix::fs::openat(root, path, flags, Mode::empty());
    let written = file.and_then(|file| rustix::io::write(&file, text.as_bytes()));
    written.map(drop).map_err(TraceError::at(path))
}

/// Reads a short file.
pub(crate) fn read(root: impl AsFd, path: &str) -> io::Result<String> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let file = rustix::fs::openat(root, path, flags, Mode::empty())?;
    io::read_to_string(std::fs::File::from(file))
}

/// What is in a directory; nothing where it cannot be read.
pub(crate) fn names(root: impl AsFd, path: &str) -> Vec<String> {
    let entries = directory(root, path).and_then(Dir::read_from);
    let entries = entries.into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}
