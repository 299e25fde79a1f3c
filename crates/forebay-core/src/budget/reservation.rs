//! What becomes of an attempt to go.

use crate::flow::FlowRatio;
use crate::{DiskTime, Time};

/// While the disk drains, requests take more of the pace by this part.
pub(crate) const DRAIN_PART: u64 = 128;

/// How a queue takes from the budget.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taking<'a> {
    pub(crate) flow: &'a FlowRatio,
    /// The time that the pace makes up for.
    pub(crate) passed: DiskTime,
    /// Whether what is in the disk is to become less.
    pub(crate) drains: bool,
}

impl Taking<'_> {
    /// What a request of this price takes of the pace.
    #[inline]
    pub(super) fn drained(&self, price: DiskTime) -> DiskTime {
        if !self.drains {
            return price;
        }
        DiskTime::from_units(price.units().saturating_add(price.units() / DRAIN_PART))
    }
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
    /// The request may go; it found so much in the disk, `nearly_idle` if it was
    /// almost empty.
    Granted { found: DiskTime, nearly_idle: bool },
    /// The budget is closed.
    Refused(Refusal),
    /// Another queue took the rate between two steps. Room was taken and given
    /// back meanwhile, so queues that found the window full must be woken.
    Undone,
}
