//! What the disk has served, and whether the latency target holds.
//!
//! Each queue counts what it completes and reports it in small samples. The report that ends
//! a period of 20 ms or more evaluates it.

use super::price::Price;
use crate::latency_target::LatencyTarget;
use crate::sync::{AtomicU64, Ordering, add, get, set};
use crate::{DiskTime, Op, Time, saturating_nanos};

/// The shortest and the longest period, in nanoseconds (20 and 200 ms). In a shorter one few requests
/// complete, and noise decides; after a longer one the end of a burst is noticed later.
const PERIOD_NANOS: (u64, u64) = (20_000_000, 200_000_000);
/// A period may end before its longest time once this many requests were counted for the latency target. At
/// this number a 99th percentile rests on a single request.
const COUNTED_MIN: u64 = 100;
/// The time after a request had to wait for which the disk counts as loaded, in nanoseconds (1 ms). It is ten
/// times `NOTED_NANOS`, so that no loaded moment is missed.
const REFUSED_LATELY_NANOS: u64 = 1_000_000;
/// The least time between two notes that work has to wait, in nanoseconds (0.1 ms). All shards write it, so a
/// note for each refusal would cost each of them a cache miss.
const NOTED_NANOS: u64 = 100_000;
/// The rate from which the disk counts as loaded, even if no work waits, in thousandths of its figures. With
/// a lower one, requests of an idle disk count for the latency target; with a higher one, fewer requests of a
/// busy disk do.
const LOADED_PERMILLE: u64 = 500;
/// The highest rate that is believed, in thousandths of the figures (1,024 times). A higher one was not
/// measured, but is an error of the clock.
const DELIVERED_PERMILLE_MAX: u64 = 1_024_000;

/// A queue reports its sample once this many of its requests count for the latency target. It is about a
/// third of `COUNTED_MIN`, so that a period ends soon after it may.
const COUNTED_MAX: u64 = 32;
/// A queue with fewer than `COUNTED_MAX` counted requests reports its sample after this time, in nanoseconds
/// (5 ms). It is a quarter of the shortest period. A shorter time writes shared counters more often; a longer
/// one counts more of a period in the next one.
const REPORTED_AFTER_NANOS: u64 = 5_000_000;

/// The longest period or sample that is evaluated, in nanoseconds (400 ms); a longer one is of several loads.
/// It is twice the longest period, because the report that ends a period may come late.
const STALE_NANOS: u64 = 400_000_000;
/// The tenths of a sample's time for which work must wait to count as waiting throughout. With fewer, a burst
/// that waits for a moment would make a disk with little to do look slow.
const WAITED_TENTHS: u64 = 9;

/// What a queue has measured since its last report.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sample {
    /// Requests on a loaded disk that the latency target is about.
    counted: u64,
    /// Those of them that took longer than the target.
    over: u64,
    /// Disk time completed, in units.
    served: u64,
    /// The time for which work has waited, in nanoseconds.
    waited: u64,
    /// When the sample began.
    since: Time,
}

/// The latency threshold for a completed request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Threshold {
    op: Op,
    nanos: u64,
    /// Whether the latency is a time in the disk, and not from enqueueing to completion.
    pub(crate) in_disk: bool,
}

impl Threshold {
    /// Whether a latency between `least` and `most` nanoseconds, measured by the owner of the request, can be
    /// compared with the threshold. It cannot if the owner was away and the threshold is between the two.
    #[inline]
    pub(crate) fn is_conclusive(&self, least: u64, most: u64, was_away: bool) -> bool {
        !was_away || most <= self.nanos || least > self.nanos
    }
}

impl Sample {
    /// The same sample without waiting time, so that the measured rate of the disk does not depend on it.
    pub(super) fn unjudged(self) -> Self {
        Self { waited: 0, ..self }
    }

    /// Counts a completed request of this cost.
    #[inline]
    pub(crate) fn served(&mut self, cost: DiskTime) {
        self.served = self.served.saturating_add(cost.units());
    }

    /// Counts a request on a loaded disk that took `nanos`. Returns whether it took longer than the target;
    /// `None` if the target is not about requests of this kind.
    pub(crate) fn count(&mut self, threshold: Threshold, op: Op, nanos: u64) -> Option<bool> {
        let is_over = nanos > threshold.nanos;
        (op == threshold.op).then(|| {
            self.counted += 1;
            self.over += u64::from(is_over);
            is_over
        })
    }

    /// Counts time for which work has waited for the disk or for its turn.
    pub(crate) fn waited(&mut self, nanos: u64) {
        self.waited = self.waited.saturating_add(nanos);
    }

    /// Takes the sample if a report is due.
    pub(crate) fn take_due(&mut self, now: Time) -> Option<Self> {
        let due = self.counted >= COUNTED_MAX || now.nanos_since(self.since) > REPORTED_AFTER_NANOS;
        due.then(|| self.take(now))
    }

