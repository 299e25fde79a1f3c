//! Whether the next request may go to the disk now.
//!
//! A budget has a *goal* (how much may wait in the disk), a *rate* and
//! *rooms* (what may be unfinished); the policies differ in which rate and
//! which rooms they have.
//!
//! Decision: `docs/decisions/0005-pace-and-window.md`.

mod base_latency;
mod ceiling;
mod control;
mod demand;
mod goal;
mod knee;
mod limit;
#[cfg(feature = "history")]
mod littles_law;
mod mix;
mod overdue;
mod pace;
mod policy;
mod price;
mod rate;
mod reports;
mod room;
mod service;
#[cfg(feature = "history")]
mod two_level;
mod windows;

#[cfg(test)]
mod tests;

use alloc::boxed::Box;
use core::time::Duration;

pub use ceiling::Ceiling;
pub use control::{Control, FixedControl};
pub(crate) use demand::{ChargeContext, Demand, Refusal, Reservation};
pub(crate) use knee::{Completed, WindowSample};
pub(crate) use mix::Dispatched;
pub(crate) use overdue::{GivenUp, Overdue};
pub(crate) use pace::Pace;
pub use policy::{LATENCY_GOAL_DEFAULT, Policy};
pub(crate) use room::Room;
pub(crate) use service::{Sample, Sampler, Threshold};
pub(crate) use windows::RoomShare;

use crate::flow::FlowRatio;
use crate::latency_target::LatencyTarget;
use crate::sync::Padded;
use crate::{DiskModel, DiskTime, Time};

use control::Controller;
use goal::{Goal, two_goals_units};
use limit::Limit;
use mix::Mix;
use price::Price;
use rate::Rate;
use service::Service;

/// The effective goals by which all shards together that turn late and are owed disk time may
/// exceed window and burst. With fewer, late shards lose their share to those that turn more often;
/// with more, urgent requests wait longer in the disk.
const OVERDRAFT_GOALS: u64 = 4;
/// Of these a shard has no more than this many in a turn, where trials find the window. Their effective
/// goals are a tenth of those by the figures. With two, a shard that turns rarely has two thirds of what
/// three goals in each turn would be.
const TURN_GOALS_BY_TRIALS: u64 = 3;
/// The same where the figures give the window. With three, a shard that is away now and then has requests
/// wait in the disk 1.15 times as long (p99).
const TURN_GOALS_BY_FIGURES: u64 = 2;
/// A disk is nearly idle while at most one part in this many is used of the window that was asked
/// for. It is not the window that is learnt: a bound that follows what is learnt would let the base
/// latency run away.
const NEARLY_IDLE_PART: u64 = 4;
/// A disk is nearly empty while at most one part in this many of the window is used. It only
/// decides under which reason the time is counted for which the pace holds requests back.
const NEARLY_EMPTY_PART: u64 = 8;

/// The budget of one disk, shared by all queues of its group.
#[derive(Debug)]
pub(crate) struct Budget {
    goal: Padded<Goal>,
    rate: Padded<Rate>,
    limit: Limit,
    /// What goes past the window because it was charged before.
    again: Padded<Pace>,
    /// Above this flow ratio, in thousandths, requests are priced higher.
    #[cfg(feature = "history")]
    flow_limit_permille: Option<u64>,
    pub(crate) overdue: Overdue,
    /// Boxed, as what follows: budgets are made on small stacks too.
    service: Box<Padded<Service>>,
    mix: Box<Padded<Mix>>,
    controller: Controller,
}

impl Budget {
    /// `sole` if a single shard uses it.
    pub(crate) fn new(
        policy: &Policy,
        model: &DiskModel,
        sole: bool,
        control: Control,
        target: Option<LatencyTarget>,
    ) -> Self {
        let has_window = matches!(policy, Policy::PaceWindow { .. });
        let controller = Controller::new(if has_window { control } else { Control::Rates });
        let goal = Goal::new(policy, model, controller.unstated_goal());
        let target = target.filter(|_| has_window);
        controller.set_target(target);
        #[cfg(feature = "history")]
        let flow_limit = matches!(policy, Policy::FlowRatio { .. });
        Self {
            rate: Padded(Rate::new(policy, goal.get(), sole)),
            goal: Padded(goal),
            again: Padded(Pace::new(sole)),
            limit: Limit::new(policy, model, sole),
            #[cfg(feature = "history")]
            flow_limit_permille: flow_limit.then_some(policy::FLOW_RATIO_LIMIT_PERMILLE),
            overdue: Overdue::default(),
            service: Box::new(Padded(Service::new(target))),
            controller,
            mix: Box::new(Padded(Mix::new(model.mix_prices()))),
        }
    }

    /// Disk time of everything in the disk.
    pub(crate) fn in_flight(&self) -> DiskTime {
        DiskTime::from_units(self.limit.in_flight())
    }

