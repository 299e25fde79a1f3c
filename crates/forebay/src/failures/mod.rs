//! Bytes of files that are not on the disk because writing them back failed.
//!
//! Decision: `docs/decisions/0031-failed-writeback.md`.

mod error;
mod failed_files;
mod failed_ranges;
mod file_failures;
#[cfg(test)]
mod model;
mod ranges;

pub use self::error::WriteBackError;
pub(crate) use self::failed_files::{FailedFiles, OpenFailures};
pub(crate) use self::file_failures::FileFailures;
pub(crate) use self::ranges::Ranges;
