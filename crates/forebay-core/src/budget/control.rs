//! The size of window and pace, and when the figures bind the pace.

use alloc::boxed::Box;
use core::time::Duration;

use super::goal::{GOAL_NANOS_MAX, two_goals_units};
use super::knee::Knee;
use super::policy::LATENCY_GOAL_DEFAULT;
use super::price::{Part, Price};
use crate::latency_target::LatencyTarget;
use crate::sync::{AtomicBool, AtomicU64, Ordering, Padded, get, set};
use crate::{DiskTime, PRICE_ONE, saturating_nanos};

/// The pace where it is not meant to bind, in thousandths of the figures' rate (16 times). It does not bind
/// if the figures are right within this factor. It is finite, so that late shards that overdraw do not starve
/// a prompt one.
const PACE_UNBOUND_PERMILLE: u64 = 16_000;
/// The window of fresh requests, in windows of the others, before `FRESH_COSTS` is taken off. With fewer,
/// reads wait outside the disk for bulk writes in it. With more, more work waits in the disk, which knows no
/// shares.
const FRESH_WINDOWS: u64 = 3;
/// The multiple of its own cost that is taken off the window of a fresh request. So only small requests find
/// a larger window. Without it, bulk writes of few clients would use the reserve.
const FRESH_COSTS: u64 = 2;

/// How window and pace of [`Policy::PaceWindow`](crate::Policy::PaceWindow) are found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Control {
    /// By trials. They move the window to the knee of the present mix of requests, beyond which a larger
    /// window adds more latency than throughput. The pace does not bind. While a [latency
    /// target](crate::GroupConfig::latency_target) is missed, the window is smaller, as long as that helps.
    /// Under a [ceiling](crate::IoGroup::set_ceiling) the pace is one second of disk time per second.
    #[default]
    Adaptive,
    /// By the rates of the disk. The pace is one second of disk time per second, and the window is two
    /// effective goals. The latency goal is 0.75 ms unless stated. Nothing corrects the rates: a latency
    /// target is only measured.
    Rates,
    /// A constant window and pace, for comparisons.
    Fixed(FixedControl),
}

/// A constant window and a constant pace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FixedControl {
    /// The most disk time that may be in flight. More than 100 s count as 100 s.
    pub window: Duration,
    /// The pace in thousandths of the figures' rate, where 0 counts as 1. `None` if the pace does not bind.
    pub pace_permille: Option<u32>,
}

/// The bounds on a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terms {
    /// What the pace charges for a unit of disk time.
    pub(super) price: Price,
    /// The window for requests that are not fresh, in units of disk time.
    pub(super) window: u64,
    /// Whether fresh requests find a larger window.
    pub(super) reserves: bool,
}

impl Terms {
    /// The window for a fresh request of this cost, in units of disk time.
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

    /// Sets or removes the latency target. Only trials enforce it.
    pub(super) fn set_target(&self, target: Option<LatencyTarget>) {
        if let Some(knee) = self.knee() {
            let permille = target.map_or(0, |target| target.permille());
            knee.set_target(u64::from(1000 - permille));
        }
    }

    /// The search for the window, if there is one.
    #[inline]
    pub(super) fn knee(&self) -> Option<&Knee> {
        if let Kind::Knee(knee) = &self.kind { Some(&knee.0) } else { None }
    }

    /// The latency goal where none is stated.
    pub(super) fn unstated_goal(&self) -> Duration {
        if let Kind::Rates = self.kind { LATENCY_GOAL_DEFAULT } else { Duration::ZERO }
    }

    /// The terms for a process that has the disk alone. `by_figures` is the price by the figures.
    #[inline(always)]
    pub(super) fn alone(&self, goal: DiskTime, by_figures: impl Fn() -> Price) -> Terms {
        let (unbound, window, reserves) = match &self.kind {
            Kind::Rates => {
                // here the figures always bind
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

    /// The window in units of disk time; `None` if the figures decide it.
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

/// The window for a fresh request of this cost; `window` is that of all others. The difference is reserved
/// for requests that wait for no other of their class (trunk reservation).
#[inline]
fn window_of_fresh(window: u64, cost: DiskTime) -> u64 {
    let fresh = window.saturating_mul(FRESH_WINDOWS);
    window.max(fresh.saturating_sub(cost.units().saturating_mul(FRESH_COSTS)))
}

/// The price of disk time at a pace of `permille` thousandths of the figures' rate.
const fn at_pace(permille: u64) -> Price {
    let permille = if permille == 0 { 1 } else { permille };
    let price = PRICE_ONE as u64 * 1000 / permille;
    Price::of(if price > u32::MAX as u64 { u32::MAX } else { price as u32 })
}

/// The highest rate at which a burst may be over while work waits, in thousandths of the figures. With a
/// lower one, figures that are slightly too low never bind. With a higher one, they bind while the burst
/// lasts.
const BURST_END_PERMILLE: u64 = 1100;
/// The periods in a row after which a burst is over, each with waiting work and a rate of at most
/// `BURST_END_PERMILLE`. A period is 20 to 200 ms, so a short slow phase of a disk does not end its burst.
/// With more periods, requests wait longer in the disk, which knows no shares.
const BURST_END_PERIODS: u64 = 5;
/// After a burst the pace is slower than the figures by one part in this many (3 %). So the disk finishes the
/// work that the burst left in it, such as a full write buffer. A larger number makes that take longer; a
/// smaller one costs more rate.
const DRAIN_PART: u32 = 32;

/// When the figures of a disk are a ceiling on its rate, and not only prices. Under a ceiling the pace is one
/// second of disk time per second, even if the disk could do more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ceiling {
    /// Never. Trials find the throughput of the disk.
    #[default]
    Never,
    /// Once a burst is over, which credits or a write buffer allow. The ceiling begins when the disk does no
    /// more than its figures while work waits, and ends when no work waits. Excess requests then wait in the
    /// queue, by shares, and not in the disk.
    AfterBurst,
    /// Always. The figures are limits that the owner of the disk has set.
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
    /// Replaces the ceiling. Setting the present one again changes nothing.
    pub(super) fn set(&self, ceiling: Ceiling) {
        let follows = ceiling == Ceiling::AfterBurst;
        if self.follows_burst.swap(follows, Ordering::Relaxed) && follows {
            return;
        }
        self.binds.store(ceiling == Ceiling::Always, Ordering::Relaxed);
        set(&self.slow_periods, 0);
    }

    /// The price of disk time while the figures bind; `None` while they do not. `price` is the price by the
    /// figures.
    #[inline]
    pub(super) fn price(&self, price: impl FnOnce() -> Price) -> Option<Price> {
        self.binds.load(Ordering::Relaxed).then(|| {
            match self.follows_burst.load(Ordering::Relaxed) {
                true => price().slower_by(DRAIN_PART),
                false => price(),
            }
        })
    }

    /// Counts a period in which the disk had this rate, in thousandths of its figures. `waited` is true if
    /// work waited throughout.
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
