//! Reads and writes that the kernel first tries to execute without blocking.
//!
//! The kernel always tries this first. It passes operations that would block to a thread of its own
//! (`io-wq`), and does not report it. With `RWF_NOWAIT` the first step is the same, but its failure
//! is reported. The engine counts the failure, and asks for such a thread. This costs nothing for
//! an operation that does not block, and one more submission for an operation that does.

use forebay_core::Op;
use io_uring::squeue::Flags;
use rustix::io::{Errno, ReadWriteFlags};

use crate::engine::operation::Operation;

/// How the kernel is to execute an operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Attempt {
    /// The kernel decides: in the system call, or in a thread of the kernel.
    #[default]
    Unrestricted,
    /// Without blocking, or not at all.
    NonBlocking,
    /// In a thread of the kernel.
    InThread,
}

impl Attempt {
    /// The first attempt for this operation.
    ///
    /// A read through the page cache is left to the kernel, which waits for missing pages without a
    /// thread. An attempt without blocking would return only the pages in memory.
    pub(super) fn first(operation: &Operation) -> Self {
        match operation.transfer() {
            Some((file, op)) if file.may_not_block() && (file.is_direct() || op == Op::Write) => {
                Self::NonBlocking
            }
            _ => Self::Unrestricted,
        }
    }

    /// The attempt after this one, which failed with `error`. `None` if the operation ends with it.
    pub(super) fn next(self, error: Errno) -> Option<Self> {
        match (self, error) {
            (Self::NonBlocking, Errno::AGAIN) => Some(Self::InThread),
            (Self::NonBlocking, Errno::OPNOTSUPP) => Some(Self::Unrestricted),
            _ => None,
        }
    }

    pub(super) const fn rw_flags(self) -> i32 {
        match self {
            Self::NonBlocking => ReadWriteFlags::NOWAIT.bits().cast_signed(),
            Self::Unrestricted | Self::InThread => 0,
        }
    }

    pub(super) const fn flags(self) -> Flags {
        match self {
            Self::InThread => Flags::ASYNC,
            Self::Unrestricted | Self::NonBlocking => Flags::empty(),
        }
    }
}
