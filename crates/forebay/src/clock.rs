//! The clock of the process, as the scheduler counts it.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use forebay_core::Time;

/// The monotonic clock in the scheduler's terms: nanoseconds since an epoch
/// that is the same in the whole process. Cheap to copy.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    epoch: Instant,
}

impl Clock {
    /// The clock of this process; every call returns the same one.
    pub fn of_process() -> Self {
        static EPOCH: OnceLock<Instant> = OnceLock::new();
        Self { epoch: *EPOCH.get_or_init(Instant::now) }
    }

    /// The present moment.
    pub fn now(&self) -> Time {
        self.at(Instant::now())
    }

    /// The moment `instant`; the epoch, if it lies before that.
    pub fn at(&self, instant: Instant) -> Time {
        Time::from_nanos(nanos(instant.saturating_duration_since(self.epoch)))
    }
}

/// `duration` in whole nanoseconds, saturating.
pub(crate) fn nanos(duration: Duration) -> u64 {
    let seconds = duration.as_secs().saturating_mul(1_000_000_000);
    seconds.saturating_add(u64::from(duration.subsec_nanos()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_clocks_of_the_process_agree() {
        let (one, other) = (Clock::of_process(), Clock::of_process());
        let instant = Instant::now() + Duration::from_secs(5);
        assert_eq!(one.at(instant), other.at(instant));
        let before = one.now();
        assert!(other.now() >= before);
        assert!(one.at(instant) > before);
    }
}
