//! The clock of the process, in the scheduler's units.

use std::sync::OnceLock;

use forebay_core::Time;
use rustix::time::{ClockId, clock_gettime};

/// The monotonic clock in the scheduler's units: nanoseconds since an epoch that is the same in the
/// whole process. Cheap to copy.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    /// The epoch of the process, in nanoseconds of the system's monotonic clock.
    epoch: u64,
}

impl Clock {
    /// The clock of this process; every call returns the same one.
    pub fn of_process() -> Self {
        static EPOCH: OnceLock<u64> = OnceLock::new();
        Self { epoch: *EPOCH.get_or_init(monotonic_nanos) }
    }

    /// The present moment.
    pub fn now(&self) -> Time {
        Time::from_nanos(monotonic_nanos().saturating_sub(self.epoch))
    }
}

/// The value that [`Instant`](std::time::Instant) holds too, but does not return as one number.
fn monotonic_nanos() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    // Neither number is negative. Their sum overflows after 584 years.
    (time.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_clocks_of_the_process_agree() {
        let (one, other) = (Clock::of_process(), Clock::of_process());
        let before = one.now();
        let between = other.now();
        assert!(before <= between && between <= one.now());
    }
}
