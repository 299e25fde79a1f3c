//! When the threads of queues wake up: this one's by its timer, others because of what it did.

use super::IoQueue;
use crate::Time;
use crate::shard_id::ShardId;

impl IoQueue {
    /// When to call [`poll_dispatch`](Self::poll_dispatch) next, if nothing
    /// happens before: `None` means that only another verb or a wake-up can
    /// change anything. Never earlier than `now`.
    pub fn poll_timeout(&self, now: Time) -> Option<Time> {
        Some(self.timer(now)?.max(now))
    }

    /// Another shard of the group to wake: it waits for room that this queue
    /// has freed. To be asked until it returns `None` after each
    /// [`complete`](Self::complete) and [`poll_dispatch`](Self::poll_dispatch).
    pub fn poll_wake(&mut self) -> Option<ShardId> {
        self.collect_freed();
        let shard = self.wakes.pop()?;
        self.note_wake_ups(1);
        Some(shard)
    }

    /// The owner has woken this number of threads or tasks whose requests are in
    /// the queue: they count among its [wake-ups](crate::QueueCounters::wake_ups).
    pub fn note_wake_ups(&mut self, count: u64) {
        self.totals.wake_ups = self.totals.wake_ups.wrapping_add(count);
    }

    fn timer(&self, now: Time) -> Option<Time> {
        let resume_at = self.stopped.and_then(|(stop, _)| stop.resume_at);
        let overdue_at = self.in_disk.head().map(|oldest| {
            let patience = self.shared.budget.patience_nanos(now);
            let since = self.requests.at(oldest).dispatched_at;
            since.plus_nanos(patience).max(self.give_up_after)
        });
        match (resume_at, overdue_at) {
            (Some(resume), Some(overdue)) => Some(resume.min(overdue)),
            (one, other) => one.or(other),
        }
    }

    /// A turn begins. It is a wake-up if the queue's timer alone has begun it.
    #[inline]
    pub(super) fn note_timer(&mut self, now: Time) {
        let Some((stop, since)) = self.stopped else { return };
        // of several polls in a row the first alone can have been waited for
        let stands = since < now && stop.resume_at.is_none_or(|at| at > since);
        if stands && self.timer(now).is_some_and(|at| since < at && at <= now) {
            self.note_wake_ups(1);
        }
    }

    /// Something changed: the next poll may dispatch, so no timer stands.
    pub(super) fn resume_at_once(&mut self) {
        if let Some((stop, since)) = &mut self.stopped {
            stop.resume_at = Some(*since);
        }
    }
}
