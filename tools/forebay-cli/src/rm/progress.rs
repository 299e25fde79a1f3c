//! How far the deletes are.

use indicatif::{ProgressBar, ProgressStyle};

use super::text::Counts;
use super::text::bytes;

/// A line on a terminal, nothing elsewhere.
pub(super) struct RmProgress {
    bar: ProgressBar,
}

impl RmProgress {
    pub(super) fn new() -> Self {
        let style = ProgressStyle::with_template("{spinner} {bar:30} {msg}");
        let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
        Self { bar: ProgressBar::new(1).with_style(style) }
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

impl Drop for RmProgress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
