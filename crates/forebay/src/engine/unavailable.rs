//! Why a backend cannot be had.

use std::io;

use rustix::io::Errno;

/// Why a backend cannot be had.
#[derive(Debug)]
pub(super) struct Unavailable {
    /// With what to do about it.
    pub(super) error: io::Error,
    /// Whether this program cannot have it at all: trying again does not help.
    pub(super) is_refusal: bool,
}

/// Whether an error of the set-up says that the kernel, or a filter of system
/// calls, keeps the backend from this program: one of memory or descriptors
/// passes.
pub(super) fn is_forbidden_or_unknown(error: &io::Error) -> bool {
    let errno = Errno::from_io_error(error);
    matches!(errno, Some(Errno::PERM | Errno::ACCESS | Errno::NOSYS | Errno::INVAL))
}
