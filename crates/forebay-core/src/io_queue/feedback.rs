//! What the queue sees of the disk, for the loop and for the flow ratio.

use super::IoQueue;
use crate::requests::Request;
use crate::{Blocked, Time};

impl IoQueue {
    /// A request has come back after `nanos`, which may be how long its owner
    /// took and not the disk.
    // on the way of each request; other callers are rare
    #[inline(always)]
    pub(super) fn sample(
        &mut self,
        now: Time,
        request: &Request,
        done: bool,
        (nanos, is_known): (u64, bool),
    ) {
        let budget = &self.shared.budget;
        self.sampler.served(request.cost);
        if done
            && let Some(threshold) = budget.threshold_of_load(request.dispatched_at)
            && (is_known || threshold.of_owners)
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

    pub(super) fn update_flow(&mut self, now: Time) {
        let goal = self.shared.budget.effective_goal().as_nanos_ceil();
        self.flow.update(now, goal, self.totals.dispatched, self.totals.completed);
    }
}