    /// Whether the disk is empty, or nearly, and does not hang.
    pub(crate) fn is_nearly_empty(&self, now: Time) -> bool {
        let nearly = self.window().units() / NEARLY_EMPTY_PART;
        self.limit.in_flight() <= nearly && !self.overdue.hangs(now)
    }

    /// The latency of the idle disk, stated or learnt; zero if it is not known.
    pub(crate) fn base_latency(&self) -> DiskTime {
        self.goal.0.base_latency()
    }

    /// How much may wait in the disk and how much may burst; unbounded when open.
    pub(crate) fn effective_goal(&self) -> DiskTime {
        self.goal.0.get()
    }

    /// What disk time costs of the pace now.
    #[inline]
    fn price(&self) -> Price {
        self.controller.price(|| self.price_of_figures())
    }

    /// What disk time of the present mix costs by the figures. Windows are counted by it: a pace
    /// that does not bind is no reason for a larger window.
    #[inline]
    fn price_of_figures(&self) -> Price {
        self.mix.0.price()
    }

    /// Disk time that lies unused: what could be dispatched now, at most one
    /// effective goal. `unattended` is in the disk and does not count.
    pub(crate) fn unused(&self, now: Time, unattended: DiskTime) -> DiskTime {
        let goal = self.effective_goal();
        let room = self.limit.part_free(goal, self.limit_units(goal), unattended);
        self.rate.0.available(now, goal).min(room)
    }

    /// What the rate alone leaves unused, at most one effective goal.
    pub(crate) fn unused_of_rate(&self, now: Time) -> DiskTime {
        self.rate.0.available(now, self.effective_goal())
    }

    /// Since when the rate has been open; `now` if it is not.
    pub(crate) fn unused_since(&self, now: Time) -> Time {
        self.rate.0.open_since(self.effective_goal()).min(now)
    }

    /// When the rate alone leaves `wanted` unused (at most one effective goal).
    pub(crate) fn unused_at(&self, now: Time, wanted: DiskTime) -> Time {
        self.rate.0.available_at(now, self.effective_goal(), wanted).unwrap_or(now)
    }

    /// A number that changes whenever something is dispatched, if the policy has
    /// one.
    pub(crate) fn spent(&self) -> Option<u64> {
        self.rate.0.spent()
    }

    /// What disk time costs of the pace now, and what may be unfinished when this request goes.
    #[inline(always)]
    fn terms(&self, goal: DiskTime, demand: &Demand) -> (Price, u64) {
        if self.controller.part.is_in_force() {
            let price = self.price();
            return (price, self.limit_of_part(price, goal));
        }
        let (price, window, reserves) = self.controller.alone(goal, || self.price_of_figures());
        let is_fresh = demand.fresh && reserves;
        (price, if is_fresh { Controller::window_of_fresh(window, demand.cost) } else { window })
    }

    /// Takes what `demand` needs if the budget is open; `unattended` does not count.
    // on the way of each request; other callers are rare
    #[inline(always)]
    pub(crate) fn try_reserve(
        &self,
        now: Time,
        demand: &Demand,
        taking: ChargeContext<'_>,
        unattended: DiskTime,
    ) -> Reservation {
        let goal = self.effective_goal();
        if !self.rate.0.is_open(now, goal) {
            return Reservation::Refused(self.refusal_of_rate(now, goal));
        }
        let (price, window) = self.terms(goal, demand);
        let limit = window.saturating_add(unattended.units());
        let Some(before) = self.limit.enter(demand, goal, limit) else {
            return Reservation::Refused(Refusal::Window);
        };
        let amount = self.priced(demand.paced, goal, price, taking.flow);
        let amount = self.controller.part.stretch(amount);
        if self.rate.0.try_take_from(now, (goal, taking.passed), amount) {
            let configured = two_goals_units(self.goal.0.configured());
            return Reservation::Granted { nearly_idle: before <= configured / NEARLY_IDLE_PART };
        }
        self.leave(demand);
        Reservation::LostRace
    }

    #[cold]
    fn refusal_of_rate(&self, now: Time, goal: DiskTime) -> Refusal {
        let open_at = self.rate.0.available_at(now, goal, DiskTime::from_units(1));
        open_at.map_or(Refusal::Window, Refusal::Pace)
    }

    /// By how much a late shard may overdraw the budget in a turn: all of `late_shards` together by
    /// four effective goals.
    pub(crate) fn overdraft_max(&self, late_shards: u64) -> DiskTime {
        let goal = self.effective_goal().units();
        let in_turn = match self.searches_knee() {
            true => TURN_GOALS_BY_TRIALS,
            false => TURN_GOALS_BY_FIGURES,
        };
        let part = goal.saturating_mul(OVERDRAFT_GOALS) / late_shards.max(1);
        DiskTime::from_units(part.min(goal.saturating_mul(in_turn)))
    }

