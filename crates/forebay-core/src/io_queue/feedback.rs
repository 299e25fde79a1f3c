//! What the queue sees of the disk, told to the loop.

use super::{IoQueue, Outcome};
use crate::requests::Request;
use crate::{Blocked, Time};

impl IoQueue {
    /// A request has come back after `disk_nanos`.
    // on the way of each request; other callers are rare
    #[inline(always)]
    pub(super) fn sample(&mut self, now: Time, request: &Request, outcome: Outcome, nanos: u64) {
        let budget = &self.shared.budget;
        self.sampler.served(request.cost);
        if outcome == Outcome::Done
            && let Some(threshold) = budget.threshold_of_load(request.dispatched_at)
        {
            self.sampler.count(threshold, request.op, nanos);
        }
        if let Some(sample) = self.sampler.take_due(now) {
            budget.tell(now, sample);
        }
    }

    /// Work has to wait.
    pub(super) fn sample_stop(&mut self, now: Time, reason: Blocked) {
        if self.sampler.waits(reason) {
            self.shared.budget.refused(now);
        }
    }
}
