//! Why a backend is not available.

use std::io;

use rustix::io::Errno;

/// Why a backend is not available.
#[derive(Debug)]
pub(super) struct Unavailable {
    /// The error, with its remedy.
    pub(super) error: io::Error,
    /// Whether the backend is permanently refused to this program, so that another try does not
    /// help.
    pub(super) is_refusal: bool,
}

/// Whether an error of the set-up means that the kernel or a filter of system calls refuses the
/// backend. A lack of memory or descriptors is temporary.
pub(super) fn is_forbidden_or_unknown(error: &io::Error) -> bool {
    let errno = Errno::from_io_error(error);
    matches!(errno, Some(Errno::PERM | Errno::ACCESS | Errno::NOSYS | Errno::INVAL))
}
