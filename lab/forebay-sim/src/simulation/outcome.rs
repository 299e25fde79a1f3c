//! The outcome of a run.

use std::collections::BTreeMap;

use forebay_core::{Policy, Time};
use forebay_load::recorder::MeasuredInterval;
use forebay_load::results::consumption::per_second;
use forebay_load::results::model::{DiskResult, RunResult, VERSION, rounded};
use forebay_load::results::summary::{ShardRecords, by_shard, over_all_shards};

use super::setup::Simulation;
use super::trace::Trace;

/// The outcome of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The result, as `forebay bench` gives it.
    pub result: RunResult,
    /// What happened when, if asked for.
    pub trace: Option<Trace>,
    /// Requests that were completed, warm-up included.
    pub requests: u64,
    /// Shards woken by other shards and by the timers of their queues, warm-up included: what
    /// `result.disk.wake_ups` says of the measured part, counted where they are woken.
    pub wake_ups: u64,
    /// The part of its time that the disk needs, at its true rates, for what it did in the
    /// measured part of the run: 1 if it was used up. What the scheduler thinks of the disk does
    /// not matter here; that is `result.disk.consumption_mean`.
    pub utilisation: f64,
    /// When the run ended, warm-up included.
    pub ended: Time,
}

impl Outcome {
    pub(super) fn of(simulation: Simulation, ended: Time) -> Self {
        let Simulation {
            jobs,
            seed,
            policy,
            order,
            properties,
            scheduler,
            shards,
            env,
            watch,
            series,
            ..
        } = simulation;
        let measured = MeasuredInterval { to: ended, ..env.measured };
        let disk = (policy != Policy::Unlimited).then(|| DiskResult {
            in_flight_max: env.counts.parts_in_flight_max,
            ..watch.disk_result(&shards, &scheduler, &*env.engine.disk, measured)
        });
        let io_queues = shards.len() as u32;
        let mut records: BTreeMap<u32, ShardRecords> = BTreeMap::new();
        for job in shards.into_iter().flat_map(|shard| shard.jobs) {
            let shard = job.shard;
            let of_shard = records.entry(shard);
            let of_shard = of_shard.or_insert_with(|| ShardRecords { shard, jobs: Vec::new() });
            of_shard.jobs.push((job.index, job.recorder));
        }
        let records: Vec<ShardRecords> = records.into_values().collect();
        let is_per_thread = io_queues as usize == records.len();
        let topology = if is_per_thread { "per-thread" } else { "coordinators" };
        let result = RunResult {
            version: VERSION,
            duration_seconds: rounded(measured.seconds(), 3),
            backend: String::from("simulated"),
            topology: topology.to_owned(),
            io_queues,
            policy: policy.name().to_owned(),
            order: order.name().to_owned(),
            properties,
            scheduler: policy.name().to_owned(),
            seed,
            classes: over_all_shards(&jobs, &records),
            shards: by_shard(&jobs, &records),
            disk,
            cpu_seconds: None,
            processor_wait: None,
            series: series.map(|series| Box::new(series.finish())),
        };
        Self {
            result,
            trace: env.tracer.map(|tracer| tracer.finish(ended)),
            requests: env.counts.requests,
            wake_ups: env.counts.wake_ups,
            utilisation: per_second(env.counts.disk_time, measured),
            ended,
        }
    }
}
