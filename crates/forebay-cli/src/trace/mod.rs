//! `forebay trace`: what the kernel sends to disks.

mod discards;
mod program;
mod report;
mod subject;
mod text;

use std::process::ExitCode;

use clap::Subcommand;

use crate::console::note;

/// Show what the kernel sends to disks, from its block tracepoints. Needs root.
#[derive(Subcommand)]
pub(crate) enum Command {
    Discards(discards::Options),
}

/// The command.
pub(crate) fn run(command: &Command) -> ExitCode {
    let Command::Discards(options) = command;
    discards::run(options).unwrap_or_else(|failure| {
        note(format_args!("error: {failure}"));
        failure.exit_code()
    })
}
