//! What a group counts of its disk.

use crate::DiskTime;

/// Counters of one group: the disk's throughput while work waited for it, its stalls, and the
/// requests measured against the latency target. Totals since the group was created, some
/// milliseconds late.
///
/// A *stall* is a span in which requests were in the disk and none of the group completed, for
/// longer than eight windows and than 100 ms (2 s if the windows are longer than that), and for
/// longer than the cost of the request in the disk. It begins with the last completion before it,
/// or when a request went to the idle disk, and ends with the next completion. A stall that lasts
/// is counted until now. A disk whose latest requests have taken half as long is slow, and does not
/// stall. Permits that are held are no stall, unless one that was granted after another was
/// [overdue](crate::IoQueue::grant_permits) does not end either.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupCounters {
    /// Nanoseconds in which work waited for the disk all along, stalls included.
    pub waited_nanos: u64,
    /// Disk time completed in that time, as the model counts it.
    pub waited_consumption: DiskTime,
    /// How often the disk stalled: requests were in it, and none completed.
    pub stalls: u64,
    /// Nanoseconds of all stalls.
    pub stalled_nanos: u64,
    /// Nanoseconds of the longest stall.
    pub stall_nanos_max: u64,
    /// Requests that became overdue in stalls.
    pub stall_overdue: u64,
    /// Requests of the latency target's kind on a loaded disk,
    pub measured: u64,
    /// of which this many took longer than the target.
    pub over_target: u64,
}

impl GroupCounters {
    /// Adds the counters of another group of the same disk. A disk stalls for all groups at once:
    /// of the stalls it keeps the numbers of the group with the most.
    pub fn merge(&mut self, other: &Self) {
        self.waited_nanos = self.waited_nanos.wrapping_add(other.waited_nanos);
        self.waited_consumption = self.waited_consumption.plus(other.waited_consumption);
        self.stalls = self.stalls.max(other.stalls);
        self.stalled_nanos = self.stalled_nanos.max(other.stalled_nanos);
        self.stall_nanos_max = self.stall_nanos_max.max(other.stall_nanos_max);
        self.stall_overdue = self.stall_overdue.wrapping_add(other.stall_overdue);
        self.measured = self.measured.wrapping_add(other.measured);
        self.over_target = self.over_target.wrapping_add(other.over_target);
    }

    /// The counters since an `earlier` state. The longest stall is exact if it is the longest of
    /// all, and otherwise at most the sum of the stalls since then.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let stalled_nanos = self.stalled_nanos.saturating_sub(earlier.stalled_nanos);
        Self {
            waited_nanos: self.waited_nanos.saturating_sub(earlier.waited_nanos),
            waited_consumption: self.waited_consumption.minus(earlier.waited_consumption),
            stalls: self.stalls.saturating_sub(earlier.stalls),
            stalled_nanos,
            stall_nanos_max: self.stall_nanos_max.min(stalled_nanos),
            stall_overdue: self.stall_overdue.wrapping_sub(earlier.stall_overdue),
            measured: self.measured.wrapping_sub(earlier.measured),
            over_target: self.over_target.wrapping_sub(earlier.over_target),
        }
    }

    /// The disk's throughput while work waited for it, in thousandths of the model's; `None` if no
    /// work ever did.
    pub fn speed_permille(&self) -> Option<u64> {
        let time = u128::from(self.waited_nanos) * u128::from(DiskTime::UNITS_PER_NANO);
        let speed = (u128::from(self.waited_consumption.units()) * 1000).checked_div(time)?;
        u64::try_from(speed).ok()
    }

    /// Whether the target was kept in a span of `span_nanos`. At most `allowed_permille` of the
    /// measured requests may be late, and stalls may take at most the same part of the time, as no
    /// request is in time in a stall. `None` if nothing was measured and the disk did not stall.
    pub fn keeps_target(&self, allowed_permille: u64, span_nanos: u64) -> Option<bool> {
        let is_within = |part: u64, whole: u64| {
            u128::from(part) * 1000 <= u128::from(whole) * u128::from(allowed_permille)
        };
        (self.measured > 0 || self.stalls > 0).then(|| {
            is_within(self.over_target, self.measured) && is_within(self.stalled_nanos, span_nanos)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_in_which_the_disk_stood_still_for_longer_than_may_be_late_misses_the_target() {
        let of = |stalled_nanos| GroupCounters {
            measured: 1000,
            over_target: 50,
            stalls: u64::from(stalled_nanos > 0),
            stalled_nanos,
            ..GroupCounters::default()
        };
        assert_eq!(of(0).keeps_target(50, 1_000), Some(true));
        assert_eq!(of(0).keeps_target(49, 1_000), Some(false));
        assert_eq!(of(50).keeps_target(50, 1_000), Some(true));
        assert_eq!(of(51).keeps_target(50, 1_000), Some(false));
        assert_eq!(GroupCounters::default().keeps_target(50, 1_000), None);
    }

    #[test]
    fn the_longest_stall_since_a_look_is_not_longer_than_all_of_them() {
        let before = GroupCounters {
            stalls: 1,
            stalled_nanos: 900,
            stall_nanos_max: 900,
            ..GroupCounters::default()
        };
        let now = GroupCounters { stalls: 2, stalled_nanos: 1_200, ..before };
        let since = now.since(&before);
        assert_eq!((since.stalls, since.stalled_nanos, since.stall_nanos_max), (1, 300, 300));
    }
}
