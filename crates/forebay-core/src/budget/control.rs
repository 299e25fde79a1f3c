//! What says how much work the disk gets, and when its figures bind the pace.

use alloc::boxed::Box;
use core::time::Duration;

use super::goal::{GOAL_NANOS_MAX, two_goals_units};
use super::knee::Knee;
use super::policy::LATENCY_GOAL_DEFAULT;
use super::price::{Part, Price};
use crate::latency_target::LatencyTarget;
use crate::sync::{AtomicBool, AtomicU64, Ordering, Padded, get, set};
use crate::{DiskTime, PRICE_ONE, saturating_nanos};

/// A pace that does not bind where figures are right within a factor of sixteen, in thousandths of
/// their rate. It also keeps late shards that overdraw from starving a prompt one, so it is not
/// infinite.
const PACE_UNBOUND_PERMILLE: u64 = 16_000;
/// A fresh request may enter while less than this many windows are in the disk, less a multiple of
/// its cost. At a smaller number reads wait outside of the disk for the bulk writes in it. At a
/// larger one more waits in the disk, which knows no shares.
const FRESH_WINDOWS: u64 = 3;
/// This multiple of the cost of a fresh request is taken off the room of `FRESH_WINDOWS`, so that
/// only small requests find more of it. Without it bulk writes of few clients use the reserve.
const FRESH_COSTS: u64 = 2;

/// What decides how much work [`Policy::PaceWindow`](crate::Policy::PaceWindow) sends to the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Control {
    /// The disk: trials move the window to the knee of the present mix of requests, where a
    /// larger one would add more latency than throughput. The pace does not bind. While a
    /// [latency target](crate::GroupConfig::latency_target) is missed, the window is smaller, as
    /// long as that helps. Under a [ceiling](crate::IoGroup::set_ceiling) the pace is one second of
    /// disk time per second.
    #[default]
    Adaptive,
    /// The rates of the disk: one second of disk time per second, and at most two effective goals of it
    /// unfinished. The latency goal is 0.75 ms unless stated. Nothing corrects them: whether a
    /// latency target holds is measured only.
    Rates,
    /// A constant window and pace, for comparisons.
    Fixed(FixedControl),
}

/// A constant window and a constant pace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FixedControl {
    /// Most disk time that may be unfinished, at most 100 s.
    pub window: Duration,
    /// Disk time per time, in thousandths of the figures' rate; `None` if the pace does not bind.
    pub pace_permille: Option<u32>,
}

/// What binds a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terms {
    /// What a unit of disk time costs of the pace.
    pub(super) price: Price,
    /// Most disk time that may be unfinished, in units.
    pub(super) window: u64,
    /// Whether a part of the window is reserved for fresh requests.
    pub(super) reserves: bool,
}

impl Terms {
    /// What may be unfinished when a fresh request of this cost goes.
    #[inline]
    pub(super) fn window_of_fresh(self, cost: DiskTime) -> u64 {
        if self.reserves { window_of_fresh(self.window, cost) } else { self.window }
    }
}

/// A [`Control`] with its state.
#[derive(Debug)]
pub(super) struct Controller {
    kind: Kind,
    pub(super) figures_bound: FiguresBound,
    pub(super) part: Part,
}

#[derive(Debug)]
enum Kind {
    Rates,
    Knee(Box<Padded<Knee>>),
    Fixed { window: u64, price: Price },
}

impl Controller {
    pub(super) fn new(control: Control) -> Self {
        let kind = match control {
            Control::Rates => Kind::Rates,
            Control::Adaptive => Kind::Knee(Box::new(Padded(Knee::new()))),
            Control::Fixed(FixedControl { window, pace_permille }) => {
                let nanos = saturating_nanos(window).min(GOAL_NANOS_MAX);
                let pace = pace_permille.map_or(PACE_UNBOUND_PERMILLE, u64::from);
                Kind::Fixed { window: DiskTime::from_nanos(nanos).units(), price: at_pace(pace) }
            }
        };
        Self { kind, figures_bound: FiguresBound::default(), part: Part::default() }
    }

