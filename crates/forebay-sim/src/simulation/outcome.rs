//! What comes of a run.

use std::collections::{BTreeMap, VecDeque};

use forebay_core::{Blocked, DiskTime, Policy, Time};
use forebay_load::recorder::Measured;
use forebay_load::results::model::{DiskResult, RunResult, VERSION, rounded};
use forebay_load::results::summary::{ShardRecords, by_shard, over_all_shards};

use super::run::Simulation;
use super::shard::Shard;
use super::trace::Trace;

/// How often the disk time dispatched is looked at.
const PERIOD_NANOS: u64 = 100_000_000;
const SECOND_NANOS: u64 = 1_000_000_000;

/// What comes of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The result, as `forebay bench` gives it.
    pub result: RunResult,
    /// What happened when, if asked for.
    pub trace: Option<Trace>,
    /// Requests that were completed, warm-up included.
    pub requests: u64,
    /// The part of its time that the disk needs, at its true rates, for what it did in the
    /// measured part of the run: 1 if it was used up. What the scheduler thinks of the disk does
    /// not matter here; that is `result.disk.consumption_mean`.
    pub utilisation: f64,
    /// When the run ended, warm-up included.
    pub ended: Time,
}

impl Outcome {
    pub(super) fn of(simulation: Simulation, ended: Time) -> Self {
        let Simulation { jobs, seed, policy, order, properties, shards, env, watch, .. } =
            simulation;
        let measured = Measured { to: ended, ..env.measured };
        let disk = (policy != Policy::Unlimited).then(|| DiskResult {
            in_flight_max: env.in_disk_max,
            ..watch.disk_result(&shards, measured)
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
        };
        Self {
            result,
            trace: env.tracer.map(|tracer| tracer.finish(ended)),
            requests: env.requests,
            utilisation: per_second(env.worth, measured),
            ended,
        }
    }
}

/// Looks at what the queues have counted, ten times a second in the measured part of a run.
#[derive(Debug)]
pub(super) struct Watch {
    next: Time,
    /// What the queues had counted when the measured part began.
    baseline: Option<(DiskTime, [u64; Blocked::ALL.len()])>,
    /// What was dispatched by when, in the last second.
    looks: VecDeque<(Time, DiskTime)>,
    /// The most disk time dispatched in any second, in seconds.
    busiest: f64,
}

impl Watch {
    pub(super) fn new(measured: Measured) -> Self {
        let looks = VecDeque::with_capacity(16);
        Self { next: measured.from, baseline: None, looks, busiest: 0.0 }
    }

    /// When to look next.
    pub(super) fn next_time(&self) -> Time {
        self.next
    }

    /// Looks if it is time to.
    pub(super) fn look(&mut self, now: Time, shards: &[Shard]) {
        if now < self.next {
            return;
        }
        self.next = now.plus_nanos(PERIOD_NANOS);
        let counted = sum(shards);
        self.baseline.get_or_insert(counted);
        self.looks.push_back((now, counted.0));
        let is_second = |&(then, _): &(Time, DiskTime)| now.nanos_since(then) >= SECOND_NANOS;
        while self.looks.get(1).is_some_and(is_second) {
            self.looks.pop_front();
        }
        if let Some(&first) = self.looks.front().filter(|look| is_second(look)) {
            let span = Measured { from: first.0, to: now };
            self.busiest = self.busiest.max(per_second(counted.0.minus(first.1), span));
        }
    }

    fn disk_result(&self, shards: &[Shard], measured: Measured) -> DiskResult {
        let (before, blocked_before) = self.baseline.unwrap_or_default();
        let (after, blocked_after) = sum(shards);
        let mean = per_second(after.minus(before), measured);
        let blocked = |reason: Blocked| {
            let index = reason.index();
            let nanos = blocked_after[index].saturating_sub(blocked_before[index]);
            (reason.name().to_owned(), rounded(nanos as f64 / 1e9, 3))
        };
        let queues = shards.iter().flat_map(|shard| shard.driver.queues());
        let flow_ratio = queues.map(|queue| queue.counters().flow_ratio_permille).max();
        DiskResult {
            consumption_mean: rounded(mean, 4),
            consumption_max: rounded(self.busiest.max(mean), 4),
            flow_ratio: flow_ratio.unwrap_or(1000) as f64 / 1000.0,
            in_flight_max: 0,
            dispatch_blocked: Blocked::ALL.into_iter().map(blocked).collect::<BTreeMap<_, _>>(),
        }
    }
}

fn sum(shards: &[Shard]) -> (DiskTime, [u64; Blocked::ALL.len()]) {
    let mut sum = (DiskTime::ZERO, [0; Blocked::ALL.len()]);
    for (consumption, blocked_nanos) in shards.iter().map(Shard::counters) {
        sum.0 = sum.0.plus(consumption);
        for (sum, nanos) in sum.1.iter_mut().zip(blocked_nanos) {
            *sum += nanos;
        }
    }
    sum
}

fn per_second(disk_time: DiskTime, span: Measured) -> f64 {
    let seconds = disk_time.units() as f64 / DiskTime::UNITS_PER_SECOND as f64;
    if span.seconds() > 0.0 { seconds / span.seconds() } else { 0.0 }
}
