//! One fiber: the requests of its tick, and when its next tick is due.

use std::num::NonZeroU64;

use forebay_core::{Time, saturating_nanos};

use crate::job_file::{Gaps, Job, Pace, Rate, Think};
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

impl Think {
    /// When a fiber goes on whose request completed at `now`, in a run that began at `start`.
    pub(super) fn resume(self, start: Time, now: Time) -> Time {
        let (pause, active) = (saturating_nanos(self.time), saturating_nanos(self.after));
        if active == 0 {
            return now.plus_nanos(pause);
        }
        let cycle = active.saturating_add(pause);
        let phase = now.nanos_since(start) % cycle;
        if phase < active { now } else { now.plus_nanos(cycle - phase) }
    }
}

/// Counts the completed writes of a file towards its next flush.
///
/// The fiber whose write makes a flush due sends it, and writes no more until it is done; the
/// other fibers write on. At most one flush is in flight.
#[derive(Clone, Debug)]
pub(super) struct FlushCounter {
    every: NonZeroU64,
    writes_since: u64,
    in_flight: bool,
}

impl FlushCounter {
    /// A flush after `every` completed writes.
    pub(super) fn new(every: NonZeroU64) -> Self {
        Self { every, writes_since: 0, in_flight: false }
    }

    /// A write has succeeded.
    pub(super) fn written(&mut self) {
        self.writes_since = self.writes_since.saturating_add(1);
    }

    /// The flush has completed.
    pub(super) fn flushed(&mut self) {
        self.in_flight = false;
    }

    /// Whether a flush is due; if so it is now in flight.
    pub(super) fn take(&mut self) -> bool {
        let due = !self.in_flight && self.writes_since >= self.every.get();
        if due {
            self.in_flight = true;
            self.writes_since = 0;
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn resume(think: Think, now: u64) -> u64 {
        think.resume(Time::from_nanos(1000), Time::from_nanos(now)).as_nanos()
    }

    #[test]
    fn without_pauses_a_fiber_goes_on_at_once() {
        assert_eq!(resume(Think::default(), 1234), 1234);
    }

    #[test]
    fn a_pause_follows_each_request() {
        let think = Think { time: Duration::from_nanos(100), after: Duration::ZERO };
        assert_eq!(resume(think, 1234), 1334);
    }

    #[test]
    fn phases_of_activity_and_of_pause_alternate() {
        let think = Think { time: Duration::from_nanos(100), after: Duration::from_nanos(50) };
        assert_eq!(resume(think, 1049), 1049);
        assert_eq!(resume(think, 1050), 1150);
        assert_eq!(resume(think, 1149), 1150);
        assert_eq!(resume(think, 1199), 1199);
        assert_eq!(resume(think, 1200), 1300);
    }
}
