//! The effective goal, and the base latency of the disk, which is learnt while it serves requests.
//!
//! Decision: `docs/decisions/0026-base-latency.md`.

use core::time::Duration;

use super::policy::Policy;
use crate::sync::{AtomicU32, AtomicU64, Ordering};
use crate::{DiskModel, DiskTime, Time, saturating_nanos};

/// The size of a request that always fits into one effective goal, in bytes (128 KiB). The goal is at least
/// its cost in the dearer direction. Disks reach their bandwidth at this size.
const GOAL_REQUEST_LEN: u64 = 128 * 1024;
/// The longest goal and base latency, in nanoseconds (100 s); longer ones count as this. It keeps
/// windows far from the end of the number range.
pub(super) const GOAL_NANOS_MAX: u64 = 100_000_000_000;
/// The size of a window by the figures, in effective goals. The pace hands out one goal at once, and as much
/// may still be in the disk. With more, an urgent request waits longer in the disk.
const WINDOW_GOALS: u64 = 2;

/// The time without an idle moment after which a learnt base latency is reduced, again and again, in
/// nanoseconds (500 ms). Without that, a latency learnt while the disk was in trouble would last as long as
/// the backlog after it.
const FADE_NANOS: u64 = 500_000_000;
/// Each reduction lowers a learnt base latency by one part in this many, so it halves in about 5.4 s. With a
/// smaller number a short backlog forgets a healthy disk; with a larger one the window stays too large for
/// longer.
const FADE_PART: u64 = 16;

/// The window by the figures at this effective goal, in units of disk time.
pub(super) fn two_goals_units(goal: DiskTime) -> u64 {
    goal.units().saturating_mul(WINDOW_GOALS)
}

/// The effective goal: the latency goal, the cost of 128 KiB or the base latency, whichever is largest.
/// Fields named `units` are in units of disk time.
#[derive(Debug)]
pub(super) struct Goal {
    units: AtomicU64,
    /// The effective goal without the base latency.
    units_min: AtomicU64,
    /// The base latency in use, stated or learnt.
    base_units: AtomicU64,
    /// The stated base latency; zero if none is stated.
    stated_units: AtomicU64,
    /// When the learnt base latency was last confirmed or reduced, in nanoseconds.
    confirmed_at: AtomicU64,
    /// The stated latency goal in units, zero if none is stated; `None` for a policy without a goal.
    stated_goal: Option<u64>,
    /// The latency goal in units if none is stated. Zero means as little as the disk needs.
    unstated_goal: u64,
    /// The cost of 128 KiB in the dearer direction.
    large_units: AtomicU64,
    /// The samples of the base latency, for a policy that has one.
    learnt: Option<BaseLatency>,
}

impl Goal {
    pub(super) fn new(policy: &Policy, model: &DiskModel, unstated_goal: Duration) -> Self {
        let (stated, learnt) = match policy {
            Policy::PaceWindow { base_latency, .. } => {
                (base_latency.map_or(DiskTime::ZERO, stated_time), Some(BaseLatency::default()))
            }
            _ => (DiskTime::ZERO, None),
        };
        let goal = Self {
            units: AtomicU64::new(u64::MAX),
            units_min: AtomicU64::new(u64::MAX),
            base_units: AtomicU64::new(stated.units()),
            stated_units: AtomicU64::new(stated.units()),
            confirmed_at: AtomicU64::new(0),
            stated_goal: policy.latency_goal().map(|goal| disk_time(goal).units()),
            unstated_goal: disk_time(unstated_goal).units(),
            large_units: AtomicU64::new(0),
            learnt,
        };
        goal.set_model(model);
        goal
    }

    /// Computes the goal for another model. A policy without a goal still has none.
    pub(super) fn set_model(&self, model: &DiskModel) {
        self.large_units.store(model.max_cost(GOAL_REQUEST_LEN).units(), Ordering::Relaxed);
        self.update();
    }

    pub(super) fn get(&self) -> DiskTime {
        DiskTime::from_units(self.units.load(Ordering::Relaxed))
    }

