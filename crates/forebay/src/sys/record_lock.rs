//! Record locks of open file descriptions (OFD). The kernel drops them when the last process with
//! the description ends, in whatever way. They also work between containers.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Takes, drops or tests a lock on `len` bytes from `start`: `F_OFD_SETLK` or `F_OFD_GETLK`.
pub(crate) fn ask(
    file: BorrowedFd<'_>,
    command: libc::c_int,
    kind: libc::c_int,
    (start, len): (i64, i64),
) -> io::Result<libc::flock> {
    let mut lock = libc::flock {
        l_type: kind as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: start,
        l_len: len,
        l_pid: 0,
    };
    // SAFETY: both commands take a `struct flock`, and `lock` lives during the call.
    let result = unsafe { libc::fcntl(file.as_raw_fd(), command, &raw mut lock) };
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(lock) }
}

/// The first byte of a lock of another open file description in this range. If there are several
/// locks, it may be that of any of them.
pub(crate) fn of_another(file: BorrowedFd<'_>, range: (i64, i64)) -> Option<i64> {
    let found = ask(file, libc::F_OFD_GETLK, libc::F_WRLCK, range).ok()?;
    (libc::c_int::from(found.l_type) != libc::F_UNLCK).then(|| found.l_start.max(range.0))
}
