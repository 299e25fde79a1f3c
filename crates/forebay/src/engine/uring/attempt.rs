//! Reads and writes that the kernel is first asked to execute without blocking.
//!
//! The kernel tries that by itself with each of them, and hands what would block over to a thread
//! of its own (`io-wq`), without a word. With `RWF_NOWAIT` the first step is the same, and its
//! failure is reported: the engine counts it, and asks for such a thread. An operation that does
//! not block costs no more than without; one that does costs a submission more.

use forebay_core::Op;
use io_uring::squeue::Flags;
use rustix::io::{Errno, ReadWriteFlags};

use crate::engine::operation::Operation;

/// How the kernel is asked to execute an operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Attempt {
    /// As the kernel decides: where it stands, or in one of its threads.
    #[default]
    Unrestricted,
    /// Where it does not block, or else not at all.
    NonBlocking,
    /// In one of the kernel's threads.
    InThread,
}

impl Attempt {
    /// The first attempt for this operation.
    ///
    /// A read through the page cache is left to the kernel: it waits for the pages that are
    /// missing without a thread, and would otherwise return those in memory alone.
    pub(super) fn first(operation: &Operation) -> Self {
        match operation.transfer() {
            Some((file, op)) if file.may_not_block() && (file.is_direct() || op == Op::Write) => {
                Self::NonBlocking
            }
            _ => Self::Unrestricted,
        }
    }

    /// The attempt after this one, which ended with `error`; `None` if that is the operation's end.
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
