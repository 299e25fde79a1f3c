//! What comes of a shard's run.

use forebay_core::{DiskTime, QueueCounters, Time};
use forebay_load::recorder::Recorder;

use super::job::Failures;
use super::{Lane, Shard};

/// What a shard brings home.
#[derive(Debug)]
pub(in crate::bench) struct ShardOutcome {
    pub(in crate::bench) shard: u32,
    /// The index of each job in its file, and what was recorded of it.
    pub(in crate::bench) records: Vec<(usize, Recorder)>,
    /// What each job failed at, in the same order.
    pub(in crate::bench) failures: Vec<Failures>,
    /// Disk time dispatched in the measured part.
    pub(in crate::bench) consumption: DiskTime,
    /// For how long nothing was dispatched in the measured part, by
    /// [`Blocked::index`](forebay_core::Blocked::index).
    pub(in crate::bench) blocked_nanos: [u64; 5],
    /// The largest of the shard's queues.
    pub(in crate::bench) flow_ratio_permille: u64,
    /// When the measured part ended.
    pub(in crate::bench) finished: Time,
}

/// What the queues had counted when the measured part began.
#[derive(Debug, Default)]
pub(super) struct Baseline {
    consumption: DiskTime,
    blocked_nanos: [u64; 5],
}

impl Baseline {
    pub(super) fn of(lanes: &[Lane]) -> Self {
        let mut sum = Self::default();
        for lane in lanes {
            let QueueCounters { consumption, blocked_nanos, .. } = lane.queue.counters();
            sum.consumption = sum.consumption.plus(consumption);
            for (sum, nanos) in sum.blocked_nanos.iter_mut().zip(blocked_nanos) {
                *sum += nanos;
            }
        }
        sum
    }
}

impl Shard<'_> {
    /// Ends the run at `now`: what is not done is recorded as such, and what the disk still has is
    /// waited for.
    pub(super) fn finish(mut self, now: Time) -> ShardOutcome {
        let to = now.min(self.measured.to);
        for job in &mut self.jobs {
            job.record_overdue(to);
        }
        for (_, request) in &self.state.requests {
            self.jobs[request.job].recorder.record_unfinished(request.intended);
        }
        for (position, action, _) in &self.state.processor {
            self.jobs[*position].recorder.record_unfinished(action.intended);
        }
        for lane in &mut self.lanes {
            lane.cancel_all(now);
            // Books the time since it was last asked.
            let _ = lane.queue.poll_dispatch(now);
        }
        let before = self.state.baseline.take().unwrap_or_default();
        let after = Baseline::of(&self.lanes);
        let mut blocked_nanos = after.blocked_nanos;
        for (after, before) in blocked_nanos.iter_mut().zip(before.blocked_nanos) {
            *after -= before;
        }
        let flow_ratios = self.lanes.iter().map(|lane| lane.queue.counters().flow_ratio_permille);
        let flow_ratio_permille = flow_ratios.max().unwrap_or_default();
        // Waits for what the disk has.
        drop(self.engine);
        let (records, failures) =
            self.jobs.into_iter().map(|job| ((job.index, job.recorder), job.failures)).unzip();
        ShardOutcome {
            shard: self.number,
            records,
            failures,
            consumption: after.consumption.minus(before.consumption),
            blocked_nanos,
            flow_ratio_permille,
            finished: to,
        }
    }
}
