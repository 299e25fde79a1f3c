//! Signals of the program, which the library's threads block.

use std::io;
use std::mem::MaybeUninit;
use std::ptr;

use libc::{SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGPROF, SIGSEGV, SIGSYS, SIGTRAP, SIGVTALRM};

/// Signals that stay unblocked: those of a fault in the thread itself, which could otherwise not be
/// reported, and those with which profilers sample threads.
const NOT_BLOCKED: [libc::c_int; 9] =
    [SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGPROF, SIGSEGV, SIGSYS, SIGTRAP, SIGVTALRM];

/// Calls `start`, whose new threads block the signals that are sent to the process.
///
/// A thread that waits for a signal blocks it for a moment, for example while it starts a thread.
/// Without this function, the system may then run the program's handler in the new thread. Nothing
/// would interrupt the wait, and an interpreter such as Python's would see Ctrl-C only when the
/// wait ends.
pub(crate) fn blocked<T>(start: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let _restored = Blocked::new()?;
    start()
}

/// The previous signal mask of the calling thread, which the drop restores.
struct Blocked(libc::sigset_t);

impl Blocked {
    fn new() -> io::Result<Self> {
        let mut signals = MaybeUninit::uninit();
        let mut before = MaybeUninit::uninit();
        // SAFETY: both sets are written before they are read, and live during the calls.
        let (code, before) = unsafe {
            libc::sigfillset(signals.as_mut_ptr());
            for signal in NOT_BLOCKED {
                libc::sigdelset(signals.as_mut_ptr(), signal);
            }
            let set = (signals.as_ptr(), before.as_mut_ptr());
            let code = libc::pthread_sigmask(libc::SIG_BLOCK, set.0, set.1);
            // If the call failed, the set is not used.
            (code, if code == 0 { before.assume_init() } else { signals.assume_init() })
        };
        if code == 0 { Ok(Self(before)) } else { Err(io::Error::from_raw_os_error(code)) }
    }
}

impl Drop for Blocked {
    fn drop(&mut self) {
        // SAFETY: the system has written the set.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.0, ptr::null_mut()) };
    }
}
