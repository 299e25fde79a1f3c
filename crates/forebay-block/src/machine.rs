//! What the machine says of itself in files.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// The files of a machine, below a root: `/` for this one.
#[derive(Debug)]
pub struct Machine {
    root: PathBuf,
    /// What is there and could not be read, by path, and why.
    hidden: RefCell<BTreeMap<PathBuf, String>>,
}

impl Machine {
    /// This machine.
    pub fn this() -> Self {
        Self::new("/")
    }

    /// The machine with this root, an absolute path without links.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into(), hidden: RefCell::default() }
    }

    /// What is there and could not be read, by path below the root, and why.
    pub fn hidden(&self) -> Vec<(PathBuf, String)> {
        self.hidden.borrow().iter().map(|(path, why)| (path.clone(), why.clone())).collect()
    }

    /// Whether this path is one of [`Machine::hidden`].
    pub fn hides(&self, path: impl AsRef<Path>) -> bool {
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
    pub fn mountinfo(&self) -> String {
        self.text("proc/self/mountinfo").unwrap_or_default()
    }

    /// The content of a file, without the newline at its end; `None` where there is none, or
    /// none that may be read.
    pub fn text(&self, path: impl AsRef<Path>) -> Option<String> {
        let bytes = self.seen(path.as_ref(), |path| fs::read(path))?;
        Some(String::from_utf8_lossy(&bytes).trim_end_matches('\n').to_owned())
    }

    /// The content of a file that holds one number.
    pub fn number(&self, path: impl AsRef<Path>) -> Option<u64> {
        self.text(path)?.trim().parse().ok()
    }

    /// The names in a directory, in order; none where there is no such directory.
    pub fn names(&self, dir: impl AsRef<Path>) -> Vec<String> {
        let entries = self.seen(dir.as_ref(), |dir| fs::read_dir(dir));
        let entries = entries.into_iter().flatten().flatten();
        let mut names: Vec<String> =
            entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        names
    }

    /// What is known of the file or link of this name, at a path below the root.
    ///
    /// # Errors
    /// There is none, or it may not be looked at.
    pub(crate) fn metadata(&self, path: &Path) -> io::Result<Metadata> {
        self.at(path).symlink_metadata()
    }

    /// What the link of this name says.
    ///
    /// # Errors
    /// It cannot be read.
    pub(crate) fn link(&self, path: &Path) -> io::Result<PathBuf> {
        fs::read_link(self.at(path))
    }

    /// A path below the root, for system calls.
    pub(crate) fn at(&self, path: &Path) -> PathBuf {
        self.root.join(path.strip_prefix("/").unwrap_or(path))
    }

    /// Whether there is a file or directory of this name.
    pub fn has(&self, path: impl AsRef<Path>) -> bool {
        self.seen(path.as_ref(), Path::symlink_metadata).is_some()
    }

    /// Where a link leads, as a path below the root.
    pub fn resolve(&self, link: impl AsRef<Path>) -> Option<PathBuf> {
        let target = self.seen(link.as_ref(), |link| fs::canonicalize(link))?;
        target.strip_prefix(&self.root).ok().map(Path::to_owned)
    }
}
