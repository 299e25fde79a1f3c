//! The directories that were used last, with their trashes.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::Stat;

use super::directory::{Directory, same_file};
use super::error::DeleteErrorCause;
use super::trash::Trash;
use crate::Class;

/// The most directories that are kept open.
const OPEN_MAX: usize = 64;

/// A directory, and the trash in it if there is one.
struct Known {
    path: PathBuf,
    directory: Arc<Directory>,
    trash: Option<Arc<Trash>>,
    /// The claims of the other deleters that used the trash at the last check.
    others: Vec<i64>,
}

/// The directories, the last used one last.
#[derive(Default)]
pub(super) struct Directories(Vec<Known>);

impl Directories {
    /// The directory at `path`, opened if it is not known. `None` if the maximum number is in use.
    pub(super) fn get(
        &mut self,
        path: &Path,
        class: &Class,
    ) -> Result<Option<Arc<Directory>>, DeleteErrorCause> {
        if let Some(at) = self.0.iter().position(|known| known.path == path && known.is_current()) {
            let known = self.0.remove(at);
            let directory = Arc::clone(&known.directory);
            self.0.push(known);
            return Ok(Some(directory));
        }
        self.0.retain(|known| known.path != path || known.is_used());
        if self.0.len() >= OPEN_MAX {
            let Some(unused) = self.0.iter().position(|known| !known.is_used()) else {
                return Ok(None);
            };
            self.0.remove(unused).close();
        }
        let directory = Arc::new(Directory::open(path, class)?);
        self.0.push(Known {
            path: path.to_owned(),
            directory: Arc::clone(&directory),
            trash: None,
            others: Vec::new(),
        });
        Ok(Some(directory))
    }

    /// The trash in `directory`, which [`Self::get`] returned, if the trash is known.
    pub(super) fn trash_of(
        &mut self,
        directory: &Arc<Directory>,
    ) -> Option<&mut Option<Arc<Trash>>> {
        let mut all = self.0.iter_mut();
        all.find(|known| Arc::ptr_eq(&known.directory, directory)).map(|known| &mut known.trash)
    }

    /// The trashes that another deleter has left since the last call.
    pub(super) fn left_by_another(&mut self) -> Vec<Arc<Trash>> {
        let mut all = Vec::new();
        for known in &mut self.0 {
            let Some(trash) = &known.trash else { continue };
            let others = trash.claims().others(trash.owner);
            if known.others.iter().any(|other| !others.contains(other)) {
                all.push(Arc::clone(trash));
            }
            known.others = others;
        }
        all
    }

    /// Closes all directories that are not in use, and removes empty trashes.
    pub(super) fn close_unused(&mut self) {
        let (used, unused) = std::mem::take(&mut self.0).into_iter().partition(Known::is_used);
        self.0 = used;
        let unused: Vec<Known> = unused;
        unused.into_iter().for_each(Known::close);
    }
}

impl Known {
    /// Whether the directory or the trash is in use elsewhere.
    fn is_used(&self) -> bool {
        Arc::strong_count(&self.directory) > 1 + usize::from(self.trash.is_some())
            || self.trash.as_ref().is_some_and(|trash| Arc::strong_count(trash) > 1)
    }

    /// Whether its path still leads to it.
    fn is_current(&self) -> bool {
        let stat = rustix::fs::stat(&self.path);
        let is_same = |stat: &Stat| same_file(stat, &self.directory.stat);
        stat.is_ok_and(|stat| is_same(&stat))
    }

    fn close(self) {
        if let Some(trash) = self.trash {
            trash.remove_if_empty();
        }
    }
}