    #[inline(never)]
    fn take(&mut self, now: Time) -> Self {
        core::mem::replace(self, Self { since: now, ..Self::default() })
    }
}

/// What one disk has served.
#[derive(Debug, Default)]
pub(super) struct Service {
    /// The target, encoded by [`LatencyTarget::to_word`].
    target: AtomicU64,
    /// The rate when work last waited, in thousandths of the figures.
    speed_permille: AtomicU64,
    /// When work last had to wait for the disk, in nanoseconds.
    refused_at: AtomicU64,
    /// One if the disk was loaded in the last period.
    is_loaded: AtomicU64,
    /// One if the target held in the last period.
    holds: AtomicU64,
    /// When the present period began, in nanoseconds. The sums that follow are of this period.
    began_at: AtomicU64,
    counted: AtomicU64,
    over: AtomicU64,
    /// Completed disk time, in units at the price of its mix.
    served: AtomicU64,
    /// The time up to which waiting has been counted.
    covered_until: AtomicU64,
    /// The nanoseconds in which work waited.
    covered: AtomicU64,
    /// The nanoseconds in which the disk stalled.
    stalled: AtomicU64,
    waited_nanos_in_all: AtomicU64,
    served_in_all: AtomicU64,
    counted_total: AtomicU64,
    over_total: AtomicU64,
}

/// The result of a period.
#[derive(Clone, Copy, Debug)]
pub(super) struct Delivered {
    /// The rate of the disk, in thousandths of its figures.
    pub(super) speed_permille: u64,
    /// Whether work waited throughout.
    pub(super) waited: bool,
}

impl Service {
    pub(super) fn new(target: Option<LatencyTarget>) -> Self {
        Self {
            target: AtomicU64::new(LatencyTarget::to_word(target)),
            speed_permille: AtomicU64::new(1000),
            holds: AtomicU64::new(1),
            ..Self::default()
        }
    }

    /// The latency target in force.
    pub(super) fn target(&self) -> Option<LatencyTarget> {
        LatencyTarget::from_word(get(&self.target))
    }

    /// Replaces or removes the latency target. Returns whether it is another one than before.
    pub(super) fn set_target(&self, target: Option<LatencyTarget>) -> bool {
        let word = LatencyTarget::to_word(target);
        let is_new = self.target.swap(word, Ordering::Relaxed) != word;
        if is_new {
            set(&self.holds, 1);
        }
        is_new
    }

    /// The latency threshold for a request with this time of dispatch. `None` without a latency target, or if
    /// the disk was not loaded then.
    #[inline]
    pub(super) fn threshold_of_load(&self, dispatched_at: Time) -> Option<Threshold> {
        let target = self.target()?;
        let (op, in_disk) = (target.op(), target.is_in_disk());
        let threshold = Threshold { op, nanos: saturating_nanos(target.latency()), in_disk };
        self.met_load(dispatched_at).then_some(threshold)
    }

    /// Whether the disk was loaded at this time of dispatch: work had to wait shortly before, or the disk was
    /// busy in the last period.
    fn met_load(&self, dispatched_at: Time) -> bool {
        let refused_at = Time::from_nanos(get(&self.refused_at));
        get(&self.is_loaded) != 0
            || (refused_at > Time::ZERO
                && dispatched_at.nanos_since(refused_at) <= REFUSED_LATELY_NANOS)
    }

    /// Notes that work has to wait for the disk.
    pub(super) fn refused(&self, now: Time) {
        if now.nanos_since(Time::from_nanos(get(&self.refused_at))) > NOTED_NANOS {
            set(&self.refused_at, now.as_nanos());
        }
    }

    /// Adds the sample of a queue, whose disk time counts at the `price` of the present mix. Returns the
    /// result of the period if this report ends it.
    pub(super) fn add(&self, now: Time, sample: Sample, price: Price) -> Option<Delivered> {
        add(&self.counted, sample.counted);
        add(&self.over, sample.over);
        add(&self.served, price.busy_for(sample.served));
        self.cover(now, &sample);
        let began_at = get(&self.began_at);
        let nanos = now.nanos_since(Time::from_nanos(began_at));
        let is_over = nanos >= PERIOD_NANOS.1
            || (nanos >= PERIOD_NANOS.0 && get(&self.counted) >= COUNTED_MIN);
        let order = Ordering::Relaxed;
        let ends = is_over
            && self.began_at.compare_exchange(began_at, now.as_nanos(), order, order).is_ok();
        ends.then(|| self.end_period(nanos))
    }

    /// Counts the time of a sample as waiting if work waited throughout it.
    fn cover(&self, now: Time, sample: &Sample) {
        let nanos = now.nanos_since(sample.since);
        let running = nanos.saturating_sub(get(&self.stalled));
        if sample.waited / WAITED_TENTHS < nanos / 10 || running > STALE_NANOS {
            return;
        }
        let before = self.covered_until.fetch_max(now.as_nanos(), Ordering::Relaxed);
        let since = sample.since.max(Time::from_nanos(before));
        self.covered.fetch_add(now.nanos_since(since), Ordering::Relaxed);
    }

