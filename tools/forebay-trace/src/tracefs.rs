//! tracefs, seen by this process only.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use std::path::Path;

use rustix::fs::{CWD, Dir, Mode, OFlags};
use rustix::io::Errno;
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags};
use rustix::path::Arg;

use crate::error::TraceError;

/// The folder of folders for instances.
const INSTANCES: &str = "instances";

/// Where it is mounted by most systems.
const USUAL: &str = "/sys/kernel/tracing";

/// Its root, whose files all programs share that trace.
#[derive(Debug)]
pub struct Tracefs {
    root: OwnedFd,
}

impl Tracefs {
    /// Opens it; it need not be mounted.
    ///
    /// # Errors
    /// This process is not root's, or the kernel has none.
    pub fn open() -> Result<Self, TraceError> {
        open().map(|root| Self { root })
    }

    /// Reads a short file.
    ///
    /// # Errors
    /// There is none, or it cannot be read.
    pub fn read(&self, path: &Path) -> io::Result<String> {
        read(&self.root, path)
    }

    /// Writes a setting.
    ///
    /// # Errors
    /// There is none, or the kernel does not take the text.
    pub fn write(&self, path: &Path, text: &str) -> io::Result<()> {
        let flags = OFlags::WRONLY | OFlags::TRUNC | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.root, path, flags, Mode::empty())?;
        rustix::io::write(&file, text.as_bytes())?;
        Ok(())
    }

    /// What is traced from now on; who reads it does not wait, and takes it from all others.
    ///
    /// # Errors
    /// The kernel does not let it read.
    pub fn pipe(&self) -> io::Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        Ok(rustix::fs::openat(&self.root, "trace_pipe", flags, Mode::empty())?)
    }

    /// How many events found no room in the kernel's buffer so far.
    pub fn lost_events(&self) -> u64 {
        lost_events(&self.root)
    }
}

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
pub(crate) fn read(root: impl AsFd, path: impl Arg) -> io::Result<String> {
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

/// How many events of all processors were lost.
pub(crate) fn lost_events(root: &OwnedFd) -> u64 {
    let stats = names(root, "per_cpu")
        .into_iter()
        .filter_map(|processor| read(root, format!("per_cpu/{processor}/stats")).ok());
    stats.map(|stats| lost_of(&stats)).fold(0, u64::saturating_add)
}

/// The events that `stats` of a processor counts as lost.
fn lost_of(stats: &str) -> u64 {
    let lines = stats.lines().filter_map(|line| line.split_once(": "));
    let lost =
        lines.filter(|(name, _)| matches!(*name, "overrun" | "commit overrun" | "dropped events"));
    lost.filter_map(|(_, count)| count.trim().parse::<u64>().ok()).fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_kinds_of_lost_events_count() {
        let stats = "entries: 9\noverrun: 3\ncommit overrun: 1\nbytes: 77\n\
                     oldest event ts:     5.000000\ndropped events: 2\nread events: 40\n";
        assert_eq!(lost_of(stats), 6);
        assert_eq!(lost_of("overrun: -1\ndropped events: x"), 0);
    }
}
