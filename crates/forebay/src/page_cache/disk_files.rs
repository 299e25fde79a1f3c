//! The descriptors that the library opens for the files of a disk.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;

use super::held_files::HeldFiles;
use crate::sys::lock::Lock;

/// The [`HeldFiles`] of a disk, made at their first use.
#[derive(Clone, Debug, Default)]
pub(crate) struct DiskFiles(Arc<Lock<Option<Arc<HeldFiles>>>>);

impl DiskFiles {
    /// # Errors
    /// Those of [`HeldFiles::new`].
    pub(super) fn get_or_make(&self) -> io::Result<Arc<HeldFiles>> {
        let mut files = self.0.lock();
        if let Some(files) = &*files {
            return Ok(Arc::clone(files));
        }
        let made = Arc::new(HeldFiles::new()?);
        Ok(Arc::clone(files.insert(made)))
    }

    /// [`HeldFiles::close_deleted`].
    pub(crate) fn close_deleted(&self, number: u64) {
        let files = self.0.lock().clone();
        if let Some(files) = files {
            files.close_deleted(number);
        }
    }

    /// The files that `open` opens in `directory`. They may be files of the engine. A file for
    /// which `open` fails was not opened and closed in the process's descriptor table, so its
    /// record locks stay. Only if the system refuses other tables, `open` is called on the calling
    /// thread. A file is `None` if the process's table is full. The result is `None` if there are
    /// otherwise too few descriptors, or no thread.
    pub(crate) fn open_in<E: Send + 'static>(
        &self,
        directory: BorrowedFd<'_>,
        open: impl FnOnce(BorrowedFd<'_>) -> Vec<Result<OwnedFd, E>> + Send + 'static,
    ) -> Option<Vec<Result<Option<OwnedFd>, E>>> {
        match self.get_or_make() {
            Ok(files) => files.open_in(directory, open),
            Err(_) => Some(open(directory).into_iter().map(|file| file.map(Some)).collect()),
        }
    }
}
