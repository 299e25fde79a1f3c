//! What comes of a thread's load.

use forebay_core::Time;
use forebay_load::recorder::Recorder;

use super::Load;
use super::job::Failures;

/// What a thread brings home.
#[derive(Debug)]
pub(in crate::bench) struct LoadOutcome {
    pub(in crate::bench) shard: u32,
    /// The index of each job in its file, and what was recorded of it.
    pub(in crate::bench) records: Vec<(usize, Recorder)>,
    /// What each job failed at, in the same order.
    pub(in crate::bench) failures: Vec<Failures>,
    /// When the measured part ended.
    pub(in crate::bench) finished: Time,
}

impl Load<'_> {
    /// Ends the run at `now`: what is not done is recorded as such, and what the disk still has is
    /// waited for.
    pub(super) fn finish(mut self, now: Time) -> LoadOutcome {
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
        // Takes back what waits.
        drop(self.way);
        let (records, failures) =
            self.jobs.into_iter().map(|job| ((job.index, job.recorder), job.failures)).unzip();
        LoadOutcome { shard: self.number, records, failures, finished: to }
    }
}
