//! Explanations of why linux-aio is not available.

use std::io;

use rustix::io::Errno;

use crate::engine::unavailable::{Unavailable, is_forbidden_or_unknown};

/// The meaning of an error of the set-up, with its remedy.
pub(super) fn unavailable(error: &io::Error) -> Unavailable {
    let is_used_up = Errno::from_io_error(error) == Some(Errno::AGAIN);
    Unavailable {
        is_refusal: is_used_up || is_forbidden_or_unknown(error),
        error: io::Error::new(error.kind(), explain(error)),
    }
}

fn explain(error: &io::Error) -> String {
    match Errno::from_io_error(error) {
        Some(Errno::AGAIN) => "no room for linux-aio, as all requests of fs.aio-max-nr are \
            reserved (fs.aio-nr): raise it with sysctl, or have fewer I/O queues"
            .into(),
        Some(Errno::PERM | Errno::ACCESS) => "linux-aio is forbidden, probably by the seccomp \
            filter of a container: allow io_setup, io_submit, io_getevents and io_destroy there"
            .into(),
        Some(Errno::NOSYS) => "there is no linux-aio: use a kernel with CONFIG_AIO; in a \
            container, allow io_setup, io_submit, io_getevents and io_destroy in its seccomp filter"
            .into(),
        Some(Errno::NOMEM) => "no memory for linux-aio: free some".into(),
        Some(Errno::MFILE) => {
            "no descriptors for linux-aio: close some, or raise their limit (ulimit -n)".into()
        }
        _ => format!("linux-aio cannot be set up: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_refusal_says_what_to_do_and_what_passes_is_none() {
        for (errno, is_refusal, advice) in [
            (Errno::AGAIN, true, "fs.aio-max-nr"),
            (Errno::PERM, true, "seccomp"),
            (Errno::ACCESS, true, "seccomp"),
            (Errno::NOSYS, true, "CONFIG_AIO"),
            (Errno::INVAL, true, "Invalid argument"),
            (Errno::NOMEM, false, "memory"),
            (Errno::MFILE, false, "ulimit -n"),
        ] {
            let unavailable = unavailable(&errno.into());
            assert_eq!(unavailable.is_refusal, is_refusal, "{errno}");
            let text = unavailable.error.to_string();
            assert!(text.contains(advice) && text.contains("linux-aio"), "{text}");
        }
    }
}
