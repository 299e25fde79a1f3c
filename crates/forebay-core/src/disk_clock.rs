//! When a disk that keeps up with its figures has done what a group has dispatched.
//!
//! A shard whose thread is away cannot say what the disk has done for it. The clock can, once it is
//! known by how much this disk answers later or earlier.
//!
//! Decision: `docs/decisions/0018-stale-in-flight-work.md`.

use crate::sync::{AtomicU64, Ordering, Padded};
use crate::{DiskTime, Time};

/// The known lag follows answers that come earlier by one part in this many.
const LAG_STEP_PART: i64 = 4;

/// The clock of one group.
#[derive(Debug, Default)]
pub(crate) struct DiskClock {
    /// When a disk that keeps up has done all that was dispatched, in nanoseconds.
    free_at: Padded<AtomicU64>,
    /// By how much later than that prompt shards have their answers, in nanoseconds; signed.
    lag: Padded<AtomicU64>,
}

impl DiskClock {
    /// A prompt shard had an answer `nanos` later than from a disk that keeps up; negative if earlier.
    /// The known lag rises to it at once and falls step by step, since answers come unevenly.
    pub(crate) fn publish_lag(&self, nanos: i64) {
        let known = self.lag_nanos();
        let less = known.saturating_sub(nanos).max(0);
        let lag = known.max(nanos).saturating_sub(less / LAG_STEP_PART);
        self.lag.0.store(lag.cast_unsigned(), Ordering::Relaxed);
    }

    pub(crate) fn lag_nanos(&self) -> i64 {
        self.lag.0.load(Ordering::Relaxed).cast_signed()
    }

    /// A request of this cost goes to the disk; `in_flight` includes it. Returns when a disk that keeps
    /// up has done it and all that went before. No disk has more left to do than is in flight.
    #[inline]
    pub(crate) fn dispatch(&self, now: Time, cost: DiskTime, in_flight: DiskTime) -> Time {
        let (now, cost) = (now.as_nanos(), cost.as_nanos_ceil());
        let latest = now.saturating_add(in_flight.as_nanos_ceil().max(cost));
        let next = |free_at: u64| free_at.max(now).saturating_add(cost).min(latest);
        let order = Ordering::Relaxed;
        let free_at = self.free_at.0.fetch_update(order, order, |at| Some(next(at)));
        Time::from_nanos(next(free_at.unwrap_or(0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COST: DiskTime = DiskTime::from_units(6_400);
    const COST_NANOS: u64 = COST.as_nanos_ceil();

    #[test]
    fn the_disk_does_one_after_another_and_no_more_than_is_in_flight() {
        let clock = DiskClock::default();
        let at = |nanos| Time::from_nanos(1_000_000 + nanos);
        let both = COST.plus(COST);
        assert_eq!(clock.dispatch(at(0), COST, COST), at(COST_NANOS));
        assert_eq!(clock.dispatch(at(0), COST, both), at(2 * COST_NANOS));
        // the disk was faster: nothing else is in flight
        assert_eq!(clock.dispatch(at(1), COST, COST), at(1 + COST_NANOS));
        // it was idle since
        assert_eq!(clock.dispatch(at(9_000), COST, both), at(9_000 + COST_NANOS));
    }

    #[test]
    fn the_lag_rises_at_once_and_falls_in_steps() {
        let clock = DiskClock::default();
        for (lag, known) in [(800, 800), (0, 600), (0, 450), (500, 500), (-1500, 0), (-1500, -375)]
        {
            clock.publish_lag(lag);
            assert_eq!(clock.lag_nanos(), known, "{lag}");
        }
        for lag in [i64::MIN, i64::MAX] {
            clock.publish_lag(lag);
        }
        assert_eq!(clock.lag_nanos(), i64::MAX);
    }
}
