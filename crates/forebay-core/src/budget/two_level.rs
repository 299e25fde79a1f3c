//! The token bucket that completions refill (ScyllaDB, 2022; switched off in
//! Seastar in 2023, because tokens that nobody fetches in time are lost).

use crate::sync::{AtomicU64, Ordering};
use crate::{DiskTime, Time};

/// Tokens circulate: a request takes them from the bucket, its completion puts
/// them aside, and the rate moves what was put aside back into the bucket.
///
/// Three counters that only grow: what was taken, what was filled in, and what
/// may be filled in. Taken may exceed filled in by one request.
#[derive(Debug)]
pub(super) struct TwoLevelBucket {
    taken: AtomicU64,
    filled: AtomicU64,
    fillable: AtomicU64,
    filled_at: AtomicU64,
}

impl TwoLevelBucket {
    /// A full bucket of `size`.
    pub(super) fn new(size: DiskTime) -> Self {
        Self {
            taken: AtomicU64::new(0),
            filled: AtomicU64::new(size.units()),
            fillable: AtomicU64::new(size.units()),
            filled_at: AtomicU64::new(0),
        }
    }

    pub(super) fn available(&self, now: Time) -> DiskTime {
        self.fill(now);
        let filled = self.filled.load(Ordering::Relaxed);
        DiskTime::from_units(filled.saturating_sub(self.taken.load(Ordering::Relaxed)))
    }

    /// When `wanted` is available; `None` if that takes completions.
    pub(super) fn available_at(&self, now: Time, wanted: DiskTime) -> Option<Time> {
        self.fill(now);
        let needed = self.taken.load(Ordering::Relaxed).saturating_add(wanted.units());
        let missing = needed.saturating_sub(self.filled.load(Ordering::Relaxed));
        let reserve = self.fillable.load(Ordering::Relaxed);
        let reachable = missing == 0 || needed <= reserve;
        reachable.then(|| now.plus_nanos(DiskTime::from_units(missing).as_nanos_ceil()))
    }

    pub(super) fn try_take(&self, now: Time, amount: DiskTime) -> bool {
        self.fill(now);
        let (order, filled) = (Ordering::Relaxed, || self.filled.load(Ordering::Relaxed));
        let next = |taken: u64| (taken < filled()).then(|| taken.saturating_add(amount.units()));
        self.taken.fetch_update(order, order, next).is_ok()
    }

    pub(super) fn completed(&self, amount: DiskTime) {
        self.fillable.fetch_add(amount.units(), Ordering::Relaxed);
    }

    /// Moves what the rate allows since the last time; what was not put aside
    /// by then is not made up for later.
    fn fill(&self, now: Time) {
        let filled_at = self.filled_at.load(Ordering::Relaxed);
        let elapsed = now.nanos_since(Time::from_nanos(filled_at));
        let order = Ordering::Relaxed;
        if elapsed == 0
            || self.filled_at.compare_exchange(filled_at, now.as_nanos(), order, order).is_err()
        {
            return;
        }
        let filled = self.filled.load(order);
        let reserve = self.fillable.load(order).saturating_sub(filled);
        let moved = DiskTime::from_nanos(elapsed).units().min(reserve);
        self.filled.fetch_add(moved, order);
    }
}
