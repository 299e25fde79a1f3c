//! Errors of deletions.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::io::Errno;

use crate::permit::AdmitError;
use crate::sys::fork::Forked;
use crate::sys::library_thread::WaitsForItself;

/// Why one path was not deleted. Others are not affected.
///
/// Becomes an [`io::Error`] of the system's kind with `?`.
#[derive(Clone, thiserror::Error)]
#[error("cannot delete {}: {cause}", path.display())]
pub struct DeleteError {
    /// The path as it was given; of a [trash](crate::Deleter::empty_trash), its directory.
    pub path: PathBuf,
    /// The cause of the error.
    #[source]
    pub cause: DeleteErrorCause,
}

/// The cause of an error of a [deletion](crate::Deletion).
#[derive(Clone, thiserror::Error)]
#[non_exhaustive]
pub enum DeleteErrorCause {
    /// A system call failed.
    #[error("{operation}: {}{}", io::Error::from_raw_os_error(*errno), remedy(*errno))]
    System {
        /// The system call's purpose.
        operation: DeleteOperation,
        /// The error number (`errno`).
        errno: i32,
    },
    /// The trash directory cannot be used, or something else has its name.
    #[error("the trash directory {} {fault}", path.display())]
    Trash {
        /// The path of the trash directory.
        path: PathBuf,
        /// Why it cannot be used.
        fault: TrashFault,
    },
    /// It was [cancelled](crate::Deletion::cancel) before the file was touched.
    #[error("cancelled before it began")]
    Cancelled,
    /// The maximum number of files waits already: see
    /// [`files_max`](crate::DeleterOptions::files_max).
    #[error("{max} files wait to be deleted already (DeleterOptions::files_max)")]
    Full {
        /// The maximum.
        max: usize,
    },
    /// The permit for the discards was refused. The file is in the trash, where the next
    /// [`empty_trash`](crate::Deleter::empty_trash) finds it.
    #[error("no permit: {0}")]
    Admission(Arc<AdmitError>),
    /// A waker that a thread of the library runs waited for the deletion, so the thread would wait
    /// for itself. The deletion itself continues.
    #[error("{WaitsForItself}")]
    WaitsForItself,
    /// A bug in forebay ended the thread that deletes. What was moved to a trash is there, and the
    /// next [`empty_trash`](crate::Deleter::empty_trash) finds it.
    #[error("the thread that deletes has panicked, which is a bug in forebay; please report it")]
    Panicked,
    /// The process was forked after it made the deleter, and this is the child.
    #[error(transparent)]
    Forked(#[from] Forked),
}

/// Why a trash directory cannot be used. The message says what to do.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TrashFault {
    /// It is not a directory (`ENOTDIR`).
    #[error(
        "is no directory: rename or remove what is there, or choose another name for the trash"
    )]
    NotADirectory,
    /// It is a symbolic link (`ELOOP`).
    #[error(
        "is a symbolic link, which is not followed: remove the link, and name the directory that \
         the trash is to be in (DeleterOptions::trash_in)"
    )]
    SymbolicLink,
    /// Another user owns it. Files of that user would be deleted with this user's rights (`EPERM`).
    #[error(
        "belongs to user {owner}, and this process is user {user}: delete as user {owner} or as \
         root, have its owner changed, or choose another name for the trash"
    )]
    WrongOwner {
        /// The user id of its owner.
        owner: u32,
        /// The effective user id of the process.
        user: u32,
    },
    /// Users other than its owner may put files there, which would be deleted (`EPERM`).
    #[error(
        "may be written by others than its owner (mode {mode:o}): take that away with `chmod go-w`"
    )]
    WritableByOthers {
        /// Its permission bits.
        mode: u32,
    },
    /// This user may not list it (`EACCES`).
    #[error("may not be read by user {user}: give its owner all rights with `chmod u+rwx`")]
    NotAccessible {
        /// The effective user id of the process.
        user: u32,
    },
}

