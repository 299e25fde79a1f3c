//! Decides whether the next request may be dispatched to the disk now.
//!
//! The *effective goal* of a budget is the disk time that may wait in the disk. Its *rate* is the disk time
//! that it hands out per second, and its *limit* bounds the work in flight. Policies differ in rate and
//! limit.
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

/// The overdraft of all late shards together, in effective goals. Late shards that are owed disk time may
/// exceed window and burst by this much. With a smaller overdraft, they lose their share to shards that poll
/// more often. With a larger one, urgent requests wait longer in the disk.
const OVERDRAFT_GOALS: u64 = 4;
/// The overdraft of one late shard in a turn where trials find the window, in effective goals. Such a goal is
/// a tenth of one by the figures. With two, a shard that polls rarely gets two thirds of what it gets with
/// three.
const TURN_GOALS_BY_TRIALS: u64 = 3;
/// The overdraft of one late shard in a turn where the figures give the window, in effective goals. With
/// three, a shard that is away now and then makes requests wait 1.15 times as long in the disk (p99).
const TURN_GOALS_BY_FIGURES: u64 = 2;
/// A disk is nearly idle while at most one part in this many of the configured window is in flight. The
/// configured window is two effective goals without the learnt base latency. A bound that followed the learnt
/// latency would raise it again and again.
const NEARLY_IDLE_PART: u64 = 4;
/// A disk is nearly empty while at most one part in this many of the window is in flight. This only selects
/// the counter for the time in which the pace holds requests back.
const NEARLY_EMPTY_PART: u64 = 8;

/// The state of a queue that changes what a request is charged.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChargeContext<'a> {
    pub(crate) flow: &'a FlowRatio,
    /// Missed pace credit: disk time before now that the pace still hands out.
    pub(crate) passed: DiskTime,
}

/// Why the budget refuses a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The rate is used up until this time.
    Pace(Time),
    /// Too much work is in flight. A completion makes room.
    Window,
}

/// The result of an attempt to reserve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reservation {
    /// The request may be dispatched. `nearly_idle` is true if it found the disk nearly idle.
    Granted { nearly_idle: bool },
    /// The budget refuses the request.
    Refused(Refusal),
    /// Another queue used up the rate between two steps of the attempt. Room was taken and given back, so
    /// queues that found the window full meanwhile must be woken.
    LostRace,
}

/// The budget of one disk, shared by all queues of its group.
#[derive(Debug)]
pub(crate) struct Budget {
    goal: Padded<Goal>,
    rate: Padded<Rate>,
    limit: Limit,
    /// The pace of parked grants that come back beyond the window. The rate has charged them before.
    again: Padded<Pace>,
    /// Whether prices rise while more requests are dispatched than complete.
    #[cfg(feature = "history")]
    follows_flow: bool,
    pub(crate) overdue: Overdue,
    /// Boxed like `mix`, because budgets are also made on small stacks.
    service: Box<Padded<Service>>,
    mix: Box<Padded<Mix>>,
    controller: Controller,
}

impl Budget {
    /// `sole` is true if a single shard uses the budget.
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

    /// Disk time of the requests in flight that are not given up.
    pub(crate) fn in_flight(&self) -> DiskTime {
        DiskTime::from_units(self.limit.in_flight())
    }

    /// Whether the disk is nearly empty and does not hang.
    pub(crate) fn is_nearly_empty(&self, now: Time) -> bool {
        let nearly = self.window().units() / NEARLY_EMPTY_PART;
        self.limit.in_flight() <= nearly && !self.overdue.hangs(now)
    }

    /// The base latency, stated or learnt; zero if it is unknown.
    pub(crate) fn base_latency(&self) -> DiskTime {
        self.goal.0.base_latency()
    }

    /// The effective goal: the disk time that may wait in the disk, and the length of a burst. It is
    /// unbounded for a policy without a goal.
    pub(crate) fn effective_goal(&self) -> DiskTime {
        self.goal.0.get()
    }

    /// Unused disk time: how much could be dispatched now, at most one effective goal. `unattended` is disk
    /// time in flight that does not count.
    pub(crate) fn unused(&self, now: Time, unattended: DiskTime) -> DiskTime {
        let goal = self.effective_goal();
        let room = self.limit.part_free(goal, self.limit_units(goal), unattended);
        self.rate.0.available(now, goal).min(room)
    }

