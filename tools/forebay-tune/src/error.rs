//! Why a disk could not be measured.

use std::io;

/// Why a disk could not be measured; the text says what to do.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The user ended it.
    #[error("interrupted")]
    Interrupted,
    /// The place cannot or must not be measured.
    #[error("{0}")]
    Refused(String),
    /// Something that was asked of the system failed.
    #[error("cannot {what}: {source}")]
    Io {
        /// What was to be done.
        what: String,
        /// What the system says.
        source: io::Error,
    },
    /// A file of an earlier run is not one, or of another version.
    #[error("{0}")]
    Run(String),
    /// The measurement came to an end without what it needs.
    #[error("{0}")]
    Incomplete(String),
}

forebay_core::debug_as_display!(Error);

impl Error {
    /// A phase that left no samples.
    pub(crate) fn nothing_measured() -> Self {
        Self::Incomplete(String::from("nothing was measured: a defect"))
    }

    /// [`Error::Io`] for a call of [`Result::map_err`].
    pub(crate) fn io<E: Into<io::Error>>(what: impl Into<String>) -> impl FnOnce(E) -> Self {
        let what = what.into();
        move |source| Self::Io { what, source: source.into() }
    }
}
