//! The pauses of a closed loop.

use forebay_core::{Time, saturating_nanos};

use crate::job_file::Think;

impl Think {
    /// When a fiber goes on whose request completed at `now`, in a run that began at `start`.
    pub(super) fn resume(self, start: Time, now: Time) -> Time {
        let (pause, active) = (saturating_nanos(self.time), saturating_nanos(self.after));
        if active == 0 {
            return now.plus_nanos(pause);
        }
        let cycle = active.saturating_add(pause);
        let phase = now.nanos_since(start) % cycle;
        if phase < active { now } else { now.plus_nanos(cycle - phase) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn resume(think: Think, now: u64) -> u64 {
        think.resume(Time::from_nanos(1000), Time::from_nanos(now)).as_nanos()
    }

    #[test]
    fn without_pauses_a_fiber_goes_on_at_once() {
        assert_eq!(resume(Think::default(), 1234), 1234);
    }

    #[test]
    fn a_pause_follows_each_request() {
        let think = Think { time: Duration::from_nanos(100), after: Duration::ZERO };
        assert_eq!(resume(think, 1234), 1334);
    }

    #[test]
    fn phases_of_activity_and_of_pause_alternate() {
        let think = Think { time: Duration::from_nanos(100), after: Duration::from_nanos(50) };
        assert_eq!(resume(think, 1049), 1049);
        assert_eq!(resume(think, 1050), 1150);
        assert_eq!(resume(think, 1149), 1150);
        assert_eq!(resume(think, 1199), 1199);
        assert_eq!(resume(think, 1200), 1300);
    }
}
