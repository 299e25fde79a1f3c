//! `forebay check`: looks at what is between a directory and its disk, without load.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use forebay_block::Machine;
use forebay_check::{Level, Report, check};

use crate::console::{Format, json, print};
use crate::failure::Failure;

/// Look for settings of kernel, filesystem and disk that cost throughput or latency.
///
/// Takes well under a second, needs no root, and leaves nothing behind: in each directory it makes
/// one small unnamed file, writes one block, and removes it. The exit code is 0 if all is fine, 1
/// after warnings, and 2 after errors.
#[derive(Args)]
pub(crate) struct Options {
    /// The directories that hold data, or will hold it
    #[arg(required = true, value_name = "DIR")]
    dirs: Vec<PathBuf>,
    /// How to print the findings
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Show also the checks that passed
    #[arg(long, short)]
    verbose: bool,
}

/// The command.
pub(crate) fn run(options: &Options) -> Result<ExitCode, Failure> {
    let dirs = options.dirs.iter().map(|dir| check(&Machine::this(), dir)).collect();
    let report = Report::new(dirs);
    print(&match options.format {
        Format::Text => report.text(options.verbose),
        Format::Json => json(&report)?,
    })?;
    Ok(match report.level {
        Level::Fine | Level::Unknown | Level::Note => ExitCode::SUCCESS,
        Level::Warning => ExitCode::from(1),
        Level::Error => ExitCode::from(2),
    })
}
