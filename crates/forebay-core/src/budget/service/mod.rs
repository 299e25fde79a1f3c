//! What the disk has served, and whether the latency target holds.
//!
//! Each queue counts what it completes and reports it in small samples. The report that ends
//! a period of 20 ms or more evaluates it.

mod sample;
mod totals;

use crate::latency_target::LatencyTarget;
use crate::sync::{AtomicU64, Ordering, get, set};
use crate::{DiskTime, Time, saturating_nanos};

use super::price::Price;

pub(crate) use sample::{Sample, Sampler, Threshold};
use totals::{STALE_NANOS, Totals};

/// The shortest and the longest period, in nanoseconds (20 and 200 ms). In a shorter one few
/// requests complete, and noise says what the disk does; after a longer one a burst that is over is
/// noticed later.
const PERIOD_NANOS: (u64, u64) = (20_000_000, 200_000_000);
/// A period goes on, up to the longest, while fewer than this many requests were counted for the
/// latency target. At this number a 99th percentile rests on a single request.
const COUNTED_MIN: u64 = 100;
/// A request that was dispatched within this time after another one had to wait met a loaded disk,
/// in nanoseconds (1 ms). It is ten times the time between two notes of that, so that no loaded
/// moment is missed.
const REFUSED_LATELY_NANOS: u64 = 1_000_000;
/// The time between two notes that work has to wait, in nanoseconds (0.1 ms). All shards write it,
/// so a note for each refusal would cost each of them a cache miss.
const NOTED_NANOS: u64 = 100_000;
/// The disk is loaded where it does at least this part of the rate of its figures, in thousandths,
/// also if no work waits. At a smaller part requests of an idle disk count for the latency target;
/// at a larger one fewer requests of a busy disk do.
const LOADED_PERMILLE: u64 = 500;
/// The highest rate that is believed, in thousandths of the figures' rate. A higher one, of 1,024
/// times the figures, was not measured, but is an error of the clock.
const DELIVERED_PERMILLE_MAX: u64 = 1_024_000;

/// What one disk has served.
#[derive(Debug, Default)]
pub(super) struct Service {
    /// What [`LatencyTarget::to_word`] made of the target.
    target: AtomicU64,
    /// What was delivered when work last waited, in thousandths of the figures' rate.
    speed_permille: AtomicU64,
    /// When work last had to wait for the disk.
    refused_at: AtomicU64,
    /// One if the disk was loaded in the last period.
    is_loaded: AtomicU64,
    /// One if the target held then.
    holds: AtomicU64,
    began_at: AtomicU64,
    pub(super) totals: Totals,
}

/// What the disk did in a period.
#[derive(Clone, Copy, Debug)]
pub(super) struct Delivered {
    /// Thousandths of its figures' rate.
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

    /// Puts another latency target in force, or none. Whether it is another one than before.
    pub(super) fn set_target(&self, target: Option<LatencyTarget>) -> bool {
        let word = LatencyTarget::to_word(target);
        let is_new = self.target.swap(word, Ordering::Relaxed) != word;
        if is_new {
            set(&self.holds, 1);
        }
        is_new
    }

    /// What the latency target asks of a request that was dispatched then; `None` if there is no
    /// target, or the request met no load.
    #[inline]
    pub(super) fn threshold_of_load(&self, dispatched_at: Time) -> Option<Threshold> {
        let target = self.target()?;
        let (op, in_disk) = (target.op(), target.is_in_disk());
        let threshold = Threshold { op, nanos: saturating_nanos(target.latency()), in_disk };
        self.met_load(dispatched_at).then_some(threshold)
    }

    /// Whether a request that was dispatched then met a loaded disk: one that others waited for, or
    /// that was busy without that.
    fn met_load(&self, dispatched_at: Time) -> bool {
        let refused_at = Time::from_nanos(get(&self.refused_at));
        get(&self.is_loaded) != 0
            || (refused_at > Time::ZERO
                && dispatched_at.nanos_since(refused_at) <= REFUSED_LATELY_NANOS)
    }

    /// Work has to wait for the disk.
    pub(super) fn refused(&self, now: Time) {
        if now.nanos_since(Time::from_nanos(get(&self.refused_at))) > NOTED_NANOS {
            set(&self.refused_at, now.as_nanos());
        }
    }

    /// A queue reports a sample. What it served counts at the `price` of the present mix. Returns
    /// what was delivered in the period that has ended with it, if one has.
    pub(super) fn add(&self, now: Time, sample: Sample, price: Price) -> Option<Delivered> {
        let served = price.busy_for(sample.served);
        self.totals.add(now, &Sample { served, ..sample });
        let began_at = get(&self.began_at);
        let nanos = now.nanos_since(Time::from_nanos(began_at));
        let is_over = nanos >= PERIOD_NANOS.1
            || (nanos >= PERIOD_NANOS.0 && self.totals.counted() >= COUNTED_MIN);
        let order = Ordering::Relaxed;
        let ends = is_over
            && self.began_at.compare_exchange(began_at, now.as_nanos(), order, order).is_ok();
        ends.then(|| self.end_period(nanos))
    }

    fn end_period(&self, nanos: u64) -> Delivered {
        let period = self.totals.end_period(nanos);
        let speed_permille = speed_permille(period.served, nanos);
        set(&self.is_loaded, u64::from(speed_permille >= LOADED_PERMILLE));
        if period.waited {
            set(&self.speed_permille, speed_permille);
        }
        if let Some(target) = self.target().filter(|_| nanos <= STALE_NANOS) {
            let allowed = period.counted.saturating_mul(u64::from(1000 - target.permille()));
            set(&self.holds, u64::from(period.over.saturating_mul(1000) <= allowed));
        }
        Delivered { speed_permille, waited: period.waited }
    }

    /// Whether the target held in the last period.
    pub(super) fn holds(&self) -> bool {
        get(&self.holds) != 0
    }

    /// What the disk did when work last waited for it, in thousandths of its figures' rate.
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
