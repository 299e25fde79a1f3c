//! Whether the next request may go to the disk now.
//!
//! A budget has a *goal* (how much may wait in the disk), a *rate* and
//! *rooms* (what may be unfinished); the policies differ in which rate and
//! which rooms they have.
//!
//! Decision: `docs/decisions/0005-pace-and-window.md`.

mod control;
mod goal;
mod knee;
mod limit;
mod overdue;
mod pace;
mod policy;
mod price;
mod service;
mod windows;

#[cfg(test)]
mod tests;

use alloc::boxed::Box;
use core::time::Duration;

pub use control::{Ceiling, Control, FixedControl};
pub(crate) use knee::{Completed, WindowSample};
pub(crate) use limit::{Demand, Room};
pub(crate) use overdue::{GivenUp, Overdue};
pub(crate) use pace::Pace;
pub use policy::{LATENCY_GOAL_DEFAULT, Policy};
pub(crate) use price::Dispatched;
pub use service::GroupCounters;
pub(crate) use service::{Sample, Threshold};
pub(crate) use windows::RoomShare;

use crate::flow::FlowRatio;
use crate::latency_target::{LatencyTarget, LatencyTargetStatus};
use crate::sync::Padded;
use crate::{DiskModel, DiskTime, Time, saturating_nanos};

use control::Controller;
use goal::{Goal, two_goals_units};
use knee::Knee;
use limit::Limit;
use pace::Rate;
use price::{Mix, Price};
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

/// How a queue takes from the budget.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChargeContext<'a> {
    pub(crate) flow: &'a FlowRatio,
    /// The time that the pace makes up for.
    pub(crate) passed: DiskTime,
}

/// Why the budget let nothing through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The rate is used up; it is open again at this time.
    Pace(Time),
    /// Too much is unfinished; it opens when something completes.
    Window,
}

/// What became of an attempt to reserve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reservation {
    /// The request may go; `nearly_idle` if it found the disk almost empty.
    Granted { nearly_idle: bool },
    /// The budget is closed.
    Refused(Refusal),
    /// Another queue took the rate between two steps. Room was taken and given
    /// back meanwhile, so queues that found the window full must be woken.
    LostRace,
}

