//! Sharing of a disk with other processes.

use std::path::PathBuf;

/// Whether other processes use the disk too, and how it is divided.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Sharing {
    /// Only this process uses the disk.
    #[default]
    Alone,
    /// Processes with the library divide it by the shares of their classes, and communicate through
    /// a file.
    Segment {
        /// The file, the same in each process. Unless stated it is named after the device, in
        /// `$XDG_RUNTIME_DIR/forebay` or `/run/forebay`.
        path: Option<PathBuf>,
    },
    /// This process has a fixed part of the disk, in millionths.
    Part(u32),
}

impl Sharing {
    /// A part above 0 and up to 1. Other numbers become an invalid part, which the configuration
    /// refuses.
    pub(crate) fn part(part: f64) -> Self {
        Self::Part((part * 1e6).round() as u32)
    }
}
