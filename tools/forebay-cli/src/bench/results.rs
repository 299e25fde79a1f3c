//! From what was seen and recorded to the result of a run.

use forebay::engine::Backend;
use forebay_core::Policy;
use forebay_load::recorder::MeasuredInterval;
use forebay_load::results::consumption::disk_result;
use forebay_load::results::model::{RunResult, VERSION, rounded};
use forebay_load::results::summary::{ShardRecords, by_shard, over_all_shards};

use super::plan::Plan;
use super::watch::Observed;

/// The outcome of a run.
pub(super) struct Run {
    pub(super) result: RunResult,
    /// How many requests failed, and what went wrong first.
    pub(super) failed: Option<(u64, String)>,
}

/// The result of `plan`.
pub(super) fn of(plan: &Plan<'_>, backend: Backend, io_queues: usize, seen: Observed) -> Run {
    let finished = seen.outcomes.iter().map(|outcome| outcome.finished).max();
    let planned = plan.measured();
    let measured = MeasuredInterval { to: finished.unwrap_or(planned.to), ..planned };
    let [before, after] = &seen.samples;
    let disk = (plan.policy_in_force() != Policy::Unlimited)
        .then(|| disk_result(before, after, measured, seen.consumption_max));
    let failed = failed(&seen);
    let processor = seen.processor;
    let waits: Option<Vec<f64>> =
        seen.outcomes.iter().map(|outcome| outcome.processor_wait).collect();
    let wait = waits.map(|waits| waits.iter().sum::<f64>() / waits.len().max(1) as f64);
    let records: Vec<ShardRecords> = seen
        .outcomes
        .into_iter()
        .map(|outcome| ShardRecords { shard: outcome.shard, jobs: outcome.records })
        .collect();
    let result = RunResult {
        version: VERSION,
        duration_seconds: rounded(measured.seconds(), 3),
        backend: backend.name().to_owned(),
        topology: plan.topology.name().to_owned(),
        io_queues: io_queues as u32,
        policy: plan.policy.name().to_owned(),
        order: plan.order.name().to_owned(),
        properties: plan.disk.in_results(&plan.policy),
        scheduler: plan.policy_in_force().name().to_owned(),
        seed: plan.seed,
        classes: over_all_shards(plan.jobs, &records),
        shards: by_shard(plan.jobs, &records),
        disk,
        cpu_seconds: Some(rounded(processor.as_secs_f64(), 3)),
        processor_wait: wait.map(|part| rounded(part, 4)),
        series: seen.series.map(Box::new),
    };
    Run { result, failed }
}

/// How many requests failed, and what went wrong first.
fn failed(seen: &Observed) -> Option<(u64, String)> {
    let failures = || seen.outcomes.iter().flat_map(|outcome| &outcome.failures);
    let first = failures().find_map(|failures| failures.first.clone())?;
    Some((failures().map(|failures| failures.count).sum(), first))
}
