//! What is wrong with a file, and where.

use std::fmt;

use crate::Position;

/// One error in one file.
///
/// It displays as `FILE:LINE:COLUMN: KEY: MESSAGE`; the position is left out when the error
/// is about the file as a whole, and the key when the place has none.
#[derive(Clone, PartialEq, Eq)]
pub struct ConfigError {
    /// The file's name, as the caller gave it.
    pub file: String,
    /// The line, counted from 1; 0 when the error is about the whole file.
    pub line: u64,
    /// The column in characters, counted from 1; 0 when the error is about the whole file.
    pub column: u64,
    /// The path of keys that leads to the place, such as `disks[0].read_iops`.
    pub key: Option<String>,
    /// What is wrong, what was expected, and what to do.
    pub message: String,
}

impl ConfigError {
    /// An error in `file` as a whole: it cannot be read, is too long, and the like.
    pub fn whole_file(file: &str, message: impl Into<String>) -> Self {
        Self::at(file, Position::default(), None, message)
    }

    /// An error at the place `at` in `file`, which `key` leads to.
    ///
    /// [`Source::error`](crate::Source::error) finds the key itself and is preferred where the
    /// text is at hand.
    pub fn at(file: &str, at: Position, key: Option<String>, message: impl Into<String>) -> Self {
        let Position { line, column } = at;
        Self { file: file.to_owned(), line, column, key, message: message.into() }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.file)?;
        if self.line > 0 {
            write!(f, "{}:{}:", self.line, self.column)?;
        }
        if let Some(key) = &self.key {
            write!(f, " {key}:")?;
        }
        write!(f, " {}", self.message)
    }
}

/// What a `main` that returns an error shows of it.
impl fmt::Debug for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for ConfigError {}
