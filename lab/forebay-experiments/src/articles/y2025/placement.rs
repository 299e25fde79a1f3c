//! Files of shards that write at the same pace, and where on an array they begin.

use std::sync::PoisonError;

use forebay_core::Policy;
use forebay_load::Rng;
use forebay_sim::simulation::SchedulerConfig;

use super::traced_array::{CHUNK, MEMBERS, TracedArray};
use crate::experiment::{Scale, Seed};
use crate::report::Report;
use crate::scenario::{job, jobs, pace_window, run as simulate};

pub(crate) const MEMBER: &str = include_str!("disk.yaml");
pub(crate) const LOAD: &str = include_str!("load.yaml");
const SLICE_NANOS: u64 = 100_000;

/// Where files begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Placement {
    /// All on the first member: the article's theory.
    Same,
    /// At random multiples of 1 MiB, as a filesystem puts them.
    Random,
    /// On the members in turn.
    InTurn,
}

impl Placement {
    /// The first byte of the file of each shard.
    pub(crate) fn starts(self, seed: Seed, shards: u32) -> Vec<u64> {
        let mut random = Rng::new(seed.0, &[]);
        let chunk = |shard: u32| match self {
            Self::Same => 0,
            Self::Random => random.below(MEMBERS as u64),
            Self::InTurn => u64::from(shard) % MEMBERS as u64,
        };
        (0..shards).map(chunk).map(|chunk| chunk * CHUNK).collect()
    }
}

/// What one run gave.
pub(crate) struct PlacementResult {
    pub(crate) gb_per_second: f64,
    /// The busiest member's part of what is under way, over time in seconds.
    pub(crate) busiest: Vec<(f64, f64)>,
}

impl PlacementResult {
    /// The mean of the busiest member's part from one time to another, in seconds.
    pub(crate) fn busiest_mean(&self, from: f64, to: f64) -> f64 {
        let within = self.busiest.iter().filter(|(at, _)| (from..to).contains(at));
        let (sum, count) =
            within.fold((0.0, 0.0), |(sum, count), (_, part)| (sum + part, count + 1.0));
        if count > 0.0 { sum / count } else { 0.0 }
    }
}

pub(crate) fn measure(
    seed: Seed,
    placement: Placement,
    shards: u32,
    open: bool,
    millis: u64,
) -> Result<PlacementResult, String> {
    let members = (0..MEMBERS).map(|_| seed.disk(MEMBER)).collect::<Result<Vec<_>, _>>()?;
    let (array, trace) = TracedArray::new(members, placement.starts(seed, shards), SLICE_NANOS)?;
    let policy = if open { Policy::Unlimited } else { pace_window(&array) };
    let mut config = seed.config(jobs(LOAD, shards)?, Box::new(array), millis);
    config.scheduler = SchedulerConfig { policy: Some(policy), ..SchedulerConfig::by_figures() };
    let outcome = simulate(config)?;
    let trace = trace.lock().unwrap_or_else(PoisonError::into_inner);
    let gb_per_second = job(&outcome, "load")?.bandwidth_bytes_per_second as f64 / 1e9;
    Ok(PlacementResult { gb_per_second, busiest: trace.busiest_over_time() })
}

pub(crate) fn report(scale: Scale) -> (Report, u64) {
    let measured = scale.seconds(200, 2000);
    let mut report = Report::default();
    report.parameter("disk", "RAID0 of 4, chunk 1 MB, 3.22 GB/s each (published for one disk)");
    report.parameter("load", "128 KiB appends, 8 fibers per shard");
    report.parameter("measured", format!("{measured} ms after 100 ms; members from the start"));
    (report, measured)
}
