//! Why a part got no permit, kept for the next write and the next flush.

use std::io;

use crate::permit::AdmitError;

/// Why a part got no permit. It is still dirty.
#[derive(Debug)]
pub(super) struct Failure {
    error: io::Error,
    /// A write was told; a flush was not.
    told: bool,
}

impl Failure {
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