impl TrashFault {
    fn errno(self) -> Errno {
        match self {
            Self::NotADirectory => Errno::NOTDIR,
            Self::SymbolicLink => Errno::LOOP,
            Self::WrongOwner { .. } | Self::WritableByOthers { .. } => Errno::PERM,
            Self::NotAccessible { .. } => Errno::ACCESS,
        }
    }
}

/// The remedy for an error of the system, if it is always the same.
fn remedy(errno: i32) -> &'static str {
    match Errno::from_raw_os_error(errno) {
        Errno::MFILE => {
            ": this process has reached its limit of open files; raise it (`ulimit -n`, \
             `LimitNOFILE=`)"
        }
        Errno::NFILE => {
            ": this machine has reached its limit of open files; raise the sysctl \
                         `fs.file-max`"
        }
        _ => "",
    }
}

forebay_core::debug_as_display!(DeleteError, DeleteErrorCause, TrashFault);

/// The operations of a deletion, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DeleteOperation {
    /// To start the thread that deletes.
    StartThread,
    /// To look up the path.
    LookUp,
    /// To open the directory of the file.
    OpenDirectory,
    /// To find the disk of the directory.
    FindDisk,
    /// To make or to open the trash directory.
    OpenTrash,
    /// To move the file into the trash directory.
    Rename,
    /// To make the removal of the name durable.
    Flush,
    /// To open the file.
    Open,
    /// To find the file's extents.
    MapExtents,
    /// To free a part of the file.
    Free,
    /// To remove the name.
    Unlink,
    /// To list the files that earlier processes left.
    List,
}

impl fmt::Display for DeleteOperation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::StartThread => "start a thread",
            Self::LookUp => "look it up",
            Self::OpenDirectory => "open its directory",
            Self::FindDisk => "find its disk",
            Self::OpenTrash => "open the trash directory",
            Self::Rename => "move it into the trash directory",
            Self::Flush => "make its removal durable",
            Self::Open => "open it",
            Self::MapExtents => "find its extents",
            Self::Free => "free a part of it",
            Self::Unlink => "unlink it",
            Self::List => "list the files that earlier processes left",
        })
    }
}

impl DeleteError {
    pub(super) fn new(path: &Path, cause: impl Into<DeleteErrorCause>) -> Self {
        Self { path: path.to_owned(), cause: cause.into() }
    }

    /// The `errno` of the error, if a system call failed or the trash directory cannot be used.
    pub fn errno(&self) -> Option<i32> {
        match self.cause {
            DeleteErrorCause::System { errno, .. } => Some(errno),
            DeleteErrorCause::Trash { fault, .. } => Some(fault.errno().raw_os_error()),
            _ => None,
        }
    }
}

impl DeleteErrorCause {
    pub(super) fn io(operation: DeleteOperation, error: &io::Error) -> Self {
        Self::System { operation, errno: error.raw_os_error().unwrap_or(libc::EIO) }
    }
}

/// Adds the purpose of a system call to its error.
pub(super) trait During<T> {
    fn during(self, operation: DeleteOperation) -> Result<T, DeleteErrorCause>;
}

impl<T> During<T> for Result<T, Errno> {
    fn during(self, operation: DeleteOperation) -> Result<T, DeleteErrorCause> {
        self.map_err(|errno| DeleteErrorCause::System { operation, errno: errno.raw_os_error() })
    }
}

impl From<DeleteError> for io::Error {
    fn from(error: DeleteError) -> Self {
        let kind = match (&error.cause, error.errno()) {
            (_, Some(errno)) => Self::from_raw_os_error(errno).kind(),
            (DeleteErrorCause::Cancelled, _) => io::ErrorKind::Interrupted,
            (DeleteErrorCause::WaitsForItself, _) => io::ErrorKind::Deadlock,
            (DeleteErrorCause::Full { .. }, _) => io::ErrorKind::QuotaExceeded,
            _ => io::ErrorKind::Other,
        };
        Self::new(kind, error)
    }
}
