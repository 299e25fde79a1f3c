//! What a queue has dispatched, until the group is told of it.

use crate::budget::{Budget, Dispatched};
use crate::{DiskModel, DiskTime, Op, Time};

/// The group is told of what was dispatched when it is this part of a window,
const TELL_PART: u64 = 16;
/// or after so long: few reads beside many writes have to be known of too.
const TELL_NANOS: u64 = 10_000_000;

/// What a queue has dispatched and not told of yet.
#[derive(Debug)]
pub(super) struct UnreportedDispatch {
    /// Whether anybody wants to know: mixes have prices.
    pub(super) matters: bool,
    dispatched: Dispatched,
    /// It is told of when either is so much disk time, in units,
    units_max: u64,
    /// or then.
    at: Time,
}

impl UnreportedDispatch {
    pub(super) fn new(model: &DiskModel, budget: &Budget) -> Self {
        let matters = model.mix_prices().is_some() && budget.counts_disk_time();
        Self { matters, dispatched: Dispatched::default(), units_max: 0, at: Time::ZERO }
    }

    /// A request went to the disk; whether it is time to tell.
    #[inline]
    pub(super) fn count(&mut self, now: Time, op: Op, cost: DiskTime) -> bool {
        let Self { dispatched, units_max, at, .. } = self;
        let of_op = if op.is_write() { &mut dispatched.writes } else { &mut dispatched.reads };
        *of_op = of_op.saturating_add(cost.units());
        *of_op >= *units_max || now >= *at
    }

    /// What is told now; the next time is a part of `window` later.
    pub(super) fn take(&mut self, now: Time, window: DiskTime) -> Dispatched {
        self.units_max = window.units() / TELL_PART;
        self.at = now.plus_nanos(TELL_NANOS);
        core::mem::take(&mut self.dispatched)
    }
}
