//! The file through which the processes that share a disk exchange their demands.
//!
//! It is read and written with system calls. A mapping would end each process that reads it after
//! the file is truncated (`SIGBUS`). An exchange takes some microseconds, 20 times a second. No
//! process waits for another: each writes only its own slot, and a half-written slot is ignored.

use std::env;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use forebay_block::{Machine, Stack};
use rustix::fs::{CWD, FileType, Mode, OFlags, Stat, fstat, ftruncate, mkdir, openat};
use rustix::io::{Errno, pread, pwrite, retry_on_intr};

use super::slot::{SLOT_LEN, Slot};
use crate::sys::fork::ParentFd;
use crate::sys::record_lock;

/// The first bytes of a segment of this version.
const HEADER: &[u8; 24] = b"forebay siblings v000001";
/// The header takes the place of a slot.
const HEADER_LEN: usize = SLOT_LEN;
/// The most processes that share a disk.
pub(crate) const PROCESSES_MAX: usize = 256;
const LEN: usize = HEADER_LEN + PROCESSES_MAX * SLOT_LEN;
/// The permission bit with which any user could change the directory or the file.
const WRITABLE_BY_ALL: u32 = 0o002;
const OPEN_TO_OTHERS: u32 = 0o077;

/// Why a disk is not shared through a segment.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum SharedMemoryError {
    /// A system call failed.
    #[error(
        "{path}: {source}; `shared` can have another `path`, where this user may write and lock \
         files"
    )]
    System {
        /// The segment or its directory.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// Other users could replace the segment.
    #[error("{path}: {why}")]
    Unsafe {
        /// The segment or its directory.
        path: PathBuf,
        /// The reason, and the expected state.
        why: &'static str,
    },
    /// Another version of the library wrote the segment.
    #[error("{path}: a segment of another version of forebay; give these processes another path")]
    Version {
        /// The segment.
        path: PathBuf,
    },
    /// The maximum number of processes uses the segment.
    #[error("{path}: already {PROCESSES_MAX} processes share the disk, which is the maximum")]
    Full {
        /// The segment.
        path: PathBuf,
    },
    /// The disk has no known mountpoint, by which the processes could find its segment.
    #[error(
        "no mountpoint of the disk is known, so `shared` needs a `path`, the same in each process"
    )]
    NoDevice,
}

forebay_core::debug_as_display!(SharedMemoryError);

/// A segment with a slot of this process.
#[derive(Debug)]
pub(crate) struct Segment {
    file: ParentFd,
    pub(crate) path: PathBuf,
    /// The number of the slot, whose first byte is locked as long as the process lives.
    pub(crate) slot: usize,
}

impl Segment {
    /// The segment of the disk below the first mountpoint, in `$XDG_RUNTIME_DIR/forebay` or
    /// `/run/forebay`.
    pub(crate) fn of_disk(machine: &Machine, stacks: &[Stack]) -> Result<Self, SharedMemoryError> {
        let stack = stacks.first().ok_or(SharedMemoryError::NoDevice)?;
        let disk = stack.iostat_disk(machine).map_or(stack.number, |disk| disk.number);
        let runtime_dir = env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
        let runtime_dir = runtime_dir.filter(|dir| dir.is_absolute());
        let dir = runtime_dir.unwrap_or_else(|| PathBuf::from("/run")).join("forebay");
        Self::open(&dir.join(format!("disk-{}-{}", disk.major, disk.minor)), true)
    }

    /// Opens or makes the segment at `path`, and takes a slot. With `makes_dir`, a missing
    /// directory is made.
    pub(crate) fn open(path: &Path, makes_dir: bool) -> Result<Self, SharedMemoryError> {
        let (Some(dir), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(not_safe(path, "not the path of a file"));
        };
        if makes_dir
            && let Err(error) = mkdir(dir, Mode::RWXU)
            && error != Errno::EXIST
        {
            return Err(system(dir, error));
        }
        let flags = OFlags::DIRECTORY | OFlags::PATH | OFlags::CLOEXEC;
        // A directory that the system made may be a link, such as /var/run.
        let flags = if makes_dir { flags | OFlags::NOFOLLOW } else { flags };
        let opened = openat(CWD, dir, flags, Mode::empty()).map_err(|error| system(dir, error))?;
        let stat = fstat(&opened).map_err(|error| system(dir, error))?;
        if stat.st_mode & WRITABLE_BY_ALL != 0 {
            return Err(not_safe(dir, "a directory that every user may write to; choose another"));
        }
        if stat.st_uid != 0 && !is_own(&stat) {
            return Err(not_safe(
                dir,
                "a directory of another user; choose one of this user or root",
            ));
        }
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let flags = flags | OFlags::CLOEXEC | OFlags::NOCTTY;
        let file = openat(&opened, name, flags, Mode::RUSR | Mode::WUSR);
        let file = file.map_err(|error| system(path, error))?;
        check(path, &file)?;
        let slot = take_slot(path, |slot| {
            let range = (offset(slot) as i64, 1);
            record_lock::ask(file.as_fd(), libc::F_OFD_SETLK, libc::F_WRLCK, range).map(drop)
        })?;
        Ok(Self { file: ParentFd::new(file), path: path.to_owned(), slot })
    }

