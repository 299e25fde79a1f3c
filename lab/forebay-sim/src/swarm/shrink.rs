//! Makes a failing scenario small.

use super::scenario::Scenario;
use crate::simulation::SimulationError;

/// Scenarios tried at most.
const TRIES_MAX: u32 = 300;

/// The smallest scenario found that still fails by `fails`, though perhaps at another invariant.
pub(super) fn shrink(
    mut scenario: Scenario,
    mut error: SimulationError,
    fails: impl Fn(&Scenario) -> Option<SimulationError>,
) -> (Scenario, SimulationError) {
    let mut tries = 0;
    'smaller: loop {
        for candidate in candidates(&scenario) {
            tries += 1;
            if tries > TRIES_MAX {
                return (scenario, error);
            }
            if let Some(still) = fails(&candidate)
                && !is_impossible(&still)
            {
                (scenario, error) = (candidate, still);
                continue 'smaller;
            }
        }
        return (scenario, error);
    }
}

/// Whether what is wrong is the scenario: some of it is about what was left out.
fn is_impossible(error: &SimulationError) -> bool {
    matches!(error, SimulationError::Scenario(_) | SimulationError::Change(_))
}

/// Scenarios that are a little smaller, those that are much smaller first.
fn candidates(scenario: &Scenario) -> Vec<Scenario> {
    let mut smaller = Vec::new();
    let mut add = |change: &dyn Fn(&mut Scenario)| {
        let mut candidate = scenario.clone();
        change(&mut candidate);
        if candidate != *scenario && !candidate.jobs.is_empty() {
            smaller.push(candidate);
        }
    };
    add(&|scenario| scenario.settings.millis = (scenario.settings.millis / 2).max(1));
    for job in 0..scenario.jobs.len() {
        add(&|scenario| remove_job(scenario, job));
    }
    for shards in [scenario.shards / 2, scenario.shards.saturating_sub(1)] {
        add(&|scenario| keep_shards(scenario, shards.max(1)));
    }
    for fault in 0..scenario.faults.len() {
        add(&|scenario| drop(scenario.faults.remove(fault)));
    }
    add(&|scenario| scenario.settings.stalls = None);
    add(&|scenario| scenario.settings.changes.clear());
    for change in 0..scenario.settings.changes.len() {
        add(&|scenario| drop(scenario.settings.changes.remove(change)));
    }
    add(&|scenario| scenario.settings.long_turns = None);
    add(&|scenario| scenario.settings.cancels = None);
    add(&|scenario| scenario.settings.transfers = None);
    for holder in 0..scenario.settings.holders.len() {
        add(&|scenario| drop(scenario.settings.holders.remove(holder)));
    }
    add(&|scenario| scenario.settings.wake_up_micros = 0);
    add(&|scenario| scenario.settings.takes_last = false);
    add(&|scenario| scenario.settings.tick_micros = None);
    add(&|scenario| scenario.settings.duplex = false);
    add(&|scenario| scenario.settings.model_percent = 100);
    add(&|scenario| scenario.settings.mix_percent = None);
    add(&|scenario| scenario.settings.millis = (scenario.settings.millis * 3 / 4).max(1));
    for job in 0..scenario.jobs.len() {
        add(&|scenario| {
            scenario.jobs[job].parallelism = scenario.jobs[job].parallelism.div_ceil(2);
        });
        add(&|scenario| {
            if scenario.jobs[job].group.is_some() && scenario.settings.changes.is_empty() {
                scenario.jobs[job].group = None;
            }
        });
        add(&|scenario| scenario.jobs[job].shards.truncate(1));
    }
    smaller
}

fn remove_job(scenario: &mut Scenario, job: usize) {
    let job = scenario.jobs.remove(job);
    let class = job.class();
    scenario.settings.changes.retain(|change| change.what.class() != Some(&class));
    scenario.settings.holders.retain(|holder| *holder != job.name);
}

/// Moves all jobs to the first this many shards.
fn keep_shards(scenario: &mut Scenario, shards: u32) {
    scenario.shards = shards;
    let on = |numbers: &mut Vec<u32>| {
        numbers.iter_mut().for_each(|number| *number %= shards);
        numbers.sort_unstable();
        numbers.dedup();
    };
    scenario.jobs.iter_mut().for_each(|job| on(&mut job.shards));
    scenario.settings.stalls.iter_mut().for_each(|stalls| on(&mut stalls.shards));
    scenario.settings.long_turns.iter_mut().for_each(|turns| on(&mut turns.shards));
}
