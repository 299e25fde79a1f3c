//! The types that the verbs take and return, and the reasons why nothing is dispatched.
//!
//! Decision: `docs/decisions/0011-bounded-requests.md`.

use core::fmt;

use crate::budget::Demand;
use crate::requests::Request;
use crate::{Blocked, ClassError, ClassId, DiskTime, Op, Time};

/// The most disk time that a request of more than [`COST_UNCHECKED_LEN`] bytes may cost: 60 s. A more
/// expensive one would keep all others from the disk for longer, and a dispatched request cannot be
/// taken back.
pub const REQUEST_COST_MAX: DiskTime = DiskTime::from_nanos(60_000_000_000);
/// The length in bytes (1 MiB) up to which requests are accepted at any cost. On a disk that slow,
/// splitting them would not help.
pub const COST_UNCHECKED_LEN: u64 = 1 << 20;

/// Why a request was not queued.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum EnqueueError {
    /// The queue is full: it holds the configured maximum of requests.
    Full,
    /// The class was removed.
    Class(ClassError),
    /// The request is longer than [`COST_UNCHECKED_LEN`] and costs more than [`REQUEST_COST_MAX`].
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

/// The result of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The request succeeded.
    Done,
    /// The request failed.
    Failed,
}

/// A completed request, and its times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The class in which the request was queued. If that was removed meanwhile, the class that has its
    /// slot now and is charged for the request.
    pub class: ClassId,
    /// Time from `enqueue` to the dispatch, in nanoseconds.
    pub queue_nanos: u64,
    /// Time from the dispatch to `complete`, in nanoseconds.
    pub disk_nanos: u64,
    /// Whether the request had been given up as overdue.
    pub overdue: bool,
    /// The operation.
    pub op: Op,
    /// The length in bytes; 0 for a flush.
    pub len: u64,
}

/// Why nothing is dispatched, and when to poll again if nothing else happens.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stop {
    pub(super) reason: Blocked,
    pub(super) resume_at: Option<Time>,
}

impl Stop {
    pub(super) const fn new(reason: Blocked, resume_at: Option<Time>) -> Self {
        Self { reason, resume_at }
    }

    /// Other shards go first, until `resume_at`.
    pub(super) const fn ahead_until(resume_at: Time) -> Self {
        Self::new(Blocked::FairnessLead, Some(resume_at))
    }

    /// When to poll again, if only time is waited for.
    pub(super) fn waits_for_time(&self) -> Option<Time> {
        match self.reason {
            Blocked::Pace | Blocked::PaceDiskIdle | Blocked::FairnessLead => self.resume_at,
            Blocked::Empty | Blocked::Window | Blocked::ClassLimit => None,
        }
    }
}

/// The demand of a request on the budget.
pub(super) fn demand(request: &Request) -> Demand {
    Demand::new(request.cost, request.op, request.len, request.fresh)
}
