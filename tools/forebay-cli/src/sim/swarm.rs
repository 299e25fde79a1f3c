//! `forebay sim swarm` and `forebay sim replay`: random scenarios under the scheduler's invariants.

use std::path::PathBuf;

use clap::Args;
use forebay_config::Source;
use forebay_load::results::model::Report;
use forebay_sim::swarm::{self, Case};

use crate::console::{note, print, progress_bar};
use crate::failure::Failure;
use crate::load_options::{self, Format};
use crate::whole_number;

/// Lines of progress where there is no terminal to draw a bar on.
const LINES: u64 = 10;

/// Run random scenarios, and check the scheduler's guarantees at every step.
///
/// The first scenario that fails is shrunk and printed as a file for `forebay sim replay`.
#[derive(Args)]
pub(crate) struct Options {
    /// The number of scenarios
    #[arg(value_name = "N", value_parser = whole_number::within::<u64>(1..=u64::MAX))]
    count: u64,
    /// The seed of the first scenario; the others follow
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = load_options::seed)]
    seed: u64,
}

/// Repeat a scenario that `forebay sim swarm` has printed.
#[derive(Args)]
pub(crate) struct ReplayOptions {
    /// The scenario
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// How to print the results
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

/// The command `swarm`.
pub(super) fn run(options: &Options) -> Result<(), Failure> {
    let &Options { count, seed } = options;
    let bar = progress_bar(count, "{bar:40} {pos} of {len} scenarios, {eta} left");
    let on_progress = |done: u64| {
        bar.set_position(done);
        if bar.is_hidden() && done.is_multiple_of(count.div_ceil(LINES)) {
            note(format_args!("{done} of {count} scenarios"));
        }
    };
    let outcome = swarm::run(count, seed, on_progress);
    bar.finish_and_clear();
    match outcome {
        Ok(done) => print(&format!(
            "{} scenarios, {} requests: every invariant held\n",
            done.scenarios, done.requests
        )),
        Err(failure) => {
            print(&described(&failure)?)?;
            Err(Failure::Run(format!("{failure}")))
        }
    }
}

/// The small scenario of a failure as a file.
fn described(failure: &swarm::Failure) -> Result<String, Failure> {
    let case = failure.case.to_yaml();
    let case =
        case.map_err(|error| Failure::Run(format!("cannot format the scenario: {error}")))?;
    let seed = failure.seed;
    Ok(format!(
        "# {failure}\n# This scenario was shrunk; the original: forebay sim swarm 1 --seed \
         {seed}\n# Save this file, and run it again: forebay sim replay FILE\n{case}"
    ))
}

/// The command `replay`.
pub(super) fn replay(options: &ReplayOptions) -> Result<(), Failure> {
    let text = forebay_config::read(&options.file)?;
    let name = options.file.display().to_string();
    let case = Case::parse(&Source::new(&name, &text))?;
    let outcome = case.run().map_err(|error| Failure::Run(format!("{name}: {error}")))?;
    note(format_args!("{} requests: every invariant held", outcome.requests));
    print(&options.format.render(&Report::Run(Box::new(outcome.result)))?)
}

#[cfg(test)]
mod tests {
    use forebay_sim::simulation::SimulationError;
    use forebay_sim::swarm::{PolicySpec, Settings};

    use super::*;

    #[test]
    fn a_printed_failure_is_a_file_that_can_be_replayed() {
        let case = Case {
            seed: 7,
            shards: 2,
            settings: Settings {
                millis: 10,
                model_percent: 95,
                mix_percent: None,
                policy: PolicySpec::Concurrency { requests: 4 },
                latency_target: "p95=1ms".parse().ok(),
                finds_window: true,
                duplex: true,
                tick_micros: Some(500),
                wake_up_micros: 5,
                takes_last: false,
                stalls: None,
                long_turns: None,
                cancels: None,
                transfers: None,
                holders: Vec::new(),
                changes: Vec::new(),
            },
            disk: String::from("kind: ideal\nchannels: 4\n"),
            jobs: String::from("- {name: \"a: b\", type: randread}\n"),
            sched_groups: None,
        };
        let error = SimulationError::Zero("the duration");
        let text = described(&swarm::Failure { seed: 7, error, case: case.clone() }).unwrap();
        assert!(text.contains("seed 7: the duration is 0"), "{text}");
        assert!(text.contains("sim swarm 1 --seed 7"), "{text}");
        assert_eq!(Case::parse(&Source::new("case.yaml", &text)), Ok(case));
    }
}
