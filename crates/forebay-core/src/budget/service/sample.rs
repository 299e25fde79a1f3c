//! What a queue has seen of the disk since its last report.

use crate::budget::WindowSample;
use crate::{Blocked, DiskTime, Op, Time};

/// A queue reports its sample once this many of its requests count for the latency target. It is
/// about a third of what ends a period, so that periods end soon after they may.
const COUNTED_MAX: u64 = 32;
/// A queue with fewer than `COUNTED_MAX` of them reports its sample after this time, in nanoseconds
/// (5 ms): a quarter of the shortest period. A shorter time writes shared counters more often; a
/// longer one counts more of a period in the next one.
const REPORTED_AFTER_NANOS: u64 = 5_000_000;

/// Counts of one queue between two reports.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sample {
    /// Requests of the target's kind that met a loaded disk.
    pub(super) counted: u64,
    /// Those of them that took longer than the target.
    pub(super) over: u64,
    /// Disk time completed, in units.
    pub(super) served: u64,
    /// For how long work has waited, in nanoseconds.
    pub(super) waited: u64,
    /// When the sample began.
    pub(super) since: Time,
}

impl Sample {
    /// The same, from which nothing follows for what the disk can do.
    pub(crate) fn unjudged(self) -> Self {
        Self { waited: 0, ..self }
    }
}

/// The sample of one queue.
#[derive(Debug, Default)]
pub(crate) struct Sampler {
    sample: Sample,
    reported_at: Time,
    /// What was not yet reported to the search for the window.
    pub(crate) window: WindowSample,
}

/// What a latency target asks of a request that was completed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Threshold {
    pub(super) op: Op,
    pub(super) nanos: u64,
    /// Whether it is a time in the disk, and not from enqueueing to completion.
    pub(crate) in_disk: bool,
}

impl Threshold {
    /// Whether a time that only the owner measured can be compared with the threshold. It cannot
    /// if the owner was away and the disk may have completed the request on either side of it.
    #[inline]
    pub(crate) fn is_conclusive(&self, least: u64, most: u64, was_away: bool) -> bool {
        !was_away || most <= self.nanos || least > self.nanos
    }
}

impl Sampler {
    /// A request of this cost was completed.
    #[inline]
    pub(crate) fn served(&mut self, cost: DiskTime) {
        self.sample.served = self.sample.served.saturating_add(cost.units());
    }

    /// A request that met a loaded disk took this long.
    pub(crate) fn count(&mut self, threshold: Threshold, op: Op, nanos: u64) {
        if op == threshold.op {
            let is_over = nanos > threshold.nanos;
            self.sample.counted += 1;
            self.sample.over += u64::from(is_over);
            self.window.target(is_over);
        }
    }

    /// Work has waited for the disk for this long, or for its turn.
    pub(crate) fn waited(&mut self, reason: Blocked, nanos: u64) {
        if !matches!(reason, Blocked::Empty | Blocked::ClassLimit) {
            self.sample.waited = self.sample.waited.saturating_add(nanos);
            self.window.waited(nanos);
        }
    }

    /// What is to be reported now.
    pub(crate) fn take_due(&mut self, now: Time) -> Option<Sample> {
        let due = self.sample.counted >= COUNTED_MAX
            || now.nanos_since(self.reported_at) > REPORTED_AFTER_NANOS;
        due.then(|| self.take(now))
    }

    #[inline(never)]
    fn take(&mut self, now: Time) -> Sample {
        let next = Sample { since: now, ..Sample::default() };
        self.reported_at = now;
        core::mem::replace(&mut self.sample, next)
    }
}
