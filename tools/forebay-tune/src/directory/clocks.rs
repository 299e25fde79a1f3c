//! Clocks other than that of requests.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use crate::error::Error;

/// How far the clocks with and without sleep may part in a phase.
const SLEEP_MAX: Duration = Duration::from_secs(1);

/// Processor time of all threads of this process.
pub(super) fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}

/// How long the machine has slept since it was started.
pub(super) fn slept() -> Duration {
    let clock = |id| {
        let time = clock_gettime(id);
        Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
    };
    clock(ClockId::Boottime).saturating_sub(clock(ClockId::Monotonic))
}

pub(super) fn check_sleep(slept: Duration) -> Result<(), Error> {
    if slept <= SLEEP_MAX {
        return Ok(());
    }
    Err(Error::Incomplete(String::from(
        "the machine slept while the disk was measured; go on with the run: --resume",
    )))
}