    /// Disk time that the rate alone leaves unused, at most one effective goal.
    pub(crate) fn unused_of_rate(&self, now: Time) -> DiskTime {
        self.rate.0.available(now, self.effective_goal())
    }

    /// The time since which the rate has been open; `now` if it is closed.
    pub(crate) fn unused_since(&self, now: Time) -> Time {
        self.rate.0.open_since(self.effective_goal()).min(now)
    }

    /// The time at which the rate alone leaves `wanted` unused. More than one effective goal counts as one.
    pub(crate) fn unused_at(&self, now: Time, wanted: DiskTime) -> Time {
        self.rate.0.available_at(now, self.effective_goal(), wanted).unwrap_or(now)
    }

    /// A number that changes with each dispatch; `None` if the policy has none.
    pub(crate) fn spent(&self) -> Option<u64> {
        self.rate.0.spent()
    }

    /// Reserves rate and room for `demand` if the budget is open. `unattended` is disk time in flight that
    /// does not count in the window.
    // inlined for the hot path of each request; other callers are rare
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

    /// The most by which one late shard may overdraw the budget in a turn. All `late_shards` together may
    /// overdraw it by four effective goals.
    pub(crate) fn overdraft_max(&self, late_shards: u64) -> DiskTime {
        let goal = self.effective_goal().units();
        let in_turn = match self.searches_knee() {
            true => TURN_GOALS_BY_TRIALS,
            false => TURN_GOALS_BY_FIGURES,
        };
        let part = goal.saturating_mul(OVERDRAFT_GOALS) / late_shards.max(1);
        DiskTime::from_units(part.min(goal.saturating_mul(in_turn)))
    }

    /// Reserves for a late shard that is owed disk time, beyond the burst of the rate and beyond the window.
    /// If `window_binds` is false, nothing bounds the disk time in flight. Returns whether it reserved: never
    /// for policies that lack a pace or a window.
    pub(crate) fn try_overdraw(&self, now: Time, demand: &Demand, window_binds: bool) -> bool {
        let (true, Rate::Pace(pace)) = (self.limit.is_window(), &self.rate.0) else { return false };
        let goal = self.effective_goal();
        let terms = self.terms(goal);
        let overdraft = goal.units().saturating_mul(OVERDRAFT_GOALS);
        let limit = match window_binds {
            // beyond the window of fresh requests, or those of others would take all of the overdraft
            true => terms.window_of_fresh(DiskTime::ZERO),
            false => u64::MAX,
        };
        let window = limit.saturating_add(self.price_of_figures().done_in(overdraft));
        if self.limit.enter(demand, goal, window).is_none() {
            return false;
        }
        let burst = goal.units().saturating_add(overdraft);
        // capped: if the price is wrong, the present debt alone already leaves the disk empty
        let amount = terms.price.time_of(demand.cost, goal).min(goal.max(demand.cost));
        let amount = self.controller.part.stretch(amount);
        let taken = pace.try_take(now, DiskTime::from_units(burst), amount);
        if !taken {
            self.limit.leave(demand);
        }
        taken
    }

