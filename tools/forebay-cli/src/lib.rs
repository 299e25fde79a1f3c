//! The program `forebay`, and its arguments for what is generated from them.

mod bench;
mod check;
mod console;
mod control;
mod disk;
mod explore;
mod export;
mod failure;
mod gate;
mod govern;
mod growth;
mod info;
mod interrupt;
mod load_options;
mod metrics_address;
mod properties_file;
mod report;
mod reproduce;
mod rm;
mod run;
mod serve;
mod sim;
mod span;
mod top;
mod trace;
mod trim;
mod tune;
mod whole_file;
mod whole_number;

use std::io::ErrorKind;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

/// What tells scripts how it ended.
const EXIT_CODES: &str = "\
Exit codes: 0 done; 1 failed while running; 2 an option or a file is invalid; 3 `explore`
measured and saved a surface, but no region keeps a requested goal; 130 interrupted. Comparisons
(`tune --diff`, `tune --history`, `bench --diff`): 1 a regression was found, 2 not comparable.
`forebay check`, `rm`, `run` and `trace` have exit codes of their own: see their help.";

/// Measures disks, loads them, and shows what scheduling changes.
#[derive(Parser)]
#[command(name = "forebay", version, max_term_width = 100, args_override_self = true)]
#[command(after_help = EXIT_CODES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Bench(bench::Options),
    Top(top::Options),
    Check(check::Options),
    Info(info::Options),
    Tune(tune::Options),
    Explore(explore::Options),
    Export(export::Options),
    #[command(subcommand)]
    Sim(sim::Command),
    Report(report::Options),
    Reproduce(reproduce::Options),
    #[command(subcommand)]
    Disk(serve::Command),
    Govern(govern::Options),
    Rm(rm::Options),
    Run(run::Options),
    #[command(subcommand)]
    Trace(trace::Command),
    Trim(trim::Options),
}

/// Options whose values are numbers, by what their values are called.
const NUMBERS: [&str; 4] = ["N", "TIME", "SIZE", "BYTES"];

/// Takes what follows an option for a number as its value even where it begins with a hyphen, so
/// that `-1` is refused as a number and not as an option that nobody knows.
fn negative_numbers_are_values(command: clap::Command) -> clap::Command {
    let is_number = |arg: &clap::Arg| {
        let names = arg.get_value_names().unwrap_or_default();
        names.iter().any(|name| NUMBERS.contains(&name.as_str()))
    };
    let command = command.mut_subcommands(negative_numbers_are_values);
    command.mut_args(|arg| if is_number(&arg) { arg.allow_hyphen_values(true) } else { arg })
}

/// The arguments of the program, for its manual pages and completions.
#[must_use]
pub fn command() -> clap::Command {
    negative_numbers_are_values(Cli::command())
}

/// Does what the arguments of the process say, and returns the exit code.
#[must_use]
pub fn run() -> ExitCode {
    let matches = command().try_get_matches_from(sim::today(std::env::args_os()));
    let cli = match matches.and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => cli,
        Err(said) => return tell(&said),
    };
    let done = match &cli.command {
        Command::Bench(options) => bench::run(options),
        Command::Top(options) => top::run(options),
        Command::Check(options) => return finish(check::run(options)),
        Command::Info(options) => info::run(options),
        Command::Tune(options) => tune::run(options),
        Command::Explore(options) => explore::run(options),
        Command::Export(options) => export::run(options),
        Command::Sim(command) => sim::run(command),
        Command::Report(options) => report::run(options),
        Command::Reproduce(options) => reproduce::run(options),
        Command::Disk(command) => serve::run(command),
        Command::Govern(options) => govern::run(options),
        Command::Rm(options) => return finish(rm::run(options)),
        Command::Run(options) => return finish(run::run(options)),
        Command::Trace(command) => return finish(trace::run(command)),
        Command::Trim(options) => return finish(trim::run(options)),
    };
    finish(done.map(|()| ExitCode::SUCCESS))
}

/// The exit code of a command; what made it fail is printed.
fn finish(done: Result<ExitCode, failure::Failure>) -> ExitCode {
    done.unwrap_or_else(|failure| {
        console::note(format_args!("error: {failure}"));
        failure.exit_code()
    })
}

/// Help and version, which are results, or what is wrong with the arguments.
fn tell(said: &clap::Error) -> ExitCode {
    match said.print() {
        Err(error) if !said.use_stderr() && error.kind() != ErrorKind::BrokenPipe => {
            console::note(format_args!("error: cannot write the help: {error}"));
            ExitCode::FAILURE
        }
        _ => ExitCode::from(u8::try_from(said.exit_code()).unwrap_or(2)),
    }
}

#[cfg(test)]
mod tests;
