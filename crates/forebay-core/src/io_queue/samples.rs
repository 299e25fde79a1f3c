//! What the queue sees of the disk, for the search for the window, the latency target and the flow
//! ratio.

use super::IoQueue;
use crate::budget::{Completed, Threshold};
use crate::requests::Request;
use crate::{Blocked, ClassId, Time};

/// An answer found within this part of the time it took says how long the disk took.
const REAPED_PART: u64 = 8;

/// What is known of how long the disk took for a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct DiskNanos {
    pub(super) most: u64,
    /// It had not answered then; as much as at most where only the owner knows.
    pub(super) least: u64,
    pub(super) is_known: bool,
    /// How long the owner had not looked.
    gap: u64,
}

impl DiskNanos {
    /// Of a request that came back `now` to an owner that looked before at
    /// `previous_poll`; at zero if it does not know of the disk.
    #[inline]
    pub(super) fn between(request: &Request, previous_poll: Time, now: Time) -> Self {
        let most = now.nanos_since(request.dispatched_at);
        let least = match previous_poll {
            Time::ZERO => most,
            _ => previous_poll.nanos_since(request.dispatched_at),
        };
        let gap = now.nanos_since(previous_poll);
        Self { most, least, is_known: gap <= most / REAPED_PART, gap }
    }
}

impl IoQueue {
    /// A request has come back.
    // on the way of each request; other callers are rare
    #[inline(always)]
    pub(super) fn sample(&mut self, now: Time, request: &Request, done: bool, took: DiskNanos) {
        self.sampler.served(request.cost);
        if done
            && let Some(threshold) = self.shared.budget.threshold_of_load(request.dispatched_at)
            && let Some(nanos) = self.targeted_nanos(now, request, threshold, took)
        {
            self.sampler.count(threshold, request.op, nanos);
        }
        if let Some(sample) = self.sampler.take_due(now) {
            self.shared.budget.report(now, sample);
        }
    }

    /// The time of a request that is compared with the latency target: the one in the disk if that
    /// is known, or the one since it was enqueued. `None` if it does not count.
    fn targeted_nanos(
        &mut self,
        now: Time,
        request: &Request,
        threshold: Threshold,
        took: DiskNanos,
    ) -> Option<u64> {
        if !threshold.in_disk {
            let class = &self.classes[ClassId::index_of(request.class)];
            return (!class.waits_for_itself()).then(|| now.nanos_since(request.enqueued_at));
        }
        let was_away = self.looks.was_away(now, took.gap);
        let is_told = took.is_known || threshold.is_told_by_owner(took.least, took.most, was_away);
        is_told.then_some(took.most)
    }

    /// Reports a completed request to the search for the window.
    #[inline]
    pub(super) fn report_to_knee(&mut self, now: Time, request: &Request, done: bool) {
        if !self.shared.budget.searches_knee() {
            return;
        }
        let Request { op, cost, class, nearly_idle, enqueued_at, .. } = *request;
        let is_fresh = request.fresh && done;
        let fresh_nanos = is_fresh.then(|| now.nanos_since(enqueued_at));
        let completed = Completed { op, cost, class, nearly_idle, fresh_nanos };
        if self.sampler.window.add(now, completed) {
            self.shared.budget.report_to_knee(now, &mut self.sampler.window);
        }
    }

    /// Work has to wait.
    pub(super) fn sample_stop(&mut self, now: Time, reason: Blocked) {
        if matches!(reason, Blocked::Window | Blocked::Pace | Blocked::PaceDiskIdle) {
            self.shared.budget.refused(now);
        }
    }

    pub(super) fn update_flow(&mut self, now: Time) {
        let goal = self.shared.budget.effective_goal().as_nanos_ceil();
        self.flow.update(now, goal, self.totals.dispatched, self.totals.completed);
    }
}
