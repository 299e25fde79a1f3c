//! `forebay sim`: the scheduler on simulated disks, under a virtual clock.

mod page;
mod run;
mod swarm;

use std::ffi::OsString;

use clap::Subcommand;

use crate::failure::Failure;

/// Run the scheduler on simulated disks, under a virtual clock.
#[derive(Subcommand)]
pub(crate) enum Command {
    Run(Box<run::Options>),
    Swarm(swarm::Options),
    Replay(swarm::ReplayOptions),
}

/// The command.
pub(crate) fn run(command: &Command) -> Result<(), Failure> {
    match command {
        Command::Run(options) => run::run(options),
        Command::Swarm(options) => swarm::run(options),
        Command::Replay(options) => swarm::replay(options),
    }
}

/// The arguments of the program, with `simulate` as it was once spelled in today's spelling:
/// `simulate`, `simulate --swarm N` and `simulate --replay FILE` are `sim run`, `sim swarm N` and
/// `sim replay FILE`.
pub(crate) fn today(arguments: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = arguments.collect();
    if arguments.get(1).is_none_or(|command| command != "simulate") {
        return arguments;
    }
    let mut verb = "run";
    for (option, today) in [("--swarm", "swarm"), ("--replay", "replay")] {
        let is_it = |argument: &OsString| {
            argument.to_str().is_some_and(|argument| argument.split('=').next() == Some(option))
        };
        let Some(at) = arguments.iter().position(is_it) else { continue };
        // the value is an argument of its own, or behind a `=`
        let joined = arguments[at].to_str().and_then(|argument| argument.split_once('='));
        let value = joined.map(|(_, value)| OsString::from(value));
        arguments.splice(at..=at, value);
        verb = today;
    }
    arguments.splice(1..2, ["sim", verb].map(OsString::from));
    arguments
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_old_spelling_is_the_new_one() {
        for (old, new) in [
            ("simulate jobs.yaml --disk gp3", "sim run jobs.yaml --disk gp3"),
            ("simulate --seed 2 --swarm 300", "sim swarm --seed 2 300"),
            ("simulate --swarm=300", "sim swarm 300"),
            ("simulate --replay case.yaml --format json", "sim replay case.yaml --format json"),
            ("sim run jobs.yaml", "sim run jobs.yaml"),
            ("bench simulate", "bench simulate"),
        ] {
            let of = |line: &str| -> Vec<OsString> {
                ["forebay"].into_iter().chain(line.split(' ')).map(OsString::from).collect()
            };
            assert_eq!(today(of(old).into_iter()), of(new));
        }
    }
}
