//! `forebay trace`: what the kernel sends to disks.

mod discards;
mod output;
mod recorded_text;
mod requests;
mod subject;
mod watch;

use std::process::ExitCode;

use clap::Subcommand;

use crate::failure::Failure;

/// Show what the kernel sends to disks, from its block tracepoints. Needs root, except with --from.
#[derive(Subcommand)]
pub(crate) enum Command {
    Requests(requests::Options),
    Discards(discards::Options),
}

/// The command.
pub(crate) fn run(command: &Command) -> Result<ExitCode, Failure> {
    match command {
        Command::Requests(options) => requests::run(options),
        Command::Discards(options) => discards::run(options),
    }
}
