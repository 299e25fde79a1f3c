//! What the machine says of itself in files.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// The files of a machine, below a root: `/` for this one.
#[derive(Debug)]
pub(super) struct Machine {
    root: PathBuf,
    /// What is there and could not be read, by path, and why.
    hidden: RefCell<BTreeMap<PathBuf, String>>,
}

impl Machine {
    /// The machine with this root, an absolute path without links.
    pub(super) fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into(), hidden: RefCell::default() }
    }

    /// What is there and could not be read, by path below the root, and why.
    pub(super) fn hidden(&self) -> Vec<(PathBuf, String)> {
        self.hidden.borrow().iter().map(|(path, why)| (path.clone(), why.clone())).collect()
    }

    /// Whether this path is one of [`Machine::hidden`].
    pub(super) fn hides(&self, path: impl AsRef<Path>) -> bool {
        self.hidden.borrow().contains_key(path.as_ref())
    }

    /// What a look at `path` showed; it is remembered when something is there that it did not.
    fn seen<T>(&self, path: &Path, look: impl FnOnce(&Path) -> io::Result<T>) -> Option<T> {
        let error = match look(&self.root.join(path)) {
            Ok(seen) => return Some(seen),
            Err(error) => error,
        };
        let why = match error.kind() {
            ErrorKind::NotFound | ErrorKind::NotADirectory => return None,
            ErrorKind::PermissionDenied => String::from("this user may not read it"),
            _ => error.to_string(),
        };
        self.hidden.borrow_mut().insert(path.to_owned(), why);
        None
    }

    /// What is mounted where, as this process sees it.
    pub(super) fn mountinfo(&self) -> String {
        self.text("proc/self/mountinfo").unwrap_or_default()
    }

    /// The content of a file, without the newline at its end; `None` where there is none, or
    /// none that may be read.
    pub(super) fn text(&self, path: impl AsRef<Path>) -> Option<String> {
        let bytes = self.seen(path.as_ref(), |path| fs::read(path))?;
        Some(String::from_utf8_lossy(&bytes).trim_end_matches('\n').to_owned())
    }

    /// The content of a file that holds one number.
    pub(super) fn number(&self, path: impl AsRef<Path>) -> Option<u64> {
        self.text(path)?.trim().parse().ok()
    }

    /// The names in a directory, in order; none where there is no such directory.
    pub(super) fn names(&self, dir: impl AsRef<Path>) -> Vec<String> {
        let entries = self.seen(dir.as_ref(), |dir| fs::read_dir(dir));
        let entries = entries.into_iter().flatten().flatten();
        let mut names: Vec<String> =
            entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        names
    }

    /// Whether there is a file or directory of this name.
    pub(super) fn has(&self, path: impl AsRef<Path>) -> bool {
        self.seen(path.as_ref(), Path::symlink_metadata).is_some()
    }

    /// Where a link leads, as a path below the root.
    pub(super) fn resolve(&self, link: impl AsRef<Path>) -> Option<PathBuf> {
        let target = self.seen(link.as_ref(), |link| fs::canonicalize(link))?;
        target.strip_prefix(&self.root).ok().map(Path::to_owned)
    }

    /// How many processors run.
    pub(super) fn cpus(&self) -> u64 {
        let list = self.text("sys/devices/system/cpu/online").unwrap_or_default();
        let count = |range: &str| {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let (first, last) = (first.trim().parse::<u64>().ok()?, last.trim().parse().ok()?);
            u64::checked_sub(last, first).map(|more| more + 1)
        };
        list.split(',').filter_map(count).sum::<u64>().max(1)
    }
}
