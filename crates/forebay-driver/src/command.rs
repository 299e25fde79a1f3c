//! What is carried out.

use std::fmt;

use forebay_core::{Op, Place};

/// What an engine is asked to do, and what can be cut into parts.
///
/// It owns its buffers: they go with it to the engine and come back with it.
pub trait Command: Sized + fmt::Debug {
    /// Why it failed.
    type Error: fmt::Debug;

    /// What is asked of the disk.
    fn op(&self) -> Op;

    /// Bytes that it is about; zero if it is not about any.
    fn bytes(&self) -> u64;

    /// Where it begins, if it is about bytes that have a place.
    fn place(&self) -> Option<Place>;

    /// Of a discard, how many the disk gets for it: one for each extent.
    fn commands(&self) -> u32 {
        1
    }

    /// Whether it moves data, and so can be done in part.
    fn transfers(&self) -> bool;

    /// What its parts must be multiples of, in bytes (at least 1); `None` if it
    /// is not to be cut.
    fn part_alignment(&self) -> Option<u64>;

    /// A transfer that ends within a block of this many bytes ends at the end of
    /// the file, and cannot go on from there.
    fn transfer_alignment(&self) -> u64;

    /// Keeps the first `at` bytes, and returns the rest: `None` where one of
    /// the two would be nothing, or a part of the command makes no sense.
    fn split_off(&mut self, at: u64) -> Option<Rest<Self>>;

    /// Takes back what [`Command::split_off`] returned, or a rest of that.
    fn unsplit(&mut self, rest: Rest<Self>);

    /// Whether it failed for the moment only (`EAGAIN`, `EINTR`).
    fn is_transient(error: &Self::Error) -> bool;

    /// The error of a command that was cancelled.
    fn cancelled() -> Self::Error;

    /// The error of a write that wrote nothing.
    fn nothing_written() -> Self::Error;
}

/// What comes after a cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rest<C> {
    /// The later part.
    pub command: C,
    /// Whether the cut went through a buffer: the first buffer of the later
    /// part is the rest of the last one of the earlier part.
    pub cuts_buffer: bool,
}

impl<C> Rest<C> {
    /// A command that nothing comes before.
    pub const fn whole(command: C) -> Self {
        Self { command, cuts_buffer: false }
    }
}
