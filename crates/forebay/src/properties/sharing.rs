//! Which part of a disk this process has.

use std::path::PathBuf;

/// Whether other processes use a disk too, and how it is divided.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Sharing {
    /// This process has the disk alone.
    #[default]
    Alone,
    /// Processes with the library divide it by the shares of their classes, and tell each other what
    /// they want in a file.
    Segment {
        /// The file, the same in each process. Unless stated it is named after the device, in
        /// `$XDG_RUNTIME_DIR/forebay` or `/run/forebay`.
        path: Option<PathBuf>,
    },
    /// This process has this many millionths of it, whatever others do.
    Part(u32),
}

impl Sharing {
    /// A part from 0 to 1; another number is none, and is refused where it is configured.
    pub(crate) fn part(part: f64) -> Self {
        Self::Part((part * 1e6).round() as u32)
    }
}
