//! What becomes of an attempt to go.

use crate::flow::FlowRatio;
use crate::{DiskTime, Time};

/// How a queue takes from the budget.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChargeContext<'a> {
    pub(crate) flow: &'a FlowRatio,
    /// The time that the pace makes up for.
    pub(crate) passed: DiskTime,
}

/// Why the budget let nothing through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The rate is used up; it is open again at this time.
    Pace(Time),
    /// Too much is unfinished; it opens when something completes.
    Window,
}

/// What became of an attempt to reserve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reservation {
    /// The request may go; `nearly_idle` if it found the disk almost empty.
    Granted { nearly_idle: bool },
    /// The budget is closed.
    Refused(Refusal),
    /// Another queue took the rate between two steps. Room was taken and given
    /// back meanwhile, so queues that found the window full must be woken.
    LostRace,
}
