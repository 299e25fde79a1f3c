//! Throughput and latency by requests in flight.

use serde::Serialize;

use crate::phase::{Purpose, Work};
use crate::run::{MeasuredPhase, Run};

/// A rate that comes so close to the best is as good.
const FULL: f64 = 0.99;
/// And who waits less gives up so much of it.
const NEARLY_FULL: f64 = 0.95;
/// Writes that ended before this part of the time of the reads alongside them make no mix.
const BESIDE: f64 = 0.9;

/// A step of the ladder.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LatencyAt {
    /// Requests in flight.
    pub depth: u32,
    /// The part of the knee, in percent, that this was meant to be; 0 for a step of the ladder.
    pub percent: u32,
    /// Requests per second.
    pub rate: f64,
    /// Half of its 95 % confidence interval.
    pub margin: f64,
    /// Median latency in microseconds.
    pub p50_us: f64,
    /// What 99 of 100 requests do not exceed, in microseconds.
    pub p99_us: f64,
}

/// Where more requests in flight stop helping.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Knee {
    /// The ladder.
    pub steps: Vec<LatencyAt>,
    /// The first step that does 95 % of the best rate: with more in flight they wait longer, for
    /// little. Nothing where the rates were too uneven to tell.
    pub requests: Option<u32>,
    /// The median latency of a request alone, in microseconds.
    pub base_us: f64,
    /// The best rate of the ladder.
    pub rate: f64,
    /// The first step that reaches the best rate.
    pub depth_full: u32,
}

impl Knee {
    /// Requests in flight at which the disk would be busy, if each still took as long as alone
    /// (Little's law): few more keep it busy, and few of them wait.
    pub(crate) fn busy_if_alone(&self) -> f64 {
        let taken = self.steps.iter().filter(|step| step.rate > 0.0);
        // Alone a request takes least. Where it did not, something else held up the first steps.
        let alone = taken.map(|step| f64::from(step.depth) / step.rate).reduce(f64::min);
        alone.map_or(1.0, |seconds| self.rate * seconds)
    }
}

/// The knee of one direction.
pub(crate) fn knee(run: &Run, work: Work) -> Knee {
    let steps: Vec<LatencyAt> =
        run.of(Purpose::Concurrency, work).map(|measured| step(measured, 0)).collect();
    let rate = steps.iter().map(|step| step.rate).fold(0.0, f64::max);
    let requests = nearly_full(&steps);
    let base_us = steps.iter().map(|step| step.p50_us).reduce(f64::min).unwrap_or(0.0);
    let depth_full = depth_full(&steps, FULL).unwrap_or(1);
    Knee { requests, base_us, rate, depth_full, steps }
}

/// The first step that does nearly the best rate, unless one of less than half of its requests may
/// do so as well for all that is known.
fn nearly_full(steps: &[LatencyAt]) -> Option<u32> {
    let depth = depth_full(steps, NEARLY_FULL)?;
    let best = steps.iter().map(|step| step.rate - step.margin).fold(0.0, f64::max);
    let may_do = |step: &&LatencyAt| step.rate + step.margin >= best * NEARLY_FULL;
    steps.iter().find(may_do).filter(|step| step.depth * 2 >= depth).map(|_| depth)
}

/// The requests in flight of the first step that reaches this part of the best rate.
pub fn depth_full(steps: &[LatencyAt], part: f64) -> Option<u32> {
    let best = steps.iter().map(|step| step.rate).fold(0.0, f64::max);
    steps.iter().find(|step| step.rate >= best * part).map(|step| step.depth)
}

/// Large requests of one direction, by requests in flight.
pub(crate) fn large(run: &Run, work: Work) -> Vec<LatencyAt> {
    run.of(Purpose::Large, work).map(|measured| step(measured, 0)).collect()
}

/// Small reads alongside writes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Mix {
    /// Reads and writes in flight, of which one in four writes.
    pub depth: u32,
    /// Bytes of each write.
    pub write_bytes: u32,
    /// The reads.
    pub reads: LatencyAt,
    /// The writes alongside them.
    pub writes: LatencyAt,
}

/// All mixes, but for those whose writes ended early: this many bytes were not left.
pub(crate) fn mixes(run: &Run) -> Vec<Mix> {
    let of = |work| run.of(Purpose::Mix, work);
    let is_mix = |(reads, writes): &(&MeasuredPhase, &MeasuredPhase)| {
        writes.samples.seconds >= reads.samples.seconds * BESIDE
    };
    let mix = |(reads, writes): (&MeasuredPhase, &MeasuredPhase)| Mix {
        depth: reads.phase.depth + writes.phase.depth,
        write_bytes: writes.phase.request_bytes,
        reads: step(reads, 0),
        writes: step(writes, 0),
    };
    of(Work::Read).zip(of(Work::Write)).filter(is_mix).map(mix).collect()
}

/// Latency at parts of the knee.
pub(crate) fn below(run: &Run) -> Vec<LatencyAt> {
    run.phases
        .iter()
        .filter_map(|measured| match measured.purpose {
            Purpose::BelowKnee(percent) => Some(step(measured, percent)),
            _ => None,
        })
        .collect()
}

fn step(measured: &MeasuredPhase, percent: u32) -> LatencyAt {
    let (rate, latency) = (measured.samples.rate_of_spans(), measured.samples.latency);
    LatencyAt {
        depth: measured.phase.depth,
        percent,
        rate: rate.mean,
        margin: rate.margin,
        p50_us: latency.p50,
        p99_us: latency.p99,
    }
}
