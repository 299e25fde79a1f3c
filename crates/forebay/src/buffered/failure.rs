//! An error of writeback, kept for whoever is to be told.

use std::io;

use crate::permit::AdmitError;

/// What went wrong with a part that nobody waited for.
#[derive(Debug)]
pub(super) struct Failure {
    error: io::Error,
    /// A write was told; a flush was not.
    told: bool,
}

impl Failure {
    /// The disk, or the file system, did not take a part.
    pub(super) const fn of_write_back(error: io::Error) -> Self {
        Self { error, told: false }
    }

    /// A flush failed, and whoever asked for it may not be there any more.
    pub(super) fn of_flush(error: &io::Error) -> Self {
        Self::of_write_back(copied(error))
    }

    /// There was no permit for a part.
    pub(super) fn of_admission(error: AdmitError) -> Self {
        Self { error: error.into(), told: false }
    }

    /// For the next write, once.
    pub(super) fn for_write(&mut self) -> Option<io::Error> {
        let first = !std::mem::replace(&mut self.told, true);
        first.then(|| copied(&self.error))
    }

    /// For the flush that ends it.
    pub(super) fn for_flush(self) -> io::Error {
        self.error
    }
}

/// An error of the system stays one.
fn copied(error: &io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(code) => io::Error::from_raw_os_error(code),
        None => io::Error::new(error.kind(), error.to_string()),
    }
}