    /// Puts a latency target in force, or none: trials keep it, figures and constants do not.
    pub(super) fn set_target(&self, target: Option<LatencyTarget>) {
        if let Some(knee) = self.knee() {
            let permille = target.map_or(0, |target| target.permille());
            knee.set_target(u64::from(1000 - permille));
        }
    }

    /// The search for the window, if it decides.
    #[inline]
    pub(super) fn knee(&self) -> Option<&Knee> {
        if let Kind::Knee(knee) = &self.kind { Some(&knee.0) } else { None }
    }

    /// The latency goal where none is stated.
    pub(super) fn unstated_goal(&self) -> Duration {
        if let Kind::Rates = self.kind { LATENCY_GOAL_DEFAULT } else { Duration::ZERO }
    }

    /// The terms of a process that has the disk alone, where disk time costs so much by the figures.
    #[inline(always)]
    pub(super) fn alone(&self, goal: DiskTime, by_figures: impl Fn() -> Price) -> Terms {
        let (unbound, window, reserves) = match &self.kind {
            Kind::Rates => {
                // they bind always
                let price = by_figures();
                let window = price.done_in(two_goals_units(goal));
                return Terms { price, window, reserves: false };
            }
            Kind::Knee(knee) => {
                let unbound = const { at_pace(PACE_UNBOUND_PERMILLE) };
                (unbound, knee.0.window(goal), knee.0.reserves_for_fresh())
            }
            Kind::Fixed { window, price } => (*price, *window, true),
        };
        let price = self.figures_bound.price(by_figures).unwrap_or(unbound);
        Terms { price, window, reserves }
    }

    /// Most disk time that may be unfinished, in units; `None` where the figures say that.
    #[inline]
    pub(super) fn window(&self, goal: DiskTime) -> Option<u64> {
        match &self.kind {
            Kind::Rates => None,
            Kind::Knee(_) if self.part.is_in_force() => None,
            Kind::Knee(knee) => Some(knee.0.window(goal)),
            Kind::Fixed { window, .. } => Some(*window),
        }
    }
}

/// The window for a fresh request of this cost, where `window` is that of all others. A part
/// of the disk is reserved for requests that have nothing of their own class to wait for
/// (trunk reservation).
#[inline]
fn window_of_fresh(window: u64, cost: DiskTime) -> u64 {
    let fresh = window.saturating_mul(FRESH_WINDOWS);
    window.max(fresh.saturating_sub(cost.units().saturating_mul(FRESH_COSTS)))
}

/// The price of disk time at this pace, in thousandths of the figures' rate.
const fn at_pace(permille: u64) -> Price {
    let permille = if permille == 0 { 1 } else { permille };
    let price = PRICE_ONE as u64 * 1000 / permille;
    Price::of(if price > u32::MAX as u64 { u32::MAX } else { price as u32 })
}

/// A burst may be over where work waits and the disk does at most this, in thousandths of its
/// figures. At a smaller number figures that are slightly too low never bind; at a larger one they
/// bind while the burst lasts.
const BURST_END_PERMILLE: u64 = 1100;
/// The periods in a row, with work that waits and no more than `BURST_END_PERMILLE`, after which a
/// burst is over. A period is 20 to 200 ms, so a short slow phase of a disk does not end its burst.
/// With more periods requests wait longer in the disk, which knows no shares.
const BURST_END_PERIODS: u64 = 5;
/// After a burst the pace is slower than the figures by one part in this many (3 %), so that the
/// disk finishes what the burst left in it, such as a full write buffer. A larger number makes that
/// take longer; a smaller one costs more rate.
const DRAIN_PART: u32 = 32;

