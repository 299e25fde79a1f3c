//! The loop: speed and window follow what requests experience in the disk.
//!
//! Shards count what comes back and tell it in small samples. Each sample moves
//! the window; whoever tells the last one of a period moves the speed.

mod law;
#[cfg(test)]
mod law_tests;
mod misses;
mod period;
mod recent;
mod sample;
mod signs;
mod state;
mod sums;
mod totals;
mod window;

use core::time::Duration;

use crate::latency_target::{LatencyTarget, LatencyTargetStatus};
use crate::sync::{AtomicU64, Ordering, get, set};
use crate::{DiskTime, GroupCounters, Time, saturating_nanos};

use super::base_latency::UNKNOWN_PART;
use super::price::{CurrentPrice, Price};

use period::{COUNTED_MIN, Period, SPEED_ONE, STALE_NANOS};
pub(crate) use sample::{Sample, Sampler, Threshold};
use state::{SPEED_MAX, State, WORDS};
use sums::Sums;
use totals::Totals;
use window::{Bounds, window_after};

/// A period is at least so long,
const PERIOD_NANOS_MIN: u64 = 20_000_000;
/// and longer while fewer than [`COUNTED_MIN`] requests were counted, but not
/// than this.
const PERIOD_NANOS_MAX: u64 = 200_000_000;
/// Requests that went so soon after others had to wait met a loaded disk.
const REFUSED_LATELY_NANOS: u64 = 1_000_000;
/// Nobody waited if work did for less than this part of a time.
const REST_PART: u64 = 4;
/// A higher speed was not measured, but is an error of the clock.
const SPEED_MEASURED_MAX: u64 = 1024 * SPEED_ONE;
/// That somebody had to wait is noted once in this time.
const NOTED_NANOS: u64 = 100_000;

/// The present correction of pace and window, for one disk.
#[derive(Debug)]
pub(super) struct Feedback {
    /// What [`LatencyTarget::to_word`] made of the target.
    target: AtomicU64,
    /// The window in units of time; `u64::MAX` until something was counted.
    window: AtomicU64,
    /// What a unit of the model's disk time costs of the pace: that of the mix,
    /// divided by the speed.
    price: CurrentPrice,
    /// What the mix costs beside its parts, times 2^20.
    price_of_mix: AtomicU64,
    /// The speed in force, times 2^20.
    speed: AtomicU64,
    /// What was delivered when work last waited, as a speed.
    delivered: AtomicU64,
    /// What the target comes to, in nanoseconds.
    threshold_nanos: AtomicU64,
    refused_at: AtomicU64,
    /// One if the disk was busy for half of the last period.
    is_loaded: AtomicU64,
    /// One if the target held then.
    holds: AtomicU64,
    /// One while sending less does not help.
    given_up: AtomicU64,
    began_at: AtomicU64,
    sums: Sums,
    totals: Totals,
    state: SharedState,
}

/// [`State`], read and written by whoever ends a period; the next ends 20 ms
/// later.
#[derive(Debug)]
struct SharedState([AtomicU64; WORDS]);

impl SharedState {
    fn new(state: &State) -> Self {
        let shared = Self(core::array::from_fn(|_| AtomicU64::new(0)));
        shared.store(state);
        shared
    }

    fn load(&self) -> State {
        State::from_words(core::array::from_fn(|index| get(&self.0[index])))
    }

    fn store(&self, state: &State) {
        self.0.iter().zip(state.to_words()).for_each(|(word, value)| set(word, value));
    }
}

/// What the disk and the model say when a sample is told.
#[derive(Clone, Copy, Debug)]
pub(super) struct Disk {
    pub(super) goal: DiskTime,
    /// Two goals, and what else the disk was found to need.
    pub(super) window: DiskTime,
    pub(super) extra: DiskTime,
    pub(super) base: DiskTime,
}

impl Feedback {
    pub(super) fn new(target: Option<LatencyTarget>) -> Self {
        Self {
            target: AtomicU64::new(LatencyTarget::to_word(target)),
            window: AtomicU64::new(u64::MAX),
            price: CurrentPrice::new(),
            price_of_mix: AtomicU64::new(SPEED_ONE),
            speed: AtomicU64::new(SPEED_ONE),
            delivered: AtomicU64::new(SPEED_ONE),
            threshold_nanos: AtomicU64::new(u64::MAX),
            refused_at: AtomicU64::new(0),
            is_loaded: AtomicU64::new(0),
            holds: AtomicU64::new(1),
            given_up: AtomicU64::new(0),
            began_at: AtomicU64::new(0),
            sums: Sums::default(),
            totals: Totals::default(),
            state: SharedState::new(&State::BEGIN),
        }
    }

    /// What is promised.
    fn target(&self) -> Option<LatencyTarget> {
        LatencyTarget::from_word(get(&self.target))
    }

