//! What was counted in all, for those who look now and then.

use super::period::STALE_NANOS;
use super::sample::Sample;
use crate::sync::{AtomicU64, Ordering, get};
use crate::{DiskTime, GroupCounters, Time};

/// A shard counts as one whose work waits if it did for so many tenths of the
/// time that it tells of.
const WAITED_TENTHS: u64 = 9;

/// Counters of one disk, and when work waited for it.
#[derive(Debug, Default)]
pub(super) struct Totals {
    /// Until then the time in which work waited is counted.
    covered_until: AtomicU64,
    /// How much of the period that was.
    covered: AtomicU64,
    /// How much of the period the disk stood still.
    stopped: AtomicU64,
    waited_nanos: AtomicU64,
    served: AtomicU64,
    measured: AtomicU64,
    over_target: AtomicU64,
}

impl Totals {
    /// A shard tells of its time since it last did.
    pub(super) fn cover(&self, now: Time, sample: &Sample) {
        let nanos = now.nanos_since(sample.since);
        let running = nanos.saturating_sub(get(&self.stopped));
        if sample.waited / WAITED_TENTHS < nanos / 10 || running > STALE_NANOS {
            return;
        }
        let before = self.covered_until.fetch_max(now.as_nanos(), Ordering::Relaxed);
        let since = sample.since.max(Time::from_nanos(before));
        self.covered.fetch_add(now.nanos_since(since), Ordering::Relaxed);
    }

    /// So much was seen in a period of so long; whether work waited throughout.
    pub(super) fn end_period(&self, sample: &Sample, nanos: u64) -> bool {
        let add = |sum: &AtomicU64, number: u64| sum.fetch_add(number, Ordering::Relaxed);
        add(&self.measured, sample.counted);
        add(&self.over_target, sample.over);
        let covered = self.covered.swap(0, Ordering::Relaxed);
        let stopped = self.stopped.swap(0, Ordering::Relaxed);
        let running = nanos.saturating_sub(stopped);
        let waited = covered >= nanos / 4 * 3 && running <= STALE_NANOS;
        if waited {
            add(&self.waited_nanos, running);
            add(&self.served, sample.served);
        }
        waited
    }

    /// The disk stood still for so long in this period: work waited, however little of it there
    /// was.
    pub(super) fn stopped(&self, nanos: u64) {
        self.stopped.fetch_add(nanos, Ordering::Relaxed);
        self.waited_nanos.fetch_add(nanos, Ordering::Relaxed);
    }

    pub(super) fn counters(&self) -> GroupCounters {
        GroupCounters {
            waited_nanos: get(&self.waited_nanos),
            served_meanwhile: DiskTime::from_units(get(&self.served)),
            measured: get(&self.measured),
            over_target: get(&self.over_target),
            ..GroupCounters::default()
        }
    }
}
