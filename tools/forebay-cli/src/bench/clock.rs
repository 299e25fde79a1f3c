//! The clock of a run, which counts from its start.

use std::time::Instant;

use forebay_core::{Time, saturating_nanos};

/// Counts from the moment it was started. Copies agree.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    epoch: Instant,
}

impl Clock {
    pub(super) fn start() -> Self {
        Self { epoch: Instant::now() }
    }

    pub(super) fn now(self) -> Time {
        Time::from_nanos(saturating_nanos(self.epoch.elapsed()))
    }
}