/// When the figures of a disk are a ceiling, and not prices alone: requests are let through at one
/// second of disk time per second then, whatever the disk does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ceiling {
    /// Never: trials find what the disk does.
    #[default]
    Never,
    /// Once a burst is over, which credits or a write buffer allow: from the moment that the disk does
    /// no more than its figures while work waits, until no work waits. Requests that the disk cannot
    /// do then wait in the queue, by shares, and not in the disk.
    AfterBurst,
    /// Always: the owner of the disk sets it.
    Always,
}

/// Whether the figures bind the pace now.
#[derive(Debug, Default)]
pub(super) struct FiguresBound {
    binds: AtomicBool,
    follows_burst: AtomicBool,
    /// Periods in a row in which the disk did no more than its figures.
    slow_periods: AtomicU64,
}

impl FiguresBound {
    /// The one in force, set again, changes nothing.
    pub(super) fn set(&self, ceiling: Ceiling) {
        let follows = ceiling == Ceiling::AfterBurst;
        if self.follows_burst.swap(follows, Ordering::Relaxed) && follows {
            return;
        }
        self.binds.store(ceiling == Ceiling::Always, Ordering::Relaxed);
        set(&self.slow_periods, 0);
    }

    /// What disk time costs where the figures bind and cost `price`; `None` where they do not bind.
    #[inline]
    pub(super) fn price(&self, price: impl FnOnce() -> Price) -> Option<Price> {
        self.binds.load(Ordering::Relaxed).then(|| {
            match self.follows_burst.load(Ordering::Relaxed) {
                true => price().slower_by(DRAIN_PART),
                false => price(),
            }
        })
    }

    /// In a period the disk did so much, in thousandths of its figures, and work waited or not.
    pub(super) fn end_period(&self, speed_permille: u64, waited: bool) {
        if !self.follows_burst.load(Ordering::Relaxed) {
            return;
        }
        let is_slow = waited && speed_permille <= BURST_END_PERMILLE;
        let periods = if is_slow { get(&self.slow_periods).saturating_add(1) } else { 0 };
        set(&self.slow_periods, periods);
        self.binds.store(periods >= BURST_END_PERIODS, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_fresh_requests_find_a_larger_window_and_large_ones_do_not() {
        let of = |cost| window_of_fresh(1000, DiskTime::from_units(cost));
        assert_eq!(
            [of(0), of(100), of(500), of(1000), of(u64::MAX)],
            [3000, 2800, 2000, 1000, 1000]
        );
    }

    fn binds(bound: &FiguresBound) -> bool {
        bound.price(|| Price::of(PRICE_ONE)).is_some()
    }

    #[test]
    fn figures_bind_from_the_end_of_a_burst_until_no_work_waits() {
        let bound = FiguresBound::default();
        bound.set(Ceiling::AfterBurst);
        let period = |delivered, waited| {
            bound.end_period(delivered, waited);
            binds(&bound)
        };
        assert!(!(0..100).any(|_| period(5_000, true)), "in the burst");
        assert!(!(0..100).any(|_| period(500, false)), "no work waits");
        assert!(!(0..100).any(|at| period(if at % 4 == 3 { 2_000 } else { 1_000 }, true)));
        let bound_at = (1..=10).find(|_| period(1_050, true));
        assert_eq!(bound_at, Some(BURST_END_PERIODS as i32));
        assert!((0..100).all(|_| period(1_000, true)));
        bound.set(Ceiling::AfterBurst);
        assert!(binds(&bound), "set again");
        let slower = PRICE_ONE + PRICE_ONE / DRAIN_PART;
        assert_eq!(bound.price(|| Price::of(PRICE_ONE)), Some(Price::of(slower)));
        assert!(!period(900, false));
    }

    #[test]
    fn a_ceiling_binds_always_and_prices_never() {
        let bound = FiguresBound::default();
        for (ceiling, expected) in [(Ceiling::Always, true), (Ceiling::Never, false)] {
            bound.set(ceiling);
            for waited in [true, false] {
                (0..10).for_each(|_| bound.end_period(1_000, waited));
                assert_eq!(binds(&bound), expected, "{ceiling:?}");
            }
        }
    }
}
