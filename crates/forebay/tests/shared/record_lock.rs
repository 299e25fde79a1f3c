//! Record locks as another process sees them.

/// Whether a child sees a record lock on the file that it opens, or has, with `descriptor`.
pub(crate) fn is_locked(descriptor: impl FnOnce() -> libc::c_int) -> bool {
    // SAFETY: the child makes system calls alone, on what its parent has allocated.
    unsafe {
        let child = libc::fork();
        if child == 0 {
            let mut lock: libc::flock = std::mem::zeroed();
            lock.l_type = libc::F_WRLCK as libc::c_short;
            let asked = libc::fcntl(descriptor(), libc::F_GETLK, &raw mut lock);
            let is_free = libc::c_int::from(lock.l_type) == libc::F_UNLCK;
            libc::_exit(if asked != 0 { 2 } else { libc::c_int::from(is_free) });
        }
        let mut status = 0;
        assert_eq!(libc::waitpid(child, &raw mut status, 0), child);
        assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) < 2, "{status:x}");
        libc::WEXITSTATUS(status) == 0
    }
}
