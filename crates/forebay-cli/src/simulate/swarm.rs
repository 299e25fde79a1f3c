//! `forebay simulate --swarm` and `--replay`: random scenarios under the scheduler's invariants.

use std::path::Path;

use forebay_config::Source;
use forebay_load::results::model::Report;
use forebay_sim::swarm::{self, Case};
use indicatif::{ProgressBar, ProgressStyle};

use crate::console::{note, print};
use crate::failure::Failure;
use crate::load_options::Format;

/// Lines of progress where there is no terminal to draw a bar on.
const LINES: u64 = 10;

/// Runs `count` scenarios from `seed` on, and prints the first that fails.
pub(super) fn run(count: u64, seed: u64) -> Result<(), Failure> {
    let style = ProgressStyle::with_template("{bar:40} {pos} of {len} scenarios, {eta} left");
    let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
    let bar = ProgressBar::new(count).with_style(style);
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
    let case = case.map_err(|error| Failure::Run(format!("cannot write it down: {error}")))?;
    let seed = failure.seed;
    Ok(format!(
        "# {failure}\n# This is made small; the whole of it: forebay simulate --swarm 1 --seed {seed}\n\
         # Save this file, and run it again: forebay simulate --replay FILE\n{case}"
    ))
}

/// Runs a scenario again that [`run`] has printed.
pub(super) fn replay(path: &Path, format: Format) -> Result<(), Failure> {
    let text = forebay_config::read(path)?;
    let name = path.display().to_string();
    let case = Case::parse(&Source::new(&name, &text))?;
    let outcome = case.run().map_err(|error| Failure::Run(format!("{name}: {error}")))?;
    note(format_args!("{} requests: every invariant held", outcome.requests));
    print(&format.render(&Report::Run(Box::new(outcome.result)))?)
}

#[cfg(test)]
mod tests {
    use forebay_sim::simulation::SimulationError;
    use forebay_sim::swarm::{Rule, Settings};

    use super::*;

    #[test]
    fn what_is_printed_of_a_failure_is_a_file_to_run_again() {
        let case = Case {
            seed: 7,
            shards: 2,
            settings: Settings {
                millis: 10,
                model_percent: 95,
                policy: Rule::Concurrency { requests: 4 },
                duplex: true,
                tick_micros: Some(500),
                wake_up_micros: 5,
                takes_last: false,
                stalls: None,
                long_turns: None,
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
        assert!(text.contains("--swarm 1 --seed 7"), "{text}");
        assert_eq!(Case::parse(&Source::new("case.yaml", &text)), Ok(case));
    }
}
