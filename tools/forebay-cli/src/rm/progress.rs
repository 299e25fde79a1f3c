//! How far the deletes are.

use indicatif::ProgressBar;

use super::text::{Counts, bytes};
use crate::console::progress_bar;

/// A line on a terminal, nothing elsewhere.
pub(super) struct RmProgress {
    bar: ProgressBar,
}

impl RmProgress {
    pub(super) fn new() -> Self {
        Self { bar: progress_bar(1, "{spinner} {bar:30} {msg}") }
    }

    /// So much is done, so much of the next file is freed, and this many files wait.
    pub(super) fn show(&self, counts: &Counts, under_way: u64, waiting: usize) {
        if self.bar.is_hidden() {
            return;
        }
        self.bar.set_length(counts.files + waiting as u64);
        self.bar.set_position(counts.files);
        let freed = bytes(counts.freed + under_way);
        self.bar.set_message(format!("{} files, {freed} freed; {waiting} wait", counts.files));
    }

    /// Says something without the line in between.
    pub(super) fn aside<T>(&self, say: impl FnOnce() -> T) -> T {
        self.bar.suspend(say)
    }
}
