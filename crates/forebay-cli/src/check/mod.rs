//! `forebay check`: looks at what is between a directory and its disk, without load.

mod calls;
mod finding;
mod observe;
mod probes;
mod report;
mod sources;
mod subject;
#[cfg(test)]
mod tests;

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{self, Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use forebay_block::{Machine, Mount, Stack};

use crate::console::{note, print};
use finding::{Finding, Level};
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
    let dirs = options.dirs.iter().map(|dir| check(&Machine::this(), dir)).collect();
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
    let (full, hidden) = match reach(&machine.mountinfo(), dir, |path| fs::canonicalize(path)) {
        Ok(reached) => reached,
        Err(error) => return Checked::refused(dir, missing(dir, &error)),
    };
    if !full.is_dir() {
        let shown = dir.display();
        let finding = Finding::error(format!("`{shown}` is not a directory"))
            .mend("name the directory that data is or will be in");
        return Checked::refused(dir, finding);
    }
    let stack = Stack::of_path(machine, &full);
    match stack.and_then(|stack| observe::calls(&full, &stack)) {
        Ok(calls) => Checked::of(&Subject::new(machine, &calls)).and(hidden),
        Err(error) => Checked::refused(dir, missing(dir, &error)),
    }
}

/// The full path of `dir`; or where this user may not look into it, of the nearest directory above
/// on the same filesystem, as far as its path says, and what to say of that.
fn reach(
    mounts: &str,
    dir: &Path,
    full: impl Fn(&Path) -> io::Result<PathBuf>,
) -> io::Result<(PathBuf, Option<Finding>)> {
    let error = match full(dir) {
        Ok(full) => return Ok((full, None)),
        Err(error) => error,
    };
    let wanted = path::absolute(dir)?;
    let above = wanted.ancestors().find_map(|above| full(above).ok());
    match above.filter(|above| Mount::holding(mounts, above) == Mount::holding(mounts, &wanted)) {
        Some(above) if error.kind() == ErrorKind::PermissionDenied => {
            let finding = Finding::warning(format!(
                "this user may not look into `{}`; what follows is of `{}`, on the same filesystem",
                dir.display(),
                above.display()
            ));
            Ok((above, Some(finding.mend(format!("sudo forebay check {}", dir.display())))))
        }
        _ => Err(error),
    }
}

fn missing(dir: &Path, error: &io::Error) -> Finding {
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
