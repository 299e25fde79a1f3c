//! The clock of a run, which counts from its start.

use std::time::{Duration, Instant};

use forebay_core::Time;

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
        Time::from_nanos(nanos(self.epoch.elapsed()))
    }
}

/// A length of time in nanoseconds, at most 584 years.
pub(super) fn nanos(length: Duration) -> u64 {
    u64::try_from(length.as_nanos()).unwrap_or(u64::MAX)
}
