//! One fiber: the requests of its tick, and when its next tick is due.

use forebay_core::Time;

use crate::job_file::{Gaps, Job, Pace, Rate};
use crate::rng::Rng;

/// What a fiber is about, or about to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The requests of a tick.
    Request,
    /// A flush after its write.
    Flush,
}

/// The state of one fiber; its backlog is no more than the time at which its next tick was due.
#[derive(Clone, Debug)]
pub(super) struct Fiber {
    pub(super) step: Step,
    pub(super) in_flight: u32,
    /// In an open loop the intended start of the next tick, in a closed one when it goes on.
    pub(super) due: Time,
    first: Time,
    ticks: u64,
    gaps: Rng,
}

impl Fiber {
    /// Fiber number `index` of `job`, with random gaps from `gaps`. Fibers of an open loop begin
    /// one after the other, spread over their common gap.
    pub(super) fn new(job: &Job, index: u32, start: Time, gaps: Rng) -> Self {
        let first = match job.pace {
            Pace::Closed(_) => start,
            Pace::Open(rate) => {
                let rate_all = u64::from(rate.rps.get()) * u64::from(job.parallelism.max(1));
                start.plus_nanos(ticks_ns(u64::from(index), rate_all))
            }
        };
        Self { step: Step::Request, in_flight: 0, due: first, first, ticks: 0, gaps }
    }

    /// Begins a tick at `now`: the intended start of its requests, and their number.
    pub(super) fn tick(&mut self, pace: Pace, now: Time) -> (Time, u32) {
        match pace {
            Pace::Closed(_) => (now, 1),
            Pace::Open(rate) => {
                if rate.skips_missed && now > self.due {
                    (self.first, self.ticks, self.due) = (now, 0, now);
                }
                let intended = self.due;
                self.due = self.next_due(rate);
                (intended, rate.batch.get())
            }
        }
    }

    /// Its next tick is due when so much of what the tick asked for is paid for, at the tick's rate.
    pub(super) fn pay(&mut self, intended: Time, (bytes, of): (u32, u64)) {
        let gap = u128::from(self.due.nanos_since(intended)) * u128::from(bytes);
        let gap = u64::try_from(gap / u128::from(of.max(1))).unwrap_or(u64::MAX);
        self.due = intended.plus_nanos(gap);
        (self.first, self.ticks) = (self.due, 0);
    }

    fn next_due(&mut self, rate: Rate) -> Time {
        match rate.gaps {
            Gaps::Uniform => {
                self.ticks += 1;
                self.first.plus_nanos(ticks_ns(self.ticks, u64::from(rate.rps.get())))
            }
            Gaps::Poisson => self.due.plus_nanos(self.gaps.gap_ns(rate.rps.get())),
        }
    }
}

/// The length of `ticks` ticks at `rate` per second, in nanoseconds, rounded down: multiplied out
/// each time, so that a rate is kept exactly for ever.
fn ticks_ns(ticks: u64, rate: u64) -> u64 {
    let ns = u128::from(ticks) * 1_000_000_000 / u128::from(rate);
    u64::try_from(ns).unwrap_or(u64::MAX)
}
