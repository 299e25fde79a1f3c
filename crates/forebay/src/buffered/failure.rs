//! The error of a part that got no permit, kept for the next write and the next flush.

use std::io;

use crate::permit::AdmitError;

/// The error of a part that got no permit. The part is still dirty.
#[derive(Debug)]
pub(super) struct Failure {
    error: io::Error,
    /// A write has reported the error, but no flush has.
    reported: bool,
}

impl Failure {
    pub(super) fn of_admission(error: AdmitError) -> Self {
        Self { error: error.into(), reported: false }
    }

    /// The error for the next write, once.
    pub(super) fn for_write(&mut self) -> Option<io::Error> {
        let first = !std::mem::replace(&mut self.reported, true);
        first.then(|| copied(&self.error))
    }

    /// The error for the flush, after which it is forgotten.
    pub(super) fn for_flush(self) -> io::Error {
        self.error
    }
}

/// A copy of an error, which keeps the number of a system error.
fn copied(error: &io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(code) => io::Error::from_raw_os_error(code),
        None => io::Error::new(error.kind(), error.to_string()),
    }
}
