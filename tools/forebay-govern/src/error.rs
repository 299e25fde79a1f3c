//! Why a disk is not governed.

use std::fmt;
use std::io;
use std::path::Path;

/// Why a disk is not governed; the text says what to do.
#[derive(PartialEq, Eq)]
pub enum GovernError {
    /// Something is missing, and nothing was changed.
    Missing(String),
    /// Something went wrong on the way.
    Failed(String),
    /// The user has ended it.
    Interrupted,
}

impl GovernError {
    pub(crate) fn at(path: impl AsRef<Path>) -> impl FnOnce(io::Error) -> Self {
        move |error| Self::Failed(format!("{}: {error}", path.as_ref().display()))
    }
}

impl fmt::Display for GovernError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(text) | Self::Failed(text) => f.write_str(text),
            Self::Interrupted => f.write_str("interrupted"),
        }
    }
}

/// What a `main` that returns an error shows of it.
impl fmt::Debug for GovernError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for GovernError {}
