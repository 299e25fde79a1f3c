//! Random scenarios under the invariants: what nobody thought of.
//!
//! Each seed makes one scenario: a disk and what goes wrong with it, shards and how they poll,
//! classes and jobs, a policy, an engine that does part of what it is asked, requests that are
//! cancelled, and changes of shares while it runs. One that fails is shrunk to a
//! small one that fails too.

mod case;
mod scenario;
mod shrink;

pub use case::{Case, PolicySpec, Settings};

use crate::simulation::SimulationError;
use scenario::Scenario;

/// What a swarm without failures did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Scenarios that were run.
    pub scenarios: u64,
    /// Requests that they completed.
    pub requests: u64,
}

/// A scenario that failed, made as small as possible.
#[derive(Clone, PartialEq, thiserror::Error)]
#[error("seed {seed}: {error}")]
pub struct Failure {
    /// The seed of the scenario: `run(1, seed, ...)` runs it again.
    pub seed: u64,
    /// What went wrong.
    pub error: SimulationError,
    /// The small scenario.
    pub case: Case,
}

forebay_core::debug_as_display!(Failure);

/// Runs `count` scenarios, of `seed` and the seeds that follow it. After each, `on_progress` is
/// told how many are done.
///
/// # Errors
/// The first scenario that fails, made small.
pub fn run(
    count: u64,
    seed: u64,
    mut on_progress: impl FnMut(u64),
) -> Result<Summary, Box<Failure>> {
    let mut summary = Summary::default();
    for number in 0..count {
        let scenario = Scenario::random(seed.wrapping_add(number));
        match play(&scenario) {
            Ok(requests) => summary.requests += requests,
            Err(error) => return Err(Box::new(failure(scenario, error))),
        }
        summary.scenarios += 1;
        on_progress(summary.scenarios);
    }
    Ok(summary)
}

/// The requests that a scenario completes.
fn play(scenario: &Scenario) -> Result<u64, SimulationError> {
    Ok(scenario.case().run()?.requests)
}

fn failure(scenario: Scenario, error: SimulationError) -> Failure {
    let (scenario, error) = shrink::shrink(scenario, error, |scenario| play(scenario).err());
    Failure { seed: scenario.seed, error, case: scenario.case() }
}

#[cfg(test)]
mod tests {
    use forebay_config::Source;

    use super::*;

    #[test]
    fn two_hundred_scenarios_hold() {
        let summary = run(200, 1, |_| {}).unwrap_or_else(|failure| panic!("{failure:#?}"));
        assert_eq!(summary.scenarios, 200);
    }

    /// Two shards that each said that the other was behind woke each other for ever; a class on a
    /// late shard starved alongside another on it, and alongside holders who had filled the disk. A
    /// class whose holder was given up lagged by what it had been charged. Classes with few shares
    /// used all that their late shard may overdraw, hid what a sibling was owed, and were waited
    /// for each time they asked for a little. What late shards overdrew came on top of a request at
    /// eight times its cost, and all waited alongside an empty disk until both were paid for.
    #[test]
    fn scenarios_that_once_failed_hold() {
        for seed in [8118, 1998, 13_207, 4058, 32_436, 35_324, 45_491, 86_023, 17_853, 56_502] {
            run(1, seed, |_| {}).unwrap_or_else(|failure| panic!("{failure:#?}"));
        }
    }

    /// The driver that ships has a bug in such a build, which `.ci/planted/run` makes.
    #[cfg(any(
        forebay_planted = "dropped_completion",
        forebay_planted = "slot_without_generation"
    ))]
    #[test]
    fn a_bug_that_is_planted_in_the_driver_is_found() {
        let failure = run(1000, 0, |_| {}).expect_err("all scenarios hold");
        assert!(matches!(failure.error, SimulationError::Invariant(_)), "{failure}");
        println!("{failure}");
    }

    #[test]
    fn a_seed_is_a_scenario() {
        for seed in 0..50 {
            let [one, other] = [seed, seed].map(Scenario::random);
            assert_eq!(one, other);
            assert_ne!(one, Scenario::random(seed + 1000));
        }
    }

    #[test]
    fn a_failing_scenario_is_made_small() {
        let fails = |scenario: &Scenario| {
            let job = scenario.jobs.iter().any(|job| job.kind == "randwrite");
            job.then_some(SimulationError::Zero("a write"))
        };
        let scenario = (0..).map(Scenario::random).find(|scenario| fails(scenario).is_some());
        let scenario = scenario.unwrap();
        let (small, error) = shrink::shrink(scenario, SimulationError::Zero("a write"), fails);
        assert_eq!(error, SimulationError::Zero("a write"));
        assert_eq!((small.jobs.len(), small.shards), (1, 1));
        assert_eq!(small.jobs[0].parallelism, 1);
        assert!(small.case().config().is_ok(), "{small:?}");
    }

    #[test]
    fn a_case_is_read_as_it_was_written() {
        for seed in 0..200 {
            let case = Scenario::random(seed).case();
            let text = case.to_yaml().unwrap();
            let read = Case::parse(&Source::new("case.yaml", &text));
            assert_eq!(read.as_ref(), Ok(&case), "{text}");
        }
    }
}
