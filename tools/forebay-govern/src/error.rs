//! Errors of the governor.

use std::io;
use std::path::Path;

/// Why a disk cannot be governed. The message says what to do.
#[derive(PartialEq, Eq, thiserror::Error)]
pub enum GovernError {
    /// A requirement is missing. Nothing was changed.
    #[error("{0}")]
    Missing(String),
    /// An operation failed after something may have been changed.
    #[error("{0}")]
    Failed(String),
    /// The user interrupted it.
    #[error("interrupted")]
    Interrupted,
}

impl GovernError {
    pub(crate) fn at(path: impl AsRef<Path>) -> impl FnOnce(io::Error) -> Self {
        move |error| Self::Failed(format!("{}: {error}", path.as_ref().display()))
    }
}

forebay_core::debug_as_display!(GovernError);
