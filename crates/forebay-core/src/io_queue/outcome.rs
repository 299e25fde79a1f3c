//! What the verbs answer.

use core::fmt;

use crate::{ClassError, ClassId};

/// Why a request was not queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EnqueueError {
    /// The queue holds as many requests as it was configured for.
    Full,
    /// The class was removed.
    Class(ClassError),
}

impl fmt::Display for EnqueueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full => write!(f, "the I/O queue is full: wait for completions"),
            Self::Class(error) => write!(f, "{error}"),
        }
    }
}

impl core::error::Error for EnqueueError {}

/// A ticket that names no request in the state that the call needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StaleTicket;

impl fmt::Display for StaleTicket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the ticket names no request in the disk")
    }
}

impl core::error::Error for StaleTicket {}

/// How the disk answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It did what was asked.
    Done,
    /// It failed.
    Failed,
}

/// What a request went through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The class it was queued in; or, if that was removed meanwhile, the one
    /// that has its place and is charged with it.
    pub class: ClassId,
    /// From `enqueue` to its dispatch, in nanoseconds.
    pub queue_nanos: u64,
    /// From its dispatch to `complete`, in nanoseconds.
    pub disk_nanos: u64,
    /// Whether the window had given it up.
    pub overdue: bool,
}