    /// Writes the slot of this process, and repairs the file if others have damaged it.
    pub(crate) fn write(&self, slot: Slot) -> io::Result<()> {
        let stat = fstat(self.file.as_fd())?;
        if stat.st_size != LEN as i64 {
            lay_out(&self.file)?;
        }
        write_all(&self.file, &slot.to_bytes(), offset(self.slot))
    }

    /// Whether the file was removed or replaced, so that new processes open another one.
    pub(crate) fn is_gone(&self) -> bool {
        fstat(self.file.as_fd()).is_ok_and(|stat| stat.st_nlink == 0)
    }

    /// The slots of the other processes.
    pub(crate) fn read(&self) -> io::Result<Vec<(usize, Slot)>> {
        let mut bytes = vec![0; LEN];
        let len = read_all(&self.file, &mut bytes)?;
        let slots = bytes[..len].get(HEADER_LEN..).unwrap_or_default().chunks_exact(SLOT_LEN);
        let said = slots.enumerate().filter(|(number, _)| *number != self.slot);
        Ok(said.filter_map(|(number, bytes)| Some((number, Slot::from_bytes(bytes)?))).collect())
    }

    /// Whether the owner of a slot may be alive: it holds its lock, or a child that it forked does.
    pub(crate) fn has_owner(&self, slot: usize) -> bool {
        record_lock::of_another(self.file.as_fd(), (offset(slot) as i64, 1)).is_some()
    }
}

/// The first slot that `lock` locks.
fn take_slot(
    path: &Path,
    mut lock: impl FnMut(usize) -> io::Result<()>,
) -> Result<usize, SharedMemoryError> {
    for slot in 0..PROCESSES_MAX {
        match lock(slot) {
            Ok(()) => return Ok(slot),
            Err(error) if is_taken(&error) => {}
            Err(source) => return Err(SharedMemoryError::System { path: path.to_owned(), source }),
        }
    }
    Err(SharedMemoryError::Full { path: path.to_owned() })
}

/// Whether another process has the lock.
fn is_taken(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EACCES))
}

const fn offset(slot: usize) -> usize {
    HEADER_LEN + slot * SLOT_LEN
}

/// Checks that this is a segment of this user and version. A new file becomes one.
fn check(path: &Path, file: &OwnedFd) -> Result<(), SharedMemoryError> {
    let stat = fstat(file).map_err(|error| system(path, error))?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(not_safe(path, "not a regular file"));
    }
    if !is_own(&stat) {
        return Err(not_safe(path, "a file of another user; processes of one user share a disk"));
    }
    if stat.st_mode & OPEN_TO_OTHERS != 0 {
        return Err(not_safe(path, "open to other users; expected the mode 0600"));
    }
    let failed = |source| SharedMemoryError::System { path: path.to_owned(), source };
    if stat.st_size == 0 {
        return lay_out(file).map_err(failed);
    }
    let mut header = [0; HEADER.len()];
    read_all(file, &mut header).map_err(failed)?;
    // The header is all zero between the two steps in which the file is made.
    let is_new = header == [0; HEADER.len()];
    if stat.st_size != LEN as i64 || !(is_new || &header == HEADER) {
        return Err(SharedMemoryError::Version { path: path.to_owned() });
    }
    // The process that made the file may have ended there, and another version would use it as its
    // own.
    if is_new { lay_out(file).map_err(failed) } else { Ok(()) }
}

/// Sets the length and the header of a file that is new or was truncated. Several processes may do
/// it at once.
fn lay_out(file: &impl AsFd) -> io::Result<()> {
    retry_on_intr(|| ftruncate(file, LEN as u64))?;
    write_all(file, HEADER, 0)
}

fn write_all(file: &impl AsFd, bytes: &[u8], at: usize) -> io::Result<()> {
    let written = retry_on_intr(|| pwrite(file, bytes, at as u64))?;
    if written == bytes.len() { Ok(()) } else { Err(ErrorKind::WriteZero.into()) }
}

/// Reads from the beginning, up to the end of the file. Returns the number of bytes.
fn read_all(file: &impl AsFd, bytes: &mut [u8]) -> io::Result<usize> {
    let mut len = 0;
    while len < bytes.len() {
        match retry_on_intr(|| pread(file, &mut bytes[len..], len as u64))? {
            0 => break,
            more => len += more,
        }
    }
    Ok(len)
}

fn is_own(stat: &Stat) -> bool {
    stat.st_uid == rustix::process::geteuid().as_raw()
}

fn not_safe(path: &Path, why: &'static str) -> SharedMemoryError {
    SharedMemoryError::Unsafe { path: path.to_owned(), why }
}

fn system(path: &Path, error: Errno) -> SharedMemoryError {
    SharedMemoryError::System { path: path.to_owned(), source: error.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_system_without_locks_is_not_called_full() {
        let of = |code: i32| {
            let taken = take_slot(Path::new("/s"), |_| Err(io::Error::from_raw_os_error(code)));
            taken.unwrap_err().to_string()
        };
        assert!(of(libc::EAGAIN).contains("already 256 processes"));
        let error = of(libc::ENOLCK);
        assert!(error.contains("No locks") && error.contains("another `path`"), "{error}");
    }
}