    /// Promises something else from now on. What was found stays where the loop
    /// begins; without a target nothing is corrected any more.
    pub(super) fn set_target(&self, target: Option<LatencyTarget>) {
        let word = LatencyTarget::to_word(target);
        if self.target.swap(word, Ordering::Relaxed) == word {
            return;
        }
        set(&self.holds, 1);
        set(&self.given_up, 0);
        self.state.store(&State { speed: get(&self.speed), ..State::BEGIN });
        if target.is_none() {
            self.correct_nothing();
        }
    }

    fn correct_nothing(&self) {
        set(&self.window, u64::MAX);
        set(&self.speed, SPEED_ONE);
        self.update_price();
    }

    /// The window in force; `nominal` is what it is without correction.
    #[inline]
    pub(super) fn window(&self, nominal: u64) -> u64 {
        match get(&self.window) {
            u64::MAX => nominal,
            window => window,
        }
    }

    /// What disk time costs now, as model, region and loop have it together.
    #[inline]
    pub(super) fn price(&self) -> Price {
        self.price.get()
    }

    /// What disk time of the present mix costs by the region alone.
    pub(super) fn price_of_mix(&self) -> Price {
        Price::of(u32::try_from(get(&self.price_of_mix)).unwrap_or(u32::MAX))
    }

    /// What the region says of the present mix, times 2^20.
    pub(super) fn set_price_of_mix(&self, price: u32) {
        if get(&self.price_of_mix) != u64::from(price) {
            set(&self.price_of_mix, u64::from(price));
            self.update_price();
        }
    }

    /// Who comes later may have missed what another has just changed: the next
    /// change mends it.
    fn update_price(&self) {
        let price = get(&self.price_of_mix).saturating_mul(SPEED_ONE) / get(&self.speed).max(1);
        self.price.set(u32::try_from(price).unwrap_or(u32::MAX));
    }

    /// What requests are measured against.
    pub(super) fn threshold(&self) -> Option<Threshold> {
        let target = self.target()?;
        let of_owners = target.latency().is_some();
        let in_disk = target.is_in_disk();
        Some(Threshold { op: target.op(), nanos: get(&self.threshold_nanos), in_disk, of_owners })
    }

    /// Work has to wait for the disk.
    pub(super) fn refused(&self, now: Time) {
        if now.nanos_since(Time::from_nanos(get(&self.refused_at))) > NOTED_NANOS {
            set(&self.refused_at, now.as_nanos());
        }
    }

    /// Whether a request that was dispatched then met a loaded disk: one that
    /// others waited for, or that was busy without that.
    pub(super) fn met_load(&self, dispatched_at: Time) -> bool {
        let refused_at = Time::from_nanos(get(&self.refused_at));
        get(&self.is_loaded) != 0
            || (refused_at > Time::ZERO
                && dispatched_at.nanos_since(refused_at) <= REFUSED_LATELY_NANOS)
    }

    /// A shard reports what it has seen. Pace and window are corrected by it if `corrects`.
    pub(super) fn add(&self, now: Time, sample: Sample, disk: &Disk, corrects: bool) {
        set(&self.threshold_nanos, self.threshold_of(disk));
        let served = scaled(sample.served, get(&self.price_of_mix));
        let sample = Sample { served, ..sample };
        self.sums.add(&sample);
        self.totals.cover(now, &sample);
        if let Some(target) = self.target()
            && sample.counted > 0
            && corrects
        {
            let allowed = u64::from(1000 - target.permille());
            let counts = (sample.counted, sample.over);
            let window = window_after(get(&self.window), counts, allowed, self.bounds(disk));
            set(&self.window, window);
        }
        let began_at = get(&self.began_at);
        let nanos = now.nanos_since(Time::from_nanos(began_at));
        let is_over = nanos >= PERIOD_NANOS_MAX
            || (nanos >= PERIOD_NANOS_MIN && get(&self.sums.counted) >= COUNTED_MIN);
        let order = Ordering::Relaxed;
        if is_over && self.began_at.compare_exchange(began_at, now.as_nanos(), order, order).is_ok()
        {
            self.end_period(now, nanos, disk, corrects);
        }
    }

