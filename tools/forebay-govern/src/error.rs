//! Why a disk is not governed.

use std::io;
use std::path::Path;

/// Why a disk is not governed; the text says what to do.
#[derive(PartialEq, Eq, thiserror::Error)]
pub enum GovernError {
    /// Something is missing, and nothing was changed.
    #[error("{0}")]
    Missing(String),
    /// Something went wrong on the way.
    #[error("{0}")]
    Failed(String),
    /// The user has ended it.
    #[error("interrupted")]
    Interrupted,
}

impl GovernError {
    pub(crate) fn at(path: impl AsRef<Path>) -> impl FnOnce(io::Error) -> Self {
        move |error| Self::Failed(format!("{}: {error}", path.as_ref().display()))
    }
}

forebay_core::debug_as_display!(GovernError);
