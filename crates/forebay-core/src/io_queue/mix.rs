//! How much of what went to the disk was reads and how much writes, where that
//! sets the price of both.

use super::IoQueue;
use crate::budget::{Budget, Dispatched};
use crate::{DiskModel, DiskTime, Op, Time};

/// The group is told of what was dispatched when it is this part of a window,
const TELL_PART: u64 = 16;
/// or after so long: few reads beside many writes have to be known of too.
const TELL_NANOS: u64 = 10_000_000;

/// What a queue has dispatched and not told of yet.
#[derive(Debug)]
pub(super) struct Untold {
    /// Whether anybody wants to know.
    matters: bool,
    dispatched: Dispatched,
    /// It is told of when it is so much disk time, in units,
    units_max: u64,
    /// or then.
    at: Time,
}

impl Untold {
    pub(super) fn new(model: &DiskModel, budget: &Budget) -> Self {
        let matters = model.mix_prices().is_some() && budget.counts_disk_time();
        let units_max = budget.window().units() / TELL_PART;
        Self { matters, dispatched: Dispatched::default(), units_max, at: Time::ZERO }
    }
}

impl IoQueue {
    /// A request goes to the disk.
    // on the way of each request; the mix matters where there is a region
    #[inline(always)]
    pub(super) fn count_in_mix(&mut self, now: Time, op: Op, cost: DiskTime) {
        if self.untold.matters {
            self.count(now, op, cost);
        }
    }

    #[inline]
    fn count(&mut self, now: Time, op: Op, cost: DiskTime) {
        let Untold { dispatched, units_max, at, .. } = &mut self.untold;
        let of_op = if op.is_write() { &mut dispatched.writes } else { &mut dispatched.reads };
        *of_op = of_op.saturating_add(cost.units());
        if *of_op >= *units_max || now >= *at {
            self.tell_of_mix(now);
        }
    }

    #[cold]
    fn tell_of_mix(&mut self, now: Time) {
        let budget = &self.shared.budget;
        budget.note_mix(now, core::mem::take(&mut self.untold.dispatched));
        self.untold.units_max = budget.window().units() / TELL_PART;
        self.untold.at = now.plus_nanos(TELL_NANOS);
    }
}
