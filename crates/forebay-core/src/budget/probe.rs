//! A larger window on trial, for a disk that needs one and was not said to.
//!
//! A disk that answers late, or serves many requests at once, is not busy with
//! two goals of work: the window blocks while the rate is open. Whether more
//! would help shows only when it is tried, for a slow disk looks the same.

use super::price::Price;
use crate::sync::{AtomicU64, Ordering, get, set};
use crate::{Blocked, DiskTime, Time};

/// A measurement takes at least so long.
const MEASURE_NANOS: u64 = 200_000_000;
/// A measurement goes on until the disk has served so many windows.
const MEASURE_WINDOWS: u64 = 32;
/// A measurement that takes longer than this says nothing.
const MEASURE_NANOS_MAX: u64 = 10_000_000_000;
/// It begins so long after the window has changed.
const SETTLE_NANOS: u64 = 50_000_000;
/// Work must have waited for this part of it: (7, 8).
const BUSY: (u64, u64) = (7, 8);
/// A disk that does this part of what its model promises needs no more: (95, 100).
const USED: (u64, u64) = (95, 100);
/// A change is worth it if what is served changes by this part of it.
const WORTH_PART: u64 = 4;
/// A trial changes the window by a half, a quarter, ... of the window.
const SHIFT_MAX: u64 = 3;
/// After a trial that came to nothing the next is so long after, and twice as
/// long each further time.
const REST_NANOS_MIN: u64 = 1_000_000_000;
/// Trials are never further apart than this.
const REST_NANOS_MAX: u64 = 16_000_000_000;
/// Trials are at least as far apart as so many measurements take.
const REST_MEASUREMENTS: u64 = 16;
/// What is not needed falls by this part per measurement.
const FALL_PART: u64 = 8;
/// What the window may hold beyond its goals: twice the latency of the slowest
/// disk that is believed in.
const EXTRA_MAX: DiskTime = DiskTime::from_nanos(2 * super::base_latency::BELIEVED_NANOS_MAX);

/// What the shards of a group have counted up to some moment, wrapping.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Progress {
    /// Disk time completed, in units.
    pub(crate) served: u64,
    /// Time for which work waited for the window, in nanoseconds.
    pub(crate) at_window: u64,
    /// Time for which work waited for the window or the rate.
    pub(crate) busy: u64,
}

impl Progress {
    /// Work has waited for `reason`.
    pub(crate) fn waited(&mut self, reason: Blocked, nanos: u64) {
        match reason {
            Blocked::Window => self.at_window = self.at_window.wrapping_add(nanos),
            Blocked::Pace | Blocked::PaceDiskIdle | Blocked::FairnessLead => {}
            Blocked::Empty | Blocked::ClassLimit => return,
        }
        self.busy = self.busy.wrapping_add(nanos);
    }
}

/// What becomes of the window: searched step by step, by whichever shard comes
/// first when a step is due. The numbers are its alone until the next is.
#[derive(Debug)]
pub(super) struct Probe {
    due_at: AtomicU64,
    /// When the measurement began, or zero while the disk settles.
    began_at: AtomicU64,
    began_served: AtomicU64,
    began_at_window: AtomicU64,
    began_busy: AtomicU64,
    /// Plus one, what the extra was before the trial; zero without a trial.
    tried_from: AtomicU64,
    /// What was served per second before it.
    rate_before: AtomicU64,
    shift: AtomicU64,
    rest_until: AtomicU64,
    rest_nanos: AtomicU64,
    /// One if the next trial is of less.
    tries_less: AtomicU64,
}

/// One measurement.
#[derive(Clone, Copy, Debug)]
struct Measured {
    /// How long it took.
    nanos: u64,
    /// Disk time served in a second, in units.
    rate: u64,
    /// Work waited all the time,
    is_busy: bool,
    /// and the disk time that was lost was lost to the window.
    is_at_window: bool,
}

/// The window, and how much of it was found by trials, in units of disk time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    pub(super) window: u64,
    pub(super) extra: u64,
}

impl Probe {
    pub(super) fn new() -> Self {
        let zero = || AtomicU64::new(0);
        Self {
            due_at: zero(),
            began_at: zero(),
            began_served: zero(),
            began_at_window: zero(),
            began_busy: zero(),
            tried_from: zero(),
            rate_before: zero(),
            shift: zero(),
            rest_until: zero(),
            rest_nanos: AtomicU64::new(REST_NANOS_MIN),
            tries_less: zero(),
        }
    }

    /// Whether the caller is to take the next step.
    pub(super) fn is_due(&self, now: Time) -> bool {
        let due_at = self.due_at.load(Ordering::Relaxed);
        let order = Ordering::Relaxed;
        now.as_nanos() >= due_at
            && self
                .due_at
                .compare_exchange(due_at, now.plus_nanos(SETTLE_NANOS).as_nanos(), order, order)
                .is_ok()
    }

