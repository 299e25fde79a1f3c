//! How much of what went to the disk was reads and how much writes, where that
//! sets the price of both.

use super::IoQueue;
use crate::{DiskTime, Op, Time};

impl IoQueue {
    /// A request goes to the disk.
    // on the way of each request; the mix matters where there is a region
    #[inline(always)]
    pub(super) fn count_in_mix(&mut self, now: Time, op: Op, cost: DiskTime) {
        if self.unreported.matters && self.unreported.count(now, op, cost) {
            self.report_mix(now);
        }
    }

    #[cold]
    fn report_mix(&mut self, now: Time) {
        let budget = &self.shared.budget;
        budget.note_mix(now, self.unreported.take(now, budget.window()));
    }
}
