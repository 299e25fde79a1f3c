//! What the verbs take and return, and why nothing goes.
//!
//! Decision: `docs/decisions/0011-bounded-requests.md`.

use core::fmt;

use crate::budget::Demand;
use crate::requests::Request;
use crate::{Blocked, ClassError, ClassId, DiskTime, Op, Time};

/// The most disk time that a request of more than [`COST_UNCHECKED_LEN`] may
/// cost: 60 s. A dearer one would keep all others from the disk for longer, and
/// nothing that was dispatched is taken back.
pub const REQUEST_COST_MAX: DiskTime = DiskTime::from_nanos(60_000_000_000);
/// Requests up to this length, in bytes, are taken however slow the disk is
/// said to be: to split them would not help.
pub const COST_UNCHECKED_LEN: u64 = 1 << 20;

/// Why a request was not queued.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum EnqueueError {
    /// The queue holds as many requests as it was configured for.
    Full,
    /// The class was removed.
    Class(ClassError),
    /// It is longer than [`COST_UNCHECKED_LEN`] and costs more than
    /// [`REQUEST_COST_MAX`].
    TooCostly {
        /// The operation.
        op: Op,
        /// Its length, in bytes.
        len: u64,
    },
}

impl fmt::Display for EnqueueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full => write!(f, "the I/O queue is full: wait for completions"),
            Self::Class(error) => write!(f, "{error}"),
            Self::TooCostly { op, len } => write!(
                f,
                "a {op:?} of {len} bytes takes the disk more than {} s: split it",
                REQUEST_COST_MAX.as_nanos_ceil() / 1_000_000_000
            ),
        }
    }
}

impl core::error::Error for EnqueueError {}

/// A ticket that names no request in the state that the call needs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct StaleTicket;

crate::error_text::debug_as_display!(EnqueueError, StaleTicket);

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
    /// What it was.
    pub op: Op,
    /// Its bytes; 0 for a flush.
    pub len: u64,
}

/// Why nothing goes, and when to look again if nothing else happens.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stop {
    pub(super) reason: Blocked,
    pub(super) resume_at: Option<Time>,
}

impl Stop {
    pub(super) const fn new(reason: Blocked, resume_at: Option<Time>) -> Self {
        Self { reason, resume_at }
    }

    /// Other shards go first, until then.
    pub(super) const fn ahead_until(resume_at: Time) -> Self {
        Self::new(Blocked::FairnessLead, Some(resume_at))
    }

    /// When to look again, if only time is waited for.
    pub(super) fn waits_for_time(&self) -> Option<Time> {
        match self.reason {
            Blocked::Pace | Blocked::PaceDiskIdle | Blocked::FairnessLead => self.resume_at,
            Blocked::Empty | Blocked::Window | Blocked::ClassLimit => None,
        }
    }
}

/// What a request takes of the budget.
pub(super) fn demand(request: &Request) -> Demand {
    Demand::new(request.cost, request.op, request.len, request.fresh)
}
