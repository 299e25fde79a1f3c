//! What the machine says of itself in files.

use std::fs;
use std::path::{Path, PathBuf};

/// The files of a machine, below a root: `/` for this one.
#[derive(Clone, Debug)]
pub(super) struct Machine {
    root: PathBuf,
}

impl Machine {
    /// The machine with this root, an absolute path without links.
    pub(super) fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// What is mounted where, as this process sees it.
    pub(super) fn mountinfo(&self) -> String {
        self.text("proc/self/mountinfo").unwrap_or_default()
    }

    /// The content of a file, without the newline at its end; `None` where there is none, or
    /// none that may be read.
    pub(super) fn text(&self, path: impl AsRef<Path>) -> Option<String> {
        let bytes = fs::read(self.root.join(path)).ok()?;
        Some(String::from_utf8_lossy(&bytes).trim_end_matches('\n').to_owned())
    }

    /// The content of a file that holds one number.
    pub(super) fn number(&self, path: impl AsRef<Path>) -> Option<u64> {
        self.text(path)?.trim().parse().ok()
    }

    /// The names in a directory, in order; none where there is no such directory.
    pub(super) fn names(&self, dir: impl AsRef<Path>) -> Vec<String> {
        let entries = fs::read_dir(self.root.join(dir)).into_iter().flatten().flatten();
        let mut names: Vec<String> =
            entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        names
    }

    /// Whether there is a file or directory of this name.
    pub(super) fn has(&self, path: impl AsRef<Path>) -> bool {
        self.root.join(path).symlink_metadata().is_ok()
    }

    /// Where a link leads, as a path below the root.
    pub(super) fn resolve(&self, link: impl AsRef<Path>) -> Option<PathBuf> {
        let target = fs::canonicalize(self.root.join(link)).ok()?;
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
