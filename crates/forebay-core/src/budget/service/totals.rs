//! Sums of all samples: of the present period, and since the beginning.

use super::sample::Sample;
use crate::sync::{AtomicU64, Ordering, add, get};
use crate::{DiskTime, GroupCounters, Time};

/// A period or sample that is longer than this says nothing, in nanoseconds (400 ms): it is of
/// several loads. It is twice the longest period, because the report that ends a period may come
/// late.
pub(super) const STALE_NANOS: u64 = 400_000_000;
/// A queue's work waits throughout a sample if it did for this many tenths of its time. At fewer, a
/// burst that waits for a moment would make a disk with little to do look slow.
const WAITED_TENTHS: u64 = 9;

/// Counters of one disk.
#[derive(Debug, Default)]
pub(in crate::budget) struct Totals {
    counted: AtomicU64,
    over: AtomicU64,
    /// At the price of its mix.
    served: AtomicU64,
    /// Until when the time in which work waited is counted.
    covered_until: AtomicU64,
    /// How much of the period that was.
    covered: AtomicU64,
    /// How much of the period the disk stood still.
    stalled: AtomicU64,
    waited_nanos_in_all: AtomicU64,
    served_in_all: AtomicU64,
    counted_total: AtomicU64,
    over_total: AtomicU64,
}

/// What all queues have reported in one period.
#[derive(Clone, Copy, Debug)]
pub(super) struct Period {
    pub(super) counted: u64,
    pub(super) over: u64,
    pub(super) served: u64,
    /// Whether work waited throughout.
    pub(super) waited: bool,
}

impl Totals {
    pub(super) fn add(&self, now: Time, sample: &Sample) {
        add(&self.counted, sample.counted);
        add(&self.over, sample.over);
        add(&self.served, sample.served);
        let nanos = now.nanos_since(sample.since);
        let running = nanos.saturating_sub(get(&self.stalled));
        if sample.waited / WAITED_TENTHS < nanos / 10 || running > STALE_NANOS {
            return;
        }
        let before = self.covered_until.fetch_max(now.as_nanos(), Ordering::Relaxed);
        let since = sample.since.max(Time::from_nanos(before));
        self.covered.fetch_add(now.nanos_since(since), Ordering::Relaxed);
    }

    /// Requests that count for the latency target in the present period.
    pub(super) fn counted(&self) -> u64 {
        get(&self.counted)
    }

    /// The present period has ended after `nanos`.
    pub(super) fn end_period(&self, nanos: u64) -> Period {
        let take = |sum: &AtomicU64| sum.swap(0, Ordering::Relaxed);
        let add = |sum: &AtomicU64, number: u64| sum.fetch_add(number, Ordering::Relaxed);
        let (counted, over, served) = (take(&self.counted), take(&self.over), take(&self.served));
        add(&self.counted_total, counted);
        add(&self.over_total, over);
        let (covered, stalled) = (take(&self.covered), take(&self.stalled));
        let running = nanos.saturating_sub(stalled);
        let waited = covered >= nanos / 4 * 3 && running <= STALE_NANOS;
        if waited {
            add(&self.waited_nanos_in_all, running);
            add(&self.served_in_all, served);
        }
        Period { counted, over, served, waited }
    }

    /// The disk stood still for so long in this period: work waited, however little of it there
    /// was.
    pub(in crate::budget) fn stalled(&self, nanos: u64) {
        self.stalled.fetch_add(nanos, Ordering::Relaxed);
        self.waited_nanos_in_all.fetch_add(nanos, Ordering::Relaxed);
    }

    pub(in crate::budget) fn counters(&self) -> GroupCounters {
        GroupCounters {
            waited_nanos: get(&self.waited_nanos_in_all),
            waited_consumption: DiskTime::from_units(get(&self.served_in_all)),
            measured: get(&self.counted_total),
            over_target: get(&self.over_total),
            ..GroupCounters::default()
        }
    }
}
