//! From what was seen and recorded to the result of a run.

use std::collections::BTreeMap;

use forebay::engine::Backend;
use forebay_core::{Blocked, DiskTime, Policy};
use forebay_load::recorder::MeasuredInterval;
use forebay_load::results::model::{DiskResult, RunResult, VERSION, rounded};
use forebay_load::results::summary::{ShardRecords, by_shard, over_all_shards};

use super::plan::Plan;
use super::watch::Observed;

/// What comes of a run.
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
    let disk = (plan.policy_in_force() != Policy::Unlimited).then(|| disk_result(&seen, measured));
    let failed = failed(&seen);
    let processor = seen.processor;
    let records: Vec<ShardRecords> = seen
        .outcomes
        .into_iter()
        .map(|outcome| ShardRecords { shard: outcome.shard, jobs: outcome.records })
        .collect();
    let result = RunResult {
        version: VERSION,
        duration_seconds: rounded(measured.seconds(), 3),
        backend: backend_name(backend).to_owned(),
        topology: plan.topology.name().to_owned(),
        io_queues: io_queues as u32,
        policy: plan.policy.name().to_owned(),
        order: plan.order.name().to_owned(),
        properties: plan.disk.in_results(),
        scheduler: plan.policy_in_force().name().to_owned(),
        seed: plan.seed,
        classes: over_all_shards(plan.jobs, &records),
        shards: by_shard(plan.jobs, &records),
        disk,
        cpu_seconds: Some(rounded(processor.as_secs_f64(), 3)),
    };
    Run { result, failed }
}

fn disk_result(seen: &Observed, measured: MeasuredInterval) -> DiskResult {
    let [before, after] = &seen.counters;
    let consumption = after.consumption.minus(before.consumption);
    let seconds = consumption.units() as f64 / DiskTime::UNITS_PER_SECOND as f64;
    let mean = if measured.seconds() > 0.0 { seconds / measured.seconds() } else { 0.0 };
    let blocked = |reason: Blocked| {
        let [before, after] =
            [before, after].map(|counters| counters.blocked_nanos[reason.index()]);
        let nanos = after.saturating_sub(before);
        (reason.name().to_owned(), rounded(nanos as f64 / 1e9, 3))
    };
    DiskResult {
        consumption_mean: rounded(mean, 4),
        consumption_max: rounded(seen.consumption_max.max(mean), 4),
        flow_ratio: after.flow_ratio_permille as f64 / 1000.0,
        in_flight_max: after.in_disk_max.into(),
        dispatch_blocked: Blocked::ALL.into_iter().map(blocked).collect::<BTreeMap<_, _>>(),
    }
}

/// How many requests failed, and what went wrong first.
fn failed(seen: &Observed) -> Option<(u64, String)> {
    let failures = || seen.outcomes.iter().flat_map(|outcome| &outcome.failures);
    let first = failures().find_map(|failures| failures.first.clone())?;
    Some((failures().map(|failures| failures.count).sum(), first))
}

fn backend_name(backend: Backend) -> &'static str {
    match backend {
        Backend::IoUring => "io_uring",
        Backend::Threads => "threads",
        Backend::Null => "null",
    }
}