    /// The step that is due: what the window is to hold extra from now on. `None` while a measurement
    /// goes on. What was served counts at the `price` of its mix: of that a disk does a second of
    /// disk time per second, however much longer or shorter mixes take.
    pub(super) fn step(
        &self,
        now: Time,
        progress: Progress,
        sizes: Sizes,
        price: Price,
    ) -> Option<u64> {
        let Sizes { window, extra } = sizes;
        let began_at = get(&self.began_at);
        if began_at == 0 {
            self.begin(now, progress);
            return None;
        }
        let elapsed = now.nanos_since(Time::from_nanos(began_at));
        let served = price.busy_for(progress.served.wrapping_sub(get(&self.began_served)));
        let busy = progress.busy.wrapping_sub(get(&self.began_busy));
        let is_busy = elapsed < MEASURE_NANOS_MAX && busy >= elapsed / BUSY.1 * BUSY.0;
        if is_busy && served < window.saturating_mul(MEASURE_WINDOWS) {
            return None;
        }
        let at_window = progress.at_window.wrapping_sub(get(&self.began_at_window));
        let rate = per_second(served, elapsed);
        let lost = elapsed.saturating_sub(served / DiskTime::UNITS_PER_NANO);
        let measured =
            Measured { nanos: elapsed, rate, is_busy, is_at_window: at_window >= lost / 2 };
        let next = self.judge(now, measured, sizes).min(EXTRA_MAX.units());
        if next == extra {
            self.begin(now, progress);
        } else {
            set(&self.began_at, 0);
        }
        Some(next)
    }

    fn begin(&self, now: Time, progress: Progress) {
        set(&self.began_at, now.as_nanos().max(1));
        set(&self.began_served, progress.served);
        set(&self.began_at_window, progress.at_window);
        set(&self.began_busy, progress.busy);
        set(&self.due_at, now.plus_nanos(MEASURE_NANOS).as_nanos());
    }

    /// Ends a trial, and begins one if it is time for that.
    fn judge(&self, now: Time, measured: Measured, sizes: Sizes) -> u64 {
        let Sizes { window, extra } = sizes;
        let tried_from = get(&self.tried_from);
        set(&self.tried_from, 0);
        let Some(before) = tried_from.checked_sub(1) else {
            return self.rest(now, measured, sizes);
        };
        if !measured.is_busy {
            return before;
        }
        let window_before = window - extra + before;
        if self.was_worth_it(measured.rate, window_before, window) {
            set(&self.rest_nanos, REST_NANOS_MIN);
            set(&self.shift, get(&self.shift).saturating_sub(1));
            return self.rest(Time::MAX, measured, sizes);
        }
        let shift = get(&self.shift) + 1;
        let rest = if shift > SHIFT_MAX || before > extra {
            set(&self.shift, SHIFT_MAX - 1);
            set(&self.tries_less, u64::from(before <= extra));
            let rest = get(&self.rest_nanos);
            set(&self.rest_nanos, rest.saturating_mul(2).min(REST_NANOS_MAX));
            rest.max(measured.nanos.saturating_mul(REST_MEASUREMENTS))
        } else {
            set(&self.shift, shift);
            0
        };
        set(&self.rest_until, now.plus_nanos(rest).as_nanos());
        before
    }

    /// Whether to keep the window on trial: more must have brought more, and
    /// less must not have brought less.
    fn was_worth_it(&self, rate: u64, window_before: u64, window: u64) -> bool {
        let before = u128::from(get(&self.rate_before));
        let expected = before * u128::from(window.abs_diff(window_before))
            / u128::from(window_before.max(1))
            / u128::from(WORTH_PART);
        if window > window_before {
            u128::from(rate) >= before + expected
        } else {
            u128::from(rate) + expected >= before
        }
    }

    /// Without a trial: begins one if the window is what holds the disk back.
    fn rest(&self, now: Time, measured: Measured, sizes: Sizes) -> u64 {
        let Sizes { window, extra } = sizes;
        if !measured.is_busy {
            return extra - extra.div_ceil(FALL_PART);
        }
        if now.as_nanos() < get(&self.rest_until) {
            return extra;
        }
        let used = DiskTime::UNITS_PER_SECOND / USED.1 * USED.0;
        let needs_more = measured.is_at_window && measured.rate < used;
        let step = (window >> get(&self.shift)).min(measured.lacking(window));
        let next = if needs_more && (extra == 0 || get(&self.tries_less) == 0) {
            extra.saturating_add(step)
        } else {
            extra - extra.min(window >> SHIFT_MAX)
        };
        if next != extra {
            set(&self.tried_from, extra + 1);
            set(&self.rate_before, measured.rate);
        }
        next
    }
}

impl Measured {
    /// What the window would have to hold more for the disk to be used whole,
    /// if all of it helped.
    fn lacking(self, window: u64) -> u64 {
        let lost = DiskTime::UNITS_PER_SECOND.saturating_sub(self.rate);
        let lacking = u128::from(window) * u128::from(lost) / u128::from(self.rate.max(1));
        u64::try_from(lacking).unwrap_or(u64::MAX)
    }
}

fn per_second(served: u64, nanos: u64) -> u64 {
    let rate = u128::from(served) * 1_000_000_000 / u128::from(nanos.max(1));
    u64::try_from(rate).unwrap_or(u64::MAX)
}
