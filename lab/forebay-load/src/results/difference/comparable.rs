//! Whether two runs are of the same load, and what else is not the same in them.

use crate::results::advice::PROCESSOR_WAIT_MAX;
use crate::results::job_load::differing;
use crate::results::model::{Report, RunResult};

/// A run that is shorter than another by this part is another load.
const LENGTH: f64 = 0.1;
/// The simulator, which nothing else is comparable with.
const SIMULATED: &str = "simulated";

/// How busy the machine was in the run of each file in which it was busiest, where that is too much.
pub(super) fn busy(old: &Report, new: &Report) -> Option<[Option<f64>; 2]> {
    let waits = [old, new].map(|report| {
        let runs = match report {
            Report::Run(run) => std::slice::from_ref(&**run),
            Report::Comparison(comparison) => &comparison.runs,
        };
        runs.iter().filter_map(|run| run.processor_wait).max_by(f64::total_cmp)
    });
    let is_busy = waits.iter().flatten().any(|&part| part >= PROCESSOR_WAIT_MAX);
    is_busy.then_some(waits)
}

/// Whether it is the same load.
pub(super) fn check(old: &RunResult, new: &RunResult) -> Result<(), String> {
    let names = |run: &RunResult| {
        run.classes.iter().map(|class| class.name.as_str()).collect::<Vec<_>>().join(", ")
    };
    let differs = |what: &str, old: &str, new: &str| {
        Err(format!("not comparable: {what} {old} before, {new} now; run the same load again"))
    };
    if names(old) != names(new) {
        return differs("the jobs were", &names(old), &names(new));
    }
    if (old.backend == SIMULATED) != (new.backend == SIMULATED) {
        return differs("I/O was", &old.backend, &new.backend);
    }
    let [shorter, longer] = [
        old.duration_seconds.min(new.duration_seconds),
        old.duration_seconds.max(new.duration_seconds),
    ];
    if shorter < longer * (1.0 - LENGTH) {
        let seconds = |run: &RunResult| format!("{} s", run.duration_seconds);
        return differs("the run took", &seconds(old), &seconds(new));
    }
    Ok(())
}

/// How the loads of jobs differ.
pub(super) fn other_loads(old: &RunResult, new: &RunResult) -> Vec<String> {
    let pairs = old.classes.iter().zip(&new.classes);
    let of = pairs.filter_map(|(before, after)| {
        let [old, new] = differing(&before.load, &after.load)?;
        Some(format!("the load of {}: {old} before, {new} now", after.name))
    });
    of.collect()
}

/// What else is not the same, which may be what was changed.
pub(super) fn notes(old: &RunResult, new: &RunResult) -> Vec<String> {
    let shares = |run: &RunResult| {
        let shares = run.classes.iter().map(|class| format!("{} {}", class.name, class.shares));
        shares.collect::<Vec<_>>().join(", ")
    };
    let properties = |run: &RunResult| {
        let of = &run.properties;
        let figures = [of.read_iops, of.write_iops, of.read_bandwidth, of.write_bandwidth];
        figures
            .map(|figure| figure.map_or_else(|| String::from("-"), |it| it.to_string()))
            .join(" ")
    };
    let facts: [(&str, String, String); 7] = [
        ("scheduler", old.scheduler.clone(), new.scheduler.clone()),
        ("order", old.order.clone(), new.order.clone()),
        ("topology", old.topology.clone(), new.topology.clone()),
        ("I/O queues", old.io_queues.to_string(), new.io_queues.to_string()),
        ("backend", old.backend.clone(), new.backend.clone()),
        ("shares", shares(old), shares(new)),
        ("figures of the disk", properties(old), properties(new)),
    ];
    let differ = facts.into_iter().filter(|(_, old, new)| old != new);
    differ.map(|(what, old, new)| format!("{what}: {old} before, {new} now")).collect()
}
