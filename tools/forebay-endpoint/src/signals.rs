//! Signals of the program, which the thread of the endpoint does not take. Threads of `forebay`, which may
//! use this crate, have the same.

use std::io;
use std::mem::MaybeUninit;
use std::ptr;

use libc::{SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGPROF, SIGSEGV, SIGSYS, SIGTRAP, SIGVTALRM};

/// Signals of a fault in the thread itself, which a thread that blocks them cannot report, and
/// those by which profilers sample threads.
const NOT_BLOCKED: [libc::c_int; 9] =
    [SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGPROF, SIGSEGV, SIGSYS, SIGTRAP, SIGVTALRM];

/// Calls `start`, whose new threads block the signals that are sent to the process.
///
/// Without that the system may run the program's handler in such a thread while the thread that
/// waits for the signal blocks it for a moment, as it does while it starts a thread. Nothing would
/// interrupt its wait then, and an interpreter such as Python's sees Ctrl-C only when it ends.
pub(crate) fn blocked<T>(start: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let _restored = Blocked::new()?;
    start()
}

/// The signals that the calling thread blocked before, until it is dropped.
struct Blocked(libc::sigset_t);

impl Blocked {
    fn new() -> io::Result<Self> {
        let mut signals = MaybeUninit::uninit();
        let mut before = MaybeUninit::uninit();
        // SAFETY: both sets are written before they are read, and live for the calls.
        let (code, before) = unsafe {
            libc::sigfillset(signals.as_mut_ptr());
            for signal in NOT_BLOCKED {
                libc::sigdelset(signals.as_mut_ptr(), signal);
            }
            let set = (signals.as_ptr(), before.as_mut_ptr());
            let code = libc::pthread_sigmask(libc::SIG_BLOCK, set.0, set.1);
            // Where it fails, the set is not used.
            (code, if code == 0 { before.assume_init() } else { signals.assume_init() })
        };
        if code == 0 { Ok(Self(before)) } else { Err(io::Error::from_raw_os_error(code)) }
    }
}

impl Drop for Blocked {
    fn drop(&mut self) {
        // SAFETY: the set is one that the system has written.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.0, ptr::null_mut()) };
    }
}
