//! Whether a file is open elsewhere.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::thread;
use std::time::Duration;

use rustix::fs::{Mode, OFlags, openat};
use rustix::io::{Errno, retry_on_intr};

use crate::page_cache::DiskFiles;

/// The `fcntl` command that sets the signal of a file description.
const F_SETSIG: libc::c_int = 10;

/// The total time for which the leases of one batch are retried. A child of this process has copies
/// of all descriptors between its fork and its exec, so files that the engine has closed are open
/// there for some milliseconds. A file that is in use for longer delays the batch by this time.
const CHILD_EXEC_MAX: Duration = Duration::from_millis(20);
/// The time between two attempts to take a lease.
const LEASE_RETRY: Duration = Duration::from_millis(1);

/// Why a file is not open for its deleter alone.
pub(super) enum OpenFailure {
    /// It cannot be opened.
    Refused(Errno),
    /// The file is open elsewhere, or the system cannot tell.
    InUse,
}

/// Opens the files `names`, in this order, to free them, and [takes leases](take). This process may
/// also have them open, with record locks. Closing a descriptor of such a file in the process's
/// table would end the locks. So a file comes to that table only if nobody else has it open.
pub(super) fn open_all(
    files: &DiskFiles,
    directory: BorrowedFd<'_>,
    names: Vec<OsString>,
) -> Vec<Result<OwnedFd, OpenFailure>> {
    let full = || Err(OpenFailure::Refused(Errno::MFILE));
    let count = names.len();
    let open = move |directory: BorrowedFd<'_>| {
        let mut wait_left = CHILD_EXEC_MAX;
        names.iter().map(|name| open(directory, name, &mut wait_left)).collect::<Vec<_>>()
    };
    match files.open_in(directory, open) {
        Some(opened) => {
            let received = |file: Option<OwnedFd>| file.map_or_else(full, Ok);
            opened.into_iter().map(|file| file.and_then(received)).collect()
        }
        None => (0..count).map(|_| full()).collect(),
    }
}

/// Opens one file and takes its lease. It waits for the lease for at most `wait_left`, and
/// subtracts the waiting time from it.
fn open(
    directory: BorrowedFd<'_>,
    name: &OsStr,
    wait_left: &mut Duration,
) -> Result<OwnedFd, OpenFailure> {
    let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let flags = flags | OFlags::NOCTTY;
    let opened = retry_on_intr(|| openat(directory, name, flags, Mode::empty()));
    let file = opened.map_err(OpenFailure::Refused)?;
    loop {
        match take(file.as_fd()) {
            Ok(()) => return Ok(file),
            Err(Errno::AGAIN) if !wait_left.is_zero() => {
                thread::sleep(LEASE_RETRY);
                *wait_left = wait_left.saturating_sub(LEASE_RETRY);
            }
            Err(_) => return Err(OpenFailure::InUse),
        }
    }
}

/// Takes a write lease on an open file. It fails with `EAGAIN` if the file is open elsewhere, and
/// with other errors if the system cannot tell. The lease ends with the descriptor. Until then,
/// programs that open the file wait.
fn take(file: BorrowedFd<'_>) -> Result<(), Errno> {
    let fd = file.as_raw_fd();
    // When a program wants to open the file, the kernel sends a signal, which by default would end
    // the process. So the signal becomes SIGURG, which is ignored by default, and then it has no
    // receiver. `is_kept` polls instead. SAFETY: these calls take numbers and change only the open
    // file description.
    unsafe {
        check(libc::fcntl(fd, F_SETSIG, libc::SIGURG))?;
        check(libc::fcntl(fd, libc::F_SETLEASE, libc::F_WRLCK))?;
        check(libc::fcntl(fd, libc::F_SETOWN, 0))?;
    }
    // A program may have opened it before the receiver was removed.
    if is_kept(file) { Ok(()) } else { Err(Errno::AGAIN) }
}

/// Whether no program waits to open the file.
pub(super) fn is_kept(file: BorrowedFd<'_>) -> bool {
    // SAFETY: the call takes numbers and changes nothing.
    let lease = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GETLEASE) };
    lease == libc::F_WRLCK
}

fn check(result: libc::c_int) -> Result<(), Errno> {
    let failed = || std::io::Error::last_os_error();
    if result == -1 { Err(Errno::from_io_error(&failed()).unwrap_or(Errno::IO)) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::time::Instant;

    use super::*;

    #[test]
    fn a_file_that_is_open_elsewhere_is_known() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let open =
            || File::options().read(true).write(true).create(true).truncate(false).open(&path);
        let file = open().unwrap();
        let other = File::open(&path).unwrap();
        match take(file.as_fd()) {
            Err(Errno::AGAIN) => {}
            // Some file systems have no leases.
            Err(errno) => return eprintln!("skipped: {errno}"),
            Ok(()) => panic!("it is open elsewhere"),
        }
        drop(other);
        take(file.as_fd()).unwrap();
        assert!(is_kept(file.as_fd()));
    }

    /// Holds a file open like a child of this process before its exec.
    #[test]
    fn a_file_that_is_closed_elsewhere_meanwhile_is_opened() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        if let Err(errno) = take(File::create_new(dir.path().join("probe")).unwrap().as_fd()) {
            return eprintln!("skipped: {errno}");
        }
        let other = File::create_new(&path).unwrap();
        let dir = File::open(dir.path()).unwrap();
        let mut wait_left = Duration::ZERO;
        let opened = open(dir.as_fd(), OsStr::new("file"), &mut wait_left);
        assert!(matches!(opened, Err(OpenFailure::InUse)));
        let closer = thread::spawn(move || {
            thread::sleep(Duration::from_millis(50));
            drop(other);
        });
        wait_left = Duration::from_secs(60);
        let opened = open(dir.as_fd(), OsStr::new("file"), &mut wait_left);
        assert!(opened.is_ok() && wait_left < Duration::from_secs(60));
        closer.join().unwrap();
    }

    /// The default action of the signal would end this process.
    #[test]
    fn opening_a_leased_file_waits_and_sends_no_signal() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let file = File::options().read(true).write(true).create_new(true).open(&path).unwrap();
        if let Err(errno) = take(file.as_fd()) {
            return eprintln!("skipped: {errno}");
        }
        let opener = thread::spawn(move || File::open(path).unwrap());
        let begin = Instant::now();
        while is_kept(file.as_fd()) {
            assert!(begin.elapsed() < Duration::from_secs(30), "nobody came");
            thread::sleep(Duration::from_millis(1));
        }
        drop(file);
        drop(opener.join().unwrap());
    }
}
