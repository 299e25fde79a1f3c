//! The program `forebay`.

mod bench;
mod check;
mod console;
mod disk;
mod failure;
mod info;
mod load_options;
mod report;
mod reproduce;
mod serve;
mod simulate;
mod span;
mod svg;
mod tune;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Measures disks, loads them, and shows what scheduling changes.
#[derive(Parser)]
#[command(name = "forebay", version, max_term_width = 100, args_override_self = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Bench(bench::Options),
    Check(check::Options),
    Info(info::Options),
    Tune(tune::Options),
    Simulate(simulate::Options),
    Reproduce(reproduce::Options),
    #[command(subcommand)]
    Disk(serve::Command),
}

fn main() -> ExitCode {
    let done = match &Cli::parse().command {
        Command::Bench(options) => bench::run(options),
        Command::Check(options) => return check::run(options),
        Command::Info(options) => info::run(options),
        Command::Tune(options) => tune::run(options),
        Command::Simulate(options) => simulate::run(options),
        Command::Reproduce(options) => reproduce::run(options),
        Command::Disk(command) => serve::run(command),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            console::note(format_args!("error: {failure}"));
            failure.exit_code()
        }
    }
}