    fn end_period(&self, now: Time, nanos: u64, disk: &Disk, corrects: bool) {
        let sample = self.sums.take();
        let delivered = speed_of(sample.served, nanos);
        let mut state = self.state.load();
        set(&self.is_loaded, u64::from(2 * delivered >= state.speed));
        if self.totals.end_period(&sample, nanos) {
            set(&self.delivered, delivered);
        }
        let is_stale = nanos > STALE_NANOS;
        let was_rest = is_stale && sample.waited < nanos / REST_PART;
        if is_stale && !was_rest {
            return;
        }
        let Some(target) = self.target() else {
            // whoever ended a period meanwhile may have corrected once more
            return self.correct_nothing();
        };
        let allowed_permille = u64::from(1000 - target.permille());
        if !corrects {
            let over = sample.over.saturating_mul(1000);
            set(&self.holds, u64::from(over <= sample.counted.saturating_mul(allowed_permille)));
            return self.correct_nothing();
        }
        let bounds = self.bounds(disk);
        let window = get(&self.window).clamp(bounds.min, bounds.max);
        let period = Period {
            now_nanos: now.as_nanos(),
            nanos,
            lately_nanos: nanos,
            counted: sample.counted,
            over: sample.over,
            allowed_permille,
            mean_nanos: sample.nanos / sample.counted.max(1),
            threshold_nanos: self.threshold_of(disk),
            delivered,
            emptied: sample.emptied,
            at_pace: sample.at_pace,
            at_window: sample.at_window,
            window_nanos: DiskTime::from_units(window).as_nanos_ceil(),
            window_at_min: window <= bounds.min / 20 * 21,
            base_nanos: disk.base.as_nanos_ceil(),
            // who states no target has asked for no more than the figures say
            speed_max: if target.latency().is_some() { SPEED_MAX } else { SPEED_ONE },
        };
        let was_refused = sample.at_pace.saturating_add(sample.at_window) > 0;
        if was_refused && !was_rest {
            state.step(&period);
            set(&self.holds, u64::from(!period.is_high()));
        } else {
            state.step_unrefused(&period);
        }
        self.state.store(&state);
        set(&self.given_up, u64::from(state.has_given_up(now.as_nanos())));
        set(&self.speed, state.speed);
        self.update_price();
        let nobody_is_there = sample.counted == 0 || state.has_rested();
        let window = if nobody_is_there { u64::MAX } else { window };
        if get(&self.window) != u64::MAX {
            set(&self.window, window);
        }
    }

    /// The latency in force.
    fn threshold_of(&self, disk: &Disk) -> u64 {
        let of_window = disk.goal.as_nanos_ceil().saturating_mul(2);
        let stated = self.target().and_then(|target| target.latency()).map(saturating_nanos);
        match stated {
            Some(stated) if stated > disk.base.as_nanos_ceil() => stated,
            _ => of_window,
        }
    }

    /// From the latency of the idle disk, or a part of the goal while it is not
    /// known, to seven eighths of the target, or to what the disk needs.
    fn bounds(&self, disk: &Disk) -> Bounds {
        let (goal, base) = (disk.goal.units(), disk.base.units());
        let target = DiskTime::from_nanos(self.threshold_of(disk)).units();
        let needed = goal.max(base + base / 2).max(target / 8 * 7);
        let nominal = disk.window.units();
        let max = needed.saturating_add(disk.extra.units()).min(nominal);
        let least = if base > 0 { base.min(goal) } else { goal / UNKNOWN_PART };
        if get(&self.given_up) != 0 {
            return Bounds { min: nominal, max: nominal };
        }
        Bounds { min: least.clamp(1, max.max(1)), max: max.max(1) }
    }

    pub(super) fn status(&self, disk: &Disk) -> Option<LatencyTargetStatus> {
        let target = self.target()?;
        let threshold = self.threshold_of(disk);
        let limit = self.price().done_in(self.window(disk.window.units()));
        let mut status = LatencyTargetStatus {
            target,
            latency: Duration::from_nanos(threshold),
            holds: get(&self.holds) != 0,
            attainable: get(&self.given_up) == 0,
            window: DiskTime::from_units(limit),
        };
        status.attainable &= !status.is_below_base();
        Some(status)
    }

    /// The disk had stood still for so long, in nanoseconds, until just now.
    pub(super) fn stopped(&self, nanos: u64) {
        self.totals.stopped(nanos);
    }

    /// What was counted so far.
    pub(super) fn counters(&self) -> GroupCounters {
        self.totals.counters()
    }

    /// Thousandths of the model's rate: at which the pace runs, and what the
    /// disk did when work last waited for it.
    pub(super) fn speeds_permille(&self) -> (u64, u64) {
        let permille = |speed: u64| speed.saturating_mul(1000) / SPEED_ONE;
        (permille(get(&self.speed)), permille(get(&self.delivered)))
    }
}

/// A speed: disk time served per time.
fn speed_of(served: u64, nanos: u64) -> u64 {
    let time = u128::from(nanos.max(1)) * u128::from(DiskTime::UNITS_PER_NANO);
    let speed = u128::from(served) * u128::from(SPEED_ONE) / time;
    u64::try_from(speed).unwrap_or(u64::MAX).min(SPEED_MEASURED_MAX)
}

fn scaled(units: u64, factor: u64) -> u64 {
    let product = u128::from(units) * u128::from(factor) / u128::from(SPEED_ONE);
    u64::try_from(product).unwrap_or(u64::MAX - 1)
}
