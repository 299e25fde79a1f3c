//! What a request asks of the budget, and what becomes of that.

use crate::flow::FlowRatio;
use crate::{DiskTime, Op, Time};

/// A request, as the budget sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Demand {
    pub(crate) cost: DiskTime,
    /// What the pace counts: less where it is known that the disk does not seek.
    pub(crate) paced: DiskTime,
    /// Nothing of its class waited on its shard when it came.
    pub(crate) fresh: bool,
    #[cfg(feature = "history")]
    pub(super) op: Op,
    #[cfg(feature = "history")]
    pub(super) len: u64,
}

impl Demand {
    /// For a request that costs `cost`; what it is counts for some policies.
    #[cfg_attr(not(feature = "history"), expect(unused_variables, reason = "for Little's law"))]
    #[inline(always)]
    pub(crate) const fn new(cost: DiskTime, op: Op, len: u64, fresh: bool) -> Self {
        Self {
            cost,
            paced: cost,
            fresh,
            #[cfg(feature = "history")]
            op,
            #[cfg(feature = "history")]
            len,
        }
    }
}

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