    /// The effective goal without the base latency.
    pub(super) fn configured(&self) -> DiskTime {
        DiskTime::from_units(self.units_min.load(Ordering::Relaxed))
    }

    /// Whether the base latency is learnt, because none is stated.
    pub(super) fn learns(&self) -> bool {
        self.learnt.is_some() && self.stated_units.load(Ordering::Relaxed) == 0
    }

    pub(super) fn base_latency(&self) -> DiskTime {
        DiskTime::from_units(self.base_units.load(Ordering::Relaxed))
    }

    /// States the base latency, which ends learning. Does nothing for a policy without one.
    pub(super) fn set_base_latency(&self, base: Duration) {
        if self.learnt.is_some() {
            let units = stated_time(base).units();
            self.stated_units.store(units, Ordering::Relaxed);
            self.base_units.store(units, Ordering::Relaxed);
            self.update();
        }
    }

    pub(super) fn observe_idle_service(&self, now: Time, service_nanos: u64) {
        if !self.learns() {
            return;
        }
        self.confirmed_at.store(now.as_nanos(), Ordering::Relaxed);
        let median = self.learnt.as_ref().and_then(|base| base.observe(now, service_nanos));
        if let Some(median) = median {
            self.base_units.store(DiskTime::from_nanos(median).units(), Ordering::Relaxed);
            self.update();
        }
    }

    /// Reduces a learnt base latency that no idle moment has confirmed for [`FADE_NANOS`].
    pub(super) fn fade(&self, now: Time) {
        let confirmed_at = self.confirmed_at.load(Ordering::Relaxed);
        let is_due = now.nanos_since(Time::from_nanos(confirmed_at)) >= FADE_NANOS;
        let base = self.base_units.load(Ordering::Relaxed);
        if !is_due || base == 0 || !self.learns() {
            return;
        }
        self.confirmed_at.store(now.as_nanos(), Ordering::Relaxed);
        self.base_units.store(base - base / FADE_PART, Ordering::Relaxed);
        if let Some(learnt) = &self.learnt {
            learnt.forget();
        }
        self.update();
    }

    #[inline(never)]
    fn update(&self) {
        let Some(stated) = self.stated_goal else { return };
        let configured = if stated > 0 { stated } else { self.unstated_goal };
        let least = configured.max(self.large_units.load(Ordering::Relaxed)).max(1);
        self.units_min.store(least, Ordering::Relaxed);
        let base = self.base_units.load(Ordering::Relaxed);
        self.units.store(least.max(base), Ordering::Relaxed);
    }
}

/// At least one unit, because zero means that no time is stated.
fn stated_time(base: Duration) -> DiskTime {
    disk_time(base).max(DiskTime::from_units(1))
}

fn disk_time(duration: Duration) -> DiskTime {
    DiskTime::from_nanos(saturating_nanos(duration).min(GOAL_NANOS_MAX))
}

/// The number of service times whose median is the learnt base latency. The median is computed again once all
/// of them are new. With more it follows the disk later; with fewer, outliers have more weight.
const SAMPLES: usize = 32;
/// The least time between two samples, in nanoseconds (1 ms). Service times closer to each other may have met
/// the same stall of the disk, which would fill all samples at once.
const APART_NANOS: u64 = 1_000_000;
/// The number of service times for the first median. A median of fewer would follow a few outliers.
const SAMPLES_MIN: u32 = 8;
/// The longest base latency that is learnt, in nanoseconds (20 ms); longer samples count as this. Hard disks
/// take 10 to 20 ms for a seek, and disks behind a network up to 20. A disk that seems to answer later is
/// slow at the moment, and a larger window would make it slower.
const BELIEVED_NANOS_MAX: u64 = 20_000_000;

/// The latest service times on a nearly idle disk, in nanoseconds, and their median. All queues of a group
/// share them.
#[derive(Debug, Default)]
pub(crate) struct BaseLatency {
    nanos: [AtomicU64; SAMPLES],
    seen: AtomicU32,
    seen_at: AtomicU64,
}

