//! Files of shards that write at the same pace, and where on an array they begin.

use std::sync::PoisonError;

use forebay_core::Policy;
use forebay_load::Rng;
use forebay_load::job_file::JobFile;
use forebay_sim::simulation::SchedulerConfig;

use super::traced_array::{CHUNK, MEMBERS, TracedArray};
use crate::experiment::{ArraySetting, Scale, Seed};
use crate::report::Report;
use crate::scenario::{job, jobs, pace_window, run as simulate};

pub(crate) const MEMBER: &str = include_str!("disk.yaml");
const SLICE_NANOS: u64 = 100_000;
/// A run loses bandwidth if it has this part less of it than the best one.
pub(crate) const LOST: f64 = 0.05;

/// A striped array, and files that grow on it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ArrayLoad {
    pub(crate) shards: u32,
    /// Requests of each shard in flight.
    pub(crate) fibers: u32,
    pub(crate) chunk: u64,
    pub(crate) members: u32,
}

impl ArrayLoad {
    /// The published array, and eight fibers of each of these shards.
    pub(crate) const fn published(shards: u32) -> Self {
        Self { shards, fibers: 8, chunk: CHUNK, members: MEMBERS as u32 }
    }

    /// The same with what is set.
    pub(crate) fn with(self, setting: ArraySetting) -> Self {
        Self {
            shards: setting.shards.unwrap_or(self.shards),
            fibers: setting.fibers.unwrap_or(self.fibers),
            chunk: setting.chunk.unwrap_or(self.chunk),
            members: setting.members.unwrap_or(self.members),
        }
    }

    pub(crate) fn jobs(self) -> Result<JobFile, String> {
        let Self { shards, fibers, .. } = self;
        let text = format!(
            "- {{name: load, type: append, shards: all,
   shard_info: {{parallelism: {fibers}, reqsize: 128kB}}}}\n"
        );
        jobs(&text, shards)
    }

    /// Bytes of a chunk, for reports.
    pub(crate) fn chunk_text(self) -> String {
        match self.chunk {
            bytes if bytes.is_multiple_of(1 << 20) => format!("{} MB", bytes >> 20),
            bytes => format!("{} kB", bytes >> 10),
        }
    }
}

/// Where files begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Placement {
    /// All on the first member: the article's theory.
    Same,
    /// At random chunks, as a filesystem puts them.
    Random,
    /// On the members in turn.
    InTurn,
}

impl Placement {
    /// The first byte of the file of each shard.
    pub(crate) fn starts(self, seed: Seed, load: ArrayLoad) -> Vec<u64> {
        let mut random = Rng::new(seed.0, &[]);
        let members = u64::from(load.members);
        let chunk = |shard: u32| match self {
            Self::Same => 0,
            Self::Random => random.below(members),
            Self::InTurn => u64::from(shard) % members,
        };
        (0..load.shards).map(chunk).map(|chunk| chunk * load.chunk).collect()
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
    load: ArrayLoad,
    open: bool,
    millis: u64,
) -> Result<PlacementResult, String> {
    let members = (0..load.members).map(|_| seed.disk(MEMBER)).collect::<Result<Vec<_>, _>>()?;
    let starts = placement.starts(seed, load);
    let (array, trace) = TracedArray::new(load.chunk, members, starts, SLICE_NANOS)?;
    let policy = if open { Policy::Unlimited } else { pace_window(&array) };
    let mut config = seed.config(load.jobs()?, Box::new(array), millis);
    config.scheduler = SchedulerConfig { policy: Some(policy), ..SchedulerConfig::by_figures() };
    let outcome = simulate(config)?;
    let trace = trace.lock().unwrap_or_else(PoisonError::into_inner);
    let gb_per_second = job(&outcome, "load")?.bandwidth_bytes_per_second as f64 / 1e9;
    Ok(PlacementResult { gb_per_second, busiest: trace.busiest_over_time() })
}

pub(crate) fn report(scale: Scale, load: ArrayLoad) -> (Report, u64) {
    let measured = scale.seconds(200, 2000);
    let mut report = Report::default();
    let (members, chunk, fibers) = (load.members, load.chunk_text(), load.fibers);
    let disk =
        format!("RAID0 of {members}, chunk {chunk}, 3.22 GB/s each (published for one disk)");
    report.parameter("disk", disk);
    report.parameter("load", format!("128 KiB appends, {fibers} fibers per shard"));
    report.parameter("measured", format!("{measured} ms after 100 ms; members from the start"));
    (report, measured)
}
