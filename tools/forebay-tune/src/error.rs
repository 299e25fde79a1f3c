//! Why a disk could not be measured.

use std::io;

/// Why a disk could not be measured; the text says what to do.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The user interrupted it.
    #[error("interrupted")]
    Interrupted,
    /// The place cannot or must not be measured.
    #[error("{0}")]
    Refused(String),
    /// A system call failed.
    #[error("cannot {what}: {source}")]
    Io {
        /// What the program tried to do.
        what: String,
        /// The error of the system call.
        source: io::Error,
    },
    /// A file of an earlier run is invalid or of another version.
    #[error("{0}")]
    Run(String),
    /// The measurement ended without the samples that it needs.
    #[error("{0}")]
    Incomplete(String),
}

forebay_core::debug_as_display!(Error);

impl Error {
    /// The error of a phase without samples.
    pub(crate) fn nothing_measured() -> Self {
        Self::Incomplete(String::from("internal error: nothing was measured"))
    }

    /// [`Error::Io`] for a call of [`Result::map_err`].
    pub(crate) fn io<E: Into<io::Error>>(what: impl Into<String>) -> impl FnOnce(E) -> Self {
        let what = what.into();
        move |source| Self::Io { what, source: source.into() }
    }
}