impl BaseLatency {
    /// Adds a service time, unless another was added within [`APART_NANOS`]. Returns the median after the
    /// first [`SAMPLES_MIN`] samples, and then whenever all samples are new.
    #[inline]
    pub(crate) fn observe(&self, now: Time, service_nanos: u64) -> Option<u64> {
        let seen_at = Time::from_nanos(self.seen_at.load(Ordering::Relaxed));
        if seen_at > Time::ZERO && now.nanos_since(seen_at) < APART_NANOS {
            return None;
        }
        self.add(now, service_nanos)
    }

    #[inline(never)]
    fn add(&self, now: Time, service_nanos: u64) -> Option<u64> {
        self.seen_at.store(now.as_nanos(), Ordering::Relaxed);
        let seen = self.seen.load(Ordering::Relaxed);
        let slot = seen as usize % SAMPLES;
        self.nanos[slot].store(service_nanos.min(BELIEVED_NANOS_MAX), Ordering::Relaxed);
        // two shards at once may lose a sample; that is not worth a locked instruction
        let seen = seen.wrapping_add(1);
        self.seen.store(seen, Ordering::Relaxed);
        (seen == SAMPLES_MIN || seen.is_multiple_of(SAMPLES as u32)).then(|| self.median(seen))
    }

    /// Discards all samples.
    pub(crate) fn forget(&self) {
        self.seen.store(0, Ordering::Relaxed);
    }

    fn median(&self, seen: u32) -> u64 {
        let mut latest = [0; SAMPLES];
        let count = SAMPLES.min(seen as usize);
        for (value, sample) in latest.iter_mut().zip(&self.nanos) {
            *value = sample.load(Ordering::Relaxed);
        }
        let latest = &mut latest[..count];
        *latest.select_nth_unstable(count / 2).1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Adds each of these times as a sample. Returns the latest median.
    fn observe(base: &BaseLatency, times: impl Iterator<Item = u64>) -> Option<u64> {
        let begin = base.seen_at.load(Ordering::Relaxed);
        let at = |index: usize| Time::from_nanos(begin + (index as u64 + 1) * APART_NANOS);
        times.enumerate().filter_map(|(index, nanos)| base.observe(at(index), nanos)).last()
    }

    #[test]
    fn the_median_of_the_latest_shrugs_off_outliers_and_follows_a_change() {
        let base = BaseLatency::default();
        let first = [80, 90, 5_000_000_000, 85, 95, 70, 75];
        assert_eq!(observe(&base, first.into_iter()), None);
        assert_eq!(observe(&base, [100].into_iter()), Some(90));
        assert_eq!(observe(&base, core::iter::repeat_n(300, 88)), Some(300));
    }

    #[test]
    fn what_was_seen_of_a_slow_disk_is_not_mixed_with_what_is_seen_when_it_is_well() {
        let base = BaseLatency::default();
        observe(&base, core::iter::repeat_n(2_000, 31));
        base.forget();
        assert_eq!(observe(&base, core::iter::repeat_n(80, 7)), None);
        assert_eq!(observe(&base, core::iter::repeat_n(80, 1)), Some(80));
    }

    #[test]
    fn a_hang_is_not_taken_for_a_latency() {
        let base = BaseLatency::default();
        assert_eq!(observe(&base, core::iter::repeat_n(u64::MAX, 8)), Some(BELIEVED_NANOS_MAX));
    }

    #[test]
    fn requests_that_met_the_same_stall_are_one_sample() {
        let base = BaseLatency::default();
        let mut found = None;
        for turn in 1..=64 {
            let now = Time::from_nanos(turn * 2 * APART_NANOS);
            let nanos = if turn % 8 == 0 { 5_000_000 } else { 80_000 };
            // the requests that wait in a stalled disk complete together
            for _ in 0..if turn % 8 == 0 { 40 } else { 1 } {
                found = base.observe(now, nanos).or(found);
            }
        }
        assert_eq!(found, Some(80_000));
    }
}
