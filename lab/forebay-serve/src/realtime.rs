//! Threads that keep time.

use std::io;
use std::num::NonZeroU64;

/// Above every ordinary thread, below the kernel's interrupt threads (50).
const PRIORITY: i32 = 20;

/// Has the calling thread's timers end when asked, not up to 50 us later, and
/// asks for real-time priority if `wanted`; threads that it starts inherit both.
///
/// # Errors
/// Why it has no real-time priority.
pub(crate) fn enter_if(wanted: bool) -> Result<(), String> {
    // it only fails on kernels without timer slack, which have no delay to take away
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
    if !wanted {
        return Err("not asked for".into());
    }
    enter().map_err(|error| format!("{error}; run as root, or raise `ulimit -r` to {PRIORITY}"))
}

fn enter() -> io::Result<()> {
    // The call itself, since musl refuses it as a function; its parameter holds the priority alone.
    let (call, priority) = (libc::SYS_sched_setscheduler, PRIORITY);
    // SAFETY: 0 names the calling thread, and `priority` lives through the call.
    match unsafe { libc::syscall(call, 0, libc::SCHED_FIFO, &raw const priority) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn real_time_priority_is_taken_or_refused_with_a_reason() {
        // on a thread of its own, since it lasts as long as the thread
        let entered = std::thread::spawn(|| {
            let entered = enter();
            // SAFETY: 0 names the calling thread; the call reads nothing of ours.
            let policy = unsafe { libc::sched_getscheduler(0) };
            (entered.map_err(|error| error.raw_os_error()), policy)
        });
        match entered.join().unwrap() {
            (Ok(()), policy) => assert_eq!(policy, libc::SCHED_FIFO),
            (Err(code), policy) => {
                assert_eq!(code, Some(libc::EPERM));
                assert_ne!(policy, libc::SCHED_FIFO);
            }
        }
    }
}
