//! A disk that was measured.

use forebay_tune::{Fit, Run};

/// What was measured of a disk, and what follows from it.
pub(super) struct Tuned {
    pub(super) run: Run,
    pub(super) fit: Fit,
}

impl Tuned {
    /// The directories that were named on it.
    pub(super) fn name(&self) -> String {
        self.run.target.paths.join(", ")
    }
}