    /// Evaluates the present period, which has lasted for `nanos`.
    fn end_period(&self, nanos: u64) -> Delivered {
        let take = |sum: &AtomicU64| sum.swap(0, Ordering::Relaxed);
        let (counted, over, served) = (take(&self.counted), take(&self.over), take(&self.served));
        add(&self.counted_total, counted);
        add(&self.over_total, over);
        let (covered, stalled) = (take(&self.covered), take(&self.stalled));
        let running = nanos.saturating_sub(stalled);
        let waited = covered >= nanos / 4 * 3 && running <= STALE_NANOS;
        let speed_permille = speed_permille(served, nanos);
        set(&self.is_loaded, u64::from(speed_permille >= LOADED_PERMILLE));
        if waited {
            add(&self.waited_nanos_in_all, running);
            add(&self.served_in_all, served);
            set(&self.speed_permille, speed_permille);
        }
        if let Some(target) = self.target().filter(|_| nanos <= STALE_NANOS) {
            let allowed = counted.saturating_mul(u64::from(1000 - target.permille()));
            set(&self.holds, u64::from(over.saturating_mul(1000) <= allowed));
        }
        Delivered { speed_permille, waited }
    }

    /// Counts a stall of `nanos` in this period, in which work waited, however little of it there was.
    pub(super) fn stalled(&self, nanos: u64) {
        add(&self.stalled, nanos);
        add(&self.waited_nanos_in_all, nanos);
    }

    pub(super) fn counters(&self) -> GroupCounters {
        GroupCounters {
            waited_nanos: get(&self.waited_nanos_in_all),
            waited_consumption: DiskTime::from_units(get(&self.served_in_all)),
            measured: get(&self.counted_total),
            over_target: get(&self.over_total),
            ..GroupCounters::default()
        }
    }

    /// Whether the target held in the last period.
    pub(super) fn holds(&self) -> bool {
        get(&self.holds) != 0
    }

    /// The rate of the disk when work last waited for it, in thousandths of its figures.
    pub(super) fn speed_permille(&self) -> u64 {
        get(&self.speed_permille)
    }
}

/// Disk time served per time, in thousandths.
fn speed_permille(served: u64, nanos: u64) -> u64 {
    let time = u128::from(nanos.max(1)) * u128::from(DiskTime::UNITS_PER_NANO);
    let permille = u128::from(served) * 1000 / time;
    u64::try_from(permille).unwrap_or(u64::MAX).min(DELIVERED_PERMILLE_MAX)
}

/// Counters of one group: the disk's throughput while work waited for it, its stalls, and the requests
/// measured against the latency target. They are totals since the group was created, some milliseconds late.
///
/// A *stall* is a span in which requests were in the disk and none of the group completed. It is longer than
/// the larger of 100 ms and eight windows (of which at most 2 s count), plus the cost of the request in the
/// disk. It begins with the last completion before it, or when a request went to the idle disk, and ends with
/// the next completion. A stall that lasts is counted until now. A disk whose latest requests have taken half
/// as long is slow, and does not stall. Held permits are no stall, with one exception: a permit that was
/// granted after another one became [overdue](crate::IoQueue::grant_permits), and does not end either.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupCounters {
    /// Nanoseconds in which work waited for the disk throughout, stalls included.
    pub waited_nanos: u64,
    /// Disk time completed in that time, by the costs and mix prices of the model.
    pub waited_consumption: DiskTime,
    /// Number of stalls.
    pub stalls: u64,
    /// Nanoseconds of all stalls.
    pub stalled_nanos: u64,
    /// Nanoseconds of the longest stall.
    pub stall_nanos_max: u64,
    /// Requests that became overdue in stalls.
    pub stall_overdue: u64,
    /// Requests on a loaded disk that the latency target is about.
    pub measured: u64,
    /// Those of them that took longer than the target.
    pub over_target: u64,
}

impl GroupCounters {
    /// Adds the counters of another group of the same disk. A disk stalls for all groups at once. So the
    /// number, the total and the longest of the stalls are the larger ones of the two groups.
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

    /// The counters since an `earlier` state. The longest stall is exact if it is the longest of all.
    /// Otherwise it is an upper bound, at most the sum of the stalls since then.
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

    /// The disk's throughput while work waited for it, in thousandths of the model's; `None` if no work
    /// waited.
    pub fn speed_permille(&self) -> Option<u64> {
        let time = u128::from(self.waited_nanos) * u128::from(DiskTime::UNITS_PER_NANO);
        let speed = (u128::from(self.waited_consumption.units()) * 1000).checked_div(time)?;
        u64::try_from(speed).ok()
    }

    /// Whether the target was kept in a span of `span_nanos`. At most `allowed_permille` of the measured
    /// requests may be late. Stalls may take at most the same part of the time, because no request is in time
    /// during a stall. `None` if nothing was measured and the disk did not stall.
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
