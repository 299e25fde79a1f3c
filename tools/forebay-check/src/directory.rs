//! One directory: how it is reached, and what is found of it.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{self, Path, PathBuf};

use forebay_block::{Machine, Mount, Stack};

use crate::finding::Finding;
use crate::observe;
use crate::report::DirectoryReport;
use crate::subject::Subject;

/// Checks one directory of a machine.
pub fn check(machine: &Machine, dir: &Path) -> DirectoryReport {
    let (full, hidden) = match reach(&machine.mountinfo(), dir, |path| fs::canonicalize(path)) {
        Ok(reached) => reached,
        Err(error) => return DirectoryReport::refused(dir, missing(dir, &error)),
    };
    if !full.is_dir() {
        let shown = dir.display();
        let finding = Finding::error(format!("`{shown}` is not a directory"))
            .fix("name the directory that data is or will be in");
        return DirectoryReport::refused(dir, finding);
    }
    let stack = Stack::of_path(machine, &full);
    match stack.and_then(|stack| observe::environment(&full, &stack)) {
        Ok(environment) => DirectoryReport::of(&Subject::new(machine, &environment)).and(hidden),
        Err(error) => DirectoryReport::refused(dir, missing(dir, &error)),
    }
}

/// The full path of `dir`; or where this user may not look into it, of the nearest directory above
/// on the same filesystem, as far as its path says, and what to say of that.
pub(crate) fn reach(
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
            Ok((above, Some(finding.fix(format!("sudo forebay check {}", dir.display())))))
        }
        _ => Err(error),
    }
}

fn missing(dir: &Path, error: &io::Error) -> Finding {
    let shown = dir.display();
    match error.kind() {
        ErrorKind::NotFound => Finding::error(format!("there is no directory `{shown}`"))
            .fix("create it, or name another"),
        ErrorKind::PermissionDenied => {
            Finding::error(format!("this user may not look into `{shown}`"))
                .fix(format!("sudo forebay check {shown}"))
        }
        _ => Finding::error(format!("cannot look at `{shown}`: {error}"))
            .fix("see whether its filesystem still answers, or name another directory"),
    }
}