    /// Takes what `demand` needs on credit, for a shard that is owed it, beyond the
    /// rate's burst and beyond the window, which may bind nobody. Policies without
    /// both have no such credit.
    pub(crate) fn try_overdraw(&self, now: Time, demand: &Demand, window_binds: bool) -> bool {
        let (true, Rate::Pace(pace)) = (self.limit.is_window(), &self.rate.0) else { return false };
        let (goal, price) = (self.effective_goal(), self.price());
        let overdraft = goal.units().saturating_mul(OVERDRAFT_GOALS);
        let limit = match window_binds {
            // beyond what fresh requests of others find, or these would take all of it
            true => self.most_units(price, goal, DiskTime::ZERO),
            false => u64::MAX,
        };
        let window = limit.saturating_add(self.price_of_figures().done_in(overdraft));
        if self.limit.enter(demand, goal, window).is_none() {
            return false;
        }
        let burst = goal.units().saturating_add(overdraft);
        // what is owed already is enough for the disk to be empty where prices are wrong
        let amount = price.time_of(demand.cost, goal).min(goal.max(demand.cost));
        let amount = self.controller.part.stretch(amount);
        let taken = pace.try_take(now, DiskTime::from_units(burst), amount);
        if !taken {
            self.limit.leave(demand);
        }
        taken
    }

    /// Takes what `demand` needs if the rate alone is open, however much is in the
    /// disk. Else when the rate is open again, if time alone brings that about.
    pub(crate) fn reserve_bypass(&self, now: Time, demand: &Demand) -> Result<(), Option<Time>> {
        let goal = self.effective_goal();
        // not at a pace that does not bind: this is the only bound past the window
        let amount = self.price_of_figures().time_of(demand.cost, goal);
        if !self.rate.0.try_take(now, goal, self.controller.part.stretch(amount)) {
            return Err(self.rate.0.available_at(now, goal, DiskTime::from_units(1)));
        }
        self.limit.enter_anyway(demand);
        Ok(())
    }

    /// Lets a request enter again whose cost the rate has handed out before: if
    /// there is room, or else past the window, one effective goal and then the
    /// rate of the disk.
    pub(crate) fn reenter(&self, now: Time, demand: &Demand) -> bool {
        // not at a pace that does not bind, as for `reserve_bypass`
        let (goal, price) = (self.effective_goal(), self.price_of_figures());
        let window = self.limit_units(goal).max(price.done_in(two_goals_units(goal)));
        if self.limit.enter(demand, goal, window).is_some() {
            return true;
        }
        let amount = self.controller.part.stretch(price.time_of(demand.cost, goal));
        let enters = self.again.0.try_take(now, goal, amount);
        if enters {
            self.limit.enter_anyway(demand);
        }
        enters
    }

    /// The latency of the idle disk is known now: the effective goal follows.
    pub(crate) fn set_base_latency(&self, base: Duration) {
        self.goal.0.set_base_latency(base);
    }

    /// The disk has finished with a request, or is no longer waited for.
    pub(crate) fn leave(&self, demand: &Demand) {
        self.limit.leave(demand);
        #[cfg(feature = "history")]
        self.rate.0.completed(demand.cost);
    }

    /// Learns from a service time that was measured while the disk was nearly idle. Where others use
    /// the disk too, it need not have been idle.
    pub(crate) fn observe_idle_service(&self, now: Time, service_nanos: u64) {
        if self.controller.part.is_in_force() {
            return;
        }
        self.goal.0.observe_idle_service(now, service_nanos);
    }

    /// Whether room is counted in disk time.
    #[inline]
    pub(crate) fn counts_disk_time(&self) -> bool {
        self.limit.is_window()
    }

    /// Takes room for a request that goes however much is in the disk.
    pub(crate) fn enter_anyway(&self, demand: &Demand) {
        self.limit.enter_anyway(demand);
    }

    #[cfg(not(feature = "history"))]
    #[inline]
    fn priced(&self, cost: DiskTime, goal: DiskTime, price: Price, _flow: &FlowRatio) -> DiskTime {
        price.time_of(cost, goal)
    }

    #[cfg(feature = "history")]
    fn priced(&self, cost: DiskTime, goal: DiskTime, price: Price, flow: &FlowRatio) -> DiskTime {
        match self.flow_limit_permille {
            Some(limit) if flow.permille() > limit => {
                let raised = u128::from(cost.units()) * u128::from(flow.permille()) / 1000;
                let raised = u64::try_from(raised).unwrap_or(u64::MAX);
                DiskTime::from_units(raised.min(goal.units())).max(cost)
            }
            _ => price.time_of(cost, goal),
        }
    }
}
