//! `forebay check`: looks at what is between a directory and its disk, without load.

mod calls;
mod device;
mod finding;
mod machine;
mod observe;
mod probes;
mod report;
mod sources;
mod subject;
#[cfg(test)]
mod tests;

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use forebay_tune::Mount;

use crate::console::{note, print};
use finding::{Finding, Level};
use machine::Machine;
use report::{Checked, Report};
use subject::Subject;

/// Look for settings of kernel, filesystem and disk that cost throughput or latency.
///
/// Takes well under a second, needs no root, and changes nothing: in each directory it makes one
/// small file without a name, writes one block of it, and lets it go. The exit code is 0 when all
/// is fine, 1 after warnings, and 2 after errors.
#[derive(Args)]
pub(crate) struct Options {
    /// The directories that data is or will be in
    #[arg(required = true, value_name = "DIR")]
    dirs: Vec<PathBuf>,
    /// How to print what was found
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Show also what is as it should be
    #[arg(long, short)]
    verbose: bool,
}

/// How findings are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people
    Text,
    /// JSON
    Json,
}

/// The command.
pub(crate) fn run(options: &Options) -> ExitCode {
    let machine = Machine::new("/");
    let dirs = options.dirs.iter().map(|dir| check(&machine, dir)).collect();
    let report = Report::new(dirs);
    let text = match options.format {
        Format::Text => Ok(report.text(options.verbose)),
        Format::Json => report.json(),
    };
    if let Err(failure) = text.and_then(|text| print(&text)) {
        note(format_args!("error: {failure}"));
        return failure.exit_code();
    }
    match report.level {
        Level::Fine | Level::Unseen | Level::Note => ExitCode::SUCCESS,
        Level::Warning => ExitCode::from(1),
        Level::Error => ExitCode::from(2),
    }
}

/// Checks one directory of this machine.
fn check(machine: &Machine, dir: &Path) -> Checked {
    let full = match fs::canonicalize(dir) {
        Ok(full) => full,
        Err(error) => return Checked::refused(dir, missing(dir, &error)),
    };
    if !full.is_dir() {
        let shown = dir.display();
        let finding = Finding::error(format!("`{shown}` is not a directory"))
            .mend("name the directory that data is or will be in");
        return Checked::refused(dir, finding);
    }
    let mount = Mount::holding(&machine.mountinfo(), &full);
    match observe::calls(&full, mount.as_ref()) {
        Ok(calls) => Checked::of(&Subject::new(machine, &calls)),
        Err(error) => Checked::refused(dir, missing(dir, &error)),
    }
}

fn missing(dir: &Path, error: &std::io::Error) -> Finding {
    let shown = dir.display();
    match error.kind() {
        ErrorKind::NotFound => Finding::error(format!("there is no directory `{shown}`"))
            .mend("create it, or name another"),
        ErrorKind::PermissionDenied => {
            Finding::error(format!("this user may not look into `{shown}`"))
                .mend(format!("sudo forebay check {shown}"))
        }
        _ => Finding::error(format!("cannot look at `{shown}`: {error}"))
            .mend("see whether its filesystem still answers, or name another directory"),
    }
}