/// The budget of one disk, shared by all queues of its group.
#[derive(Debug)]
pub(crate) struct Budget {
    goal: Padded<Goal>,
    rate: Padded<Rate>,
    limit: Limit,
    /// What goes past the window because it was charged before.
    again: Padded<Pace>,
    /// Requests are priced higher while more go than come back.
    #[cfg(feature = "history")]
    follows_flow: bool,
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
        Self {
            rate: Padded(Rate::new(policy, goal.get(), sole)),
            goal: Padded(goal),
            again: Padded(Pace::new(sole)),
            limit: Limit::new(policy, model, sole),
            #[cfg(feature = "history")]
            follows_flow: matches!(policy, Policy::FlowRatio { .. }),
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
        let terms = self.terms(goal);
        let window = if demand.fresh { terms.window_of_fresh(demand.cost) } else { terms.window };
        let limit = window.saturating_add(unattended.units());
        let Some(before) = self.limit.enter(demand, goal, limit) else {
            return Reservation::Refused(Refusal::Window);
        };
        let amount = self.priced(demand.paced, goal, terms.price, taking.flow);
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
        let goal = self.effective_goal();
        let terms = self.terms(goal);
        let overdraft = goal.units().saturating_mul(OVERDRAFT_GOALS);
        let limit = match window_binds {
            // beyond what fresh requests of others find, or these would take all of it
            true => terms.window_of_fresh(DiskTime::ZERO),
            false => u64::MAX,
        };
        let window = limit.saturating_add(self.price_of_figures().done_in(overdraft));
        if self.limit.enter(demand, goal, window).is_none() {
            return false;
        }
        let burst = goal.units().saturating_add(overdraft);
        // what is owed already is enough for the disk to be empty where prices are wrong
        let amount = terms.price.time_of(demand.cost, goal).min(goal.max(demand.cost));
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
        if !self.rate.0.try_take_from(
            now,
            (goal, DiskTime::ZERO),
            self.controller.part.stretch(amount),
        ) {
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

    #[cfg_attr(not(feature = "history"), expect(unused_variables, reason = "for the flow ratio"))]
    #[inline]
    fn priced(&self, cost: DiskTime, goal: DiskTime, price: Price, flow: &FlowRatio) -> DiskTime {
        #[cfg(feature = "history")]
        if self.follows_flow && flow.permille() > policy::FLOW_RATIO_LIMIT_PERMILLE {
            let raised = price::scaled_units(cost.units(), flow.permille(), 1000);
            return DiskTime::from_units(raised.min(goal.units())).max(cost);
        }
        price.time_of(cost, goal)
    }
}

/// What queues report of the disk, and what became of the latency target.
impl Budget {
    /// Other rates, and other prices of mixes.
    pub(crate) fn set_model(&self, model: &DiskModel) {
        self.goal.0.set_model(model);
        self.mix.0.set_prices(model.mix_prices());
    }

    /// What the latency target asks of a request that was dispatched then; `None` if there is no
    /// target, or the request met no load.
    #[inline]
    pub(crate) fn threshold_of_load(&self, dispatched_at: Time) -> Option<Threshold> {
        self.service.0.threshold_of_load(dispatched_at)
    }

    /// Reports what a queue has seen of the disk.
    #[inline(never)]
    pub(crate) fn report(&self, now: Time, sample: Sample) {
        // what a part of the disk delivers says nothing of the disk
        let sample = if self.controller.part.is_in_force() { sample.unjudged() } else { sample };
        if let Some(period) = self.service.0.add(now, sample, self.mix.0.price()) {
            self.controller.figures_bound.end_period(period.speed_permille, period.waited);
        }
        self.goal.0.fade(now);
    }

    /// Reports what a shard has completed to the search for the window.
    #[inline(never)]
    pub(crate) fn report_to_knee(&self, now: Time, sample: &mut WindowSample) {
        if let Some(knee) = self.controller.knee()
            && !self.controller.part.is_in_force()
        {
            knee.report(now, sample, self.effective_goal());
        }
    }

    /// Reports what a queue has sent to the disk since its last report. Reads and writes that are
    /// in the disk together set the price of what follows.
    #[inline(never)]
    pub(crate) fn note_mix(&self, now: Time, dispatched: Dispatched) {
        self.mix.0.note(now, dispatched, self.window());
    }

    /// Work has to wait for the disk.
    pub(crate) fn refused(&self, now: Time) {
        self.service.0.refused(now);
    }

    /// What became of the latency target.
    pub(crate) fn latency_target(&self) -> Option<LatencyTargetStatus> {
        let target = self.service.0.target()?;
        let base = self.base_latency().as_nanos_ceil();
        let below_base = base > 0 && saturating_nanos(target.latency()) <= base;
        let has_given_up = self.controller.knee().is_some_and(Knee::has_given_up);
        Some(LatencyTargetStatus {
            target,
            holds: self.service.0.holds(),
            below_base,
            attainable: !below_base && !has_given_up,
            window: self.window_in_force(),
        })
    }

    /// Puts another latency target in force, or none; only where there is a window. The one in
    /// force changes nothing.
    pub(crate) fn set_latency_target(&self, target: Option<LatencyTarget>) {
        if self.counts_disk_time() && self.service.0.set_target(target) {
            self.controller.set_target(target);
        }
    }

    /// A request has completed after so long, which may be overdue.
    #[inline]
    pub(crate) fn completed(&self, now: Time, in_disk_nanos: u64) {
        if let Some(before) = self.overdue.completed(now, in_disk_nanos) {
            self.learn_patience(now, in_disk_nanos, before);
        }
    }

    #[cold]
    fn learn_patience(&self, now: Time, in_disk_nanos: u64, before: Time) {
        let stalled = self.overdue.learn(now, self.window(), in_disk_nanos, before);
        if stalled > 0 {
            self.service.0.stalled(stalled);
        }
    }

    /// How long a request may be in the disk before it is overdue.
    pub(crate) fn patience_nanos(&self, now: Time) -> u64 {
        self.overdue.patience_nanos(now, self.window())
    }

    /// Whether an overdue request may leave the window now, and the disk time
    /// that it has kept from others: none while nobody gets anything, or where
    /// nothing bounds what is unfinished. If not, when to ask again.
    pub(crate) fn give_up(&self, now: Time, request: GivenUp) -> Result<DiskTime, Time> {
        let kept = self.overdue.give_up(now, self.window(), request)?;
        Ok(if self.limit.is_none() { DiskTime::ZERO } else { kept })
    }

    /// Most disk time that may be unfinished now when an ordinary request goes.
    pub(crate) fn window_in_force(&self) -> DiskTime {
        DiskTime::from_units(self.limit_units(self.effective_goal()))
    }

    /// The disk is this process's to this part, in millionths of the figures, or alone. What it owes
    /// takes it as much longer or shorter.
    pub(crate) fn set_part(&self, now: Time, millionths: Option<u32>) {
        let (before, next) = self.controller.part.put_in_force(millionths);
        if let Rate::Pace(pace) = &self.rate.0
            && before != next
        {
            pace.rescale(now, before, next);
        }
    }

    /// When the figures are a ceiling, from now on.
    pub(crate) fn set_ceiling(&self, ceiling: Ceiling) {
        self.controller.figures_bound.set(ceiling);
    }

    /// What was counted of the group until `now`.
    pub(crate) fn counters(&self, now: Time) -> GroupCounters {
        let mut counters = self.service.0.counters();
        self.overdue.add_stalls_to(&mut counters, now);
        counters
    }

    /// What the disk did when work last waited for it, in thousandths of its figures' rate.
    pub(crate) fn speed_permille(&self) -> u64 {
        self.service.0.speed_permille()
    }
}