    /// Reserves for `demand` if the rate is open, however much is in flight. The error is the time at which
    /// the rate opens again; `None` if only a completion opens it.
    pub(crate) fn reserve_bypass(&self, now: Time, demand: &Demand) -> Result<(), Option<Time>> {
        let goal = self.effective_goal();
        // by the price of the figures, which binds: beyond the window the pace is the only bound
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

    /// Lets a parked grant enter the window again; the rate has charged it before. Without room it goes
    /// beyond the window, at the rate of the figures with a burst of one effective goal. Returns whether it
    /// entered.
    pub(crate) fn reenter(&self, now: Time, demand: &Demand) -> bool {
        // by the price of the figures, as in `reserve_bypass`
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

    /// States the base latency, which the effective goal follows.
    pub(crate) fn set_base_latency(&self, base: Duration) {
        self.goal.0.set_base_latency(base);
    }

    /// Gives the room of a request back: it was completed, parked or given up.
    pub(crate) fn leave(&self, demand: &Demand) {
        self.limit.leave(demand);
        #[cfg(feature = "history")]
        self.rate.0.completed(demand.cost);
    }

    /// Learns the base latency from a service time on a nearly idle disk. Does nothing while this process has
    /// a part of the disk: requests of other processes may have kept it busy.
    pub(crate) fn observe_idle_service(&self, now: Time, service_nanos: u64) {
        if self.controller.part.is_in_force() {
            return;
        }
        self.goal.0.observe_idle_service(now, service_nanos);
    }

    /// Whether the policy bounds the disk time in flight, by a window.
    #[inline]
    pub(crate) fn counts_disk_time(&self) -> bool {
        self.limit.is_window()
    }

    /// Takes room for a request, however much is in flight.
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

/// Settings, reports of the queues, and the status of the latency target.
impl Budget {
    /// Replaces the rates, and the prices of mixes.
    pub(crate) fn set_model(&self, model: &DiskModel) {
        self.goal.0.set_model(model);
        self.mix.0.set_prices(model.mix_prices());
    }

    /// The latency threshold for a request with this time of dispatch. `None` without a latency target, or if
    /// the disk was not loaded then.
    #[inline]
    pub(crate) fn threshold_of_load(&self, dispatched_at: Time) -> Option<Threshold> {
        self.service.0.threshold_of_load(dispatched_at)
    }

    /// Adds the sample of a queue.
    #[inline(never)]
    pub(crate) fn report(&self, now: Time, sample: Sample) {
        // the rate of a part says nothing about the whole disk
        let sample = if self.controller.part.is_in_force() { sample.unjudged() } else { sample };
        if let Some(period) = self.service.0.add(now, sample, self.mix.0.price()) {
            self.controller.figures_bound.end_period(period.speed_permille, period.waited);
        }
        self.goal.0.fade(now);
    }

    /// Passes the completions of a shard to the search for the window.
    #[inline(never)]
    pub(crate) fn report_to_knee(&self, now: Time, sample: &mut WindowSample) {
        if let Some(knee) = self.controller.knee()
            && !self.controller.part.is_in_force()
        {
            knee.report(now, sample, self.effective_goal());
        }
    }

    /// Counts what a queue has dispatched since its last report. The mix of reads and writes sets the price
    /// of later requests.
    #[inline(never)]
    pub(crate) fn note_mix(&self, now: Time, dispatched: Dispatched) {
        self.mix.0.note(now, dispatched, self.window());
    }

    /// Notes that work has to wait for the disk.
    pub(crate) fn refused(&self, now: Time) {
        self.service.0.refused(now);
    }

    /// The status of the latency target; `None` without one.
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

    /// Replaces or removes the latency target. Does nothing if the policy has no window, or if the target is
    /// in force already.
    pub(crate) fn set_latency_target(&self, target: Option<LatencyTarget>) {
        if self.counts_disk_time() && self.service.0.set_target(target) {
            self.controller.set_target(target);
        }
    }

    /// Notes that a request, overdue or not, completed after this time in the disk.
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

    /// The time in the disk after which a request is overdue, in nanoseconds.
    pub(crate) fn patience_nanos(&self, now: Time) -> u64 {
        self.overdue.patience_nanos(now, self.window())
    }

    /// Gives up an overdue request if that is allowed now. Returns the disk time that others lost by it.
    /// This is zero while the disk is silent, and for policies without a limit. The error is the time to try
    /// again.
    pub(crate) fn give_up(&self, now: Time, request: GivenUp) -> Result<DiskTime, Time> {
        let kept = self.overdue.give_up(now, self.window(), request)?;
        Ok(if self.limit.is_none() { DiskTime::ZERO } else { kept })
    }

    /// The window for requests that are not fresh.
    pub(crate) fn window_in_force(&self) -> DiskTime {
        DiskTime::from_units(self.limit_units(self.effective_goal()))
    }

    /// Sets the part of the disk that this process has, in millionths of the figures; `None` if it has the
    /// disk alone. The debt of the pace is rescaled to the new part.
    pub(crate) fn set_part(&self, now: Time, millionths: Option<u32>) {
        let (before, next) = self.controller.part.put_in_force(millionths);
        if let Rate::Pace(pace) = &self.rate.0
            && before != next
        {
            pace.rescale(now, before, next);
        }
    }

    /// Sets when the figures are a ceiling.
    pub(crate) fn set_ceiling(&self, ceiling: Ceiling) {
        self.controller.figures_bound.set(ceiling);
    }

    /// The counters of the group. A stall that lasts is counted until `now`.
    pub(crate) fn counters(&self, now: Time) -> GroupCounters {
        let mut counters = self.service.0.counters();
        self.overdue.add_stalls_to(&mut counters, now);
        counters
    }

    /// The rate of the disk when work last waited for it, in thousandths of its figures.
    pub(crate) fn speed_permille(&self) -> u64 {
        self.service.0.speed_permille()
    }
}
