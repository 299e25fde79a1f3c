//! What a shard has seen of the disk since it last told the group.

use crate::budget::WindowSample;
use crate::{Blocked, DiskTime, Op, Time};

/// So many counted requests are told of together: one step of the window.
pub(super) const COUNTED_MAX: u64 = 32;
/// A shard that sees fewer tells of them after this time.
const TOLD_AFTER_NANOS: u64 = 5_000_000;

/// Counts until they are told.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sample {
    /// Requests of the target's kind that met a loaded disk,
    pub(super) counted: u64,
    /// of which so many took longer than the target,
    pub(super) over: u64,
    /// and what they took altogether.
    pub(super) nanos: u64,
    /// Disk time completed, in units of the model.
    pub(super) served: u64,
    /// How often nothing was left in the disk.
    pub(super) emptied: u64,
    /// How often work had to wait for the pace,
    pub(super) at_pace: u64,
    /// and for the window.
    pub(super) at_window: u64,
    /// For how long work has waited, in nanoseconds,
    pub(super) waited: u64,
    /// since then.
    pub(super) since: Time,
}

/// The sample of one queue.
#[derive(Debug, Default)]
pub(crate) struct Sampler {
    sample: Sample,
    told_at: Time,
    /// What the search for the window has not been told yet.
    pub(crate) window: WindowSample,
}

/// What a latency target asks of a request that came back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Threshold {
    pub(super) op: Op,
    pub(super) nanos: u64,
    /// Whether it is a time in the disk, and not from enqueueing to completion.
    pub(crate) in_disk: bool,
    /// Whether what owners took counts, where nobody knows what the disk did.
    pub(crate) of_owners: bool,
}

impl Threshold {
    /// Whether a time that only the owner knows counts: not where the owner was
    /// away, and the disk may have answered in time or not.
    #[inline]
    pub(crate) fn is_told_by_owner(&self, least: u64, most: u64, was_away: bool) -> bool {
        self.of_owners && (!was_away || most <= self.nanos || least > self.nanos)
    }
}

impl Sampler {
    /// A request of `cost` was completed; whether it was the last in the disk.
    #[inline]
    pub(crate) fn served(&mut self, cost: DiskTime, is_last: bool) {
        self.sample.served = self.sample.served.saturating_add(cost.units());
        self.sample.emptied += u64::from(is_last);
    }

    /// A request that met a loaded disk was done in so long.
    pub(crate) fn count(&mut self, threshold: Threshold, op: Op, nanos: u64) {
        if op == threshold.op {
            let is_over = nanos > threshold.nanos;
            self.sample.counted += 1;
            self.sample.over += u64::from(is_over);
            self.sample.nanos = self.sample.nanos.saturating_add(nanos);
            self.window.target(is_over);
        }
    }

    /// Work waits; whether for the disk.
    pub(crate) fn waits(&mut self, reason: Blocked) -> bool {
        match reason {
            Blocked::Pace | Blocked::PaceDiskIdle => self.sample.at_pace += 1,
            Blocked::Window => self.sample.at_window += 1,
            Blocked::Empty | Blocked::ClassLimit | Blocked::FairnessLead => return false,
        }
        true
    }

    /// Nothing went for so long.
    pub(crate) fn waited(&mut self, reason: Blocked, nanos: u64) {
        if !matches!(reason, Blocked::Empty | Blocked::ClassLimit) {
            self.sample.waited = self.sample.waited.saturating_add(nanos);
            self.window.waited(nanos);
        }
    }

    /// What is to be told now.
    pub(crate) fn take_due(&mut self, now: Time) -> Option<Sample> {
        let due =
            self.sample.counted >= COUNTED_MAX || now.nanos_since(self.told_at) > TOLD_AFTER_NANOS;
        due.then(|| {
            let next = Sample { since: now, ..Sample::default() };
            self.told_at = now;
            core::mem::replace(&mut self.sample, next)
        })
    }
}
