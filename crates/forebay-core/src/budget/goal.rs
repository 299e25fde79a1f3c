//! How much disk time may wait in the disk, and the latency of a disk that has little to do, learnt
//! while it serves.
//!
//! Decision: `docs/decisions/0026-base-latency.md`.

use core::time::Duration;

use super::policy::Policy;
use crate::sync::{AtomicU32, AtomicU64, Ordering};
use crate::{DiskModel, DiskTime, Time, saturating_nanos};

/// A request of this size, in bytes (128 KiB), always fits into one effective goal, which is at
/// least its cost in the dearer direction. Disks reach their bandwidth at this size.
const GOAL_REQUEST_LEN: u64 = 128 * 1024;
/// The longest goal and base latency, in nanoseconds (100 s); longer ones count as this. It keeps
/// windows far from the end of the number range.
pub(super) const GOAL_NANOS_MAX: u64 = 100_000_000_000;
/// The effective goals that a window by the figures holds. The pace hands out one of them at once,
/// and as much may still be in the disk. With more, an urgent request waits longer in the disk.
const WINDOW_GOALS: u64 = 2;

/// A learnt base latency fades each time that no idle moment has confirmed it for this long, in
/// nanoseconds (500 ms). What was learnt of a disk in trouble would otherwise last as long as the
/// backlog after it.
const FADE_NANOS: u64 = 500_000_000;
/// A learnt base latency fades by one part in this many, so that it halves in about 5.4 s. A
/// smaller number forgets a healthy disk in a short backlog; a larger one keeps a window too large
/// for longer.
const FADE_PART: u64 = 16;

/// The window by the figures at this effective goal, in units.
pub(super) fn two_goals_units(goal: DiskTime) -> u64 {
    goal.units().saturating_mul(WINDOW_GOALS)
}

/// The effective goal: the latency goal, or more where the disk itself needs
/// more, because it takes longer for 128 KiB or answers later when idle.
#[derive(Debug)]
pub(super) struct Goal {
    units: AtomicU64,
    /// What the latency goal and the model ask for.
    units_min: AtomicU64,
    /// The base latency in use, stated or learnt.
    base_units: AtomicU64,
    /// The one that was stated; zero if none was.
    stated_units: AtomicU64,
    /// When a learnt base latency was confirmed or faded last.
    confirmed_at: AtomicU64,
    /// The stated latency goal in units, zero if none is stated; `None` without a goal.
    stated_goal: Option<u64>,
    /// The latency goal in units where none is stated; zero for as long as the disk needs.
    unstated_goal: u64,
    /// The cost of 128 KiB in the dearer direction.
    large_units: AtomicU64,
    /// For a policy that has a base latency.
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

    /// Follows the model; a policy without a goal has none whatever the model.
    pub(super) fn set_model(&self, model: &DiskModel) {
        self.large_units.store(model.max_cost(GOAL_REQUEST_LEN).units(), Ordering::Relaxed);
        self.update();
    }

    pub(super) fn get(&self) -> DiskTime {
        DiskTime::from_units(self.units.load(Ordering::Relaxed))
    }

    /// What the latency goal and the model ask for, whatever the disk is like.
    pub(super) fn configured(&self) -> DiskTime {
        DiskTime::from_units(self.units_min.load(Ordering::Relaxed))
    }

    /// Whether what the disk is like is to be found out: nobody has said.
    pub(super) fn learns(&self) -> bool {
        self.learnt.is_some() && self.stated_units.load(Ordering::Relaxed) == 0
    }

    pub(super) fn base_latency(&self) -> DiskTime {
        DiskTime::from_units(self.base_units.load(Ordering::Relaxed))
    }

    /// The base latency is this, and not what is learnt; a policy without one
    /// has none.
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

    /// Believes a learnt base latency less while nothing confirms it: what was learnt of a disk in
    /// trouble does not last as long as the next backlog.
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

/// Not zero, which stands for a time that is not stated.
fn stated_time(base: Duration) -> DiskTime {
    disk_time(base).max(DiskTime::from_units(1))
}

fn disk_time(duration: Duration) -> DiskTime {
    DiskTime::from_nanos(saturating_nanos(duration).min(GOAL_NANOS_MAX))
}

/// The service times that the learnt base latency is the median of. It is computed again once all of
/// them are new, so that more follow the disk later, and fewer leave outliers more weight.
const SAMPLES: usize = 32;
/// Service times within this time, in nanoseconds (1 ms), count as one sample. They may have met
/// the same stall of the disk, which would fill all samples at once.
const APART_NANOS: u64 = 1_000_000;
/// The service times from which the first median is taken. A median of fewer would believe a few
/// outliers.
const SAMPLES_MIN: u32 = 8;
/// The longest base latency that is believed, in nanoseconds (20 ms). Hard disks take 10 to 20 ms
/// for a seek, and disks behind a network up to 20. A disk that seems to answer later is slow at
/// the moment, and a larger window would make it slower.
const BELIEVED_NANOS_MAX: u64 = 20_000_000;

/// The last service times of requests that met a nearly idle disk, and their
/// median. Shared by all queues of a group.
#[derive(Debug, Default)]
pub(crate) struct BaseLatency {
    nanos: [AtomicU64; SAMPLES],
    seen: AtomicU32,
    seen_at: AtomicU64,
}

impl BaseLatency {
    /// Adds a service time, unless another was added just before; answers with
    /// the median of the latest as soon as there are enough, and then whenever all
    /// of them are new.
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

    /// Forgets what was seen: nothing confirms it any more.
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

    /// Service times at samples far enough apart, and what was found.
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
            // the many that wait in a disk that stands still come back together
            for _ in 0..if turn % 8 == 0 { 40 } else { 1 } {
                found = base.observe(now, nanos).or(found);
            }
        }
        assert_eq!(found, Some(80_000));
    }
}
