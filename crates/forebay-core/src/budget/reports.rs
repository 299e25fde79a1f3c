//! What queues report of the disk, and what became of the latency target.

use super::knee::Knee;
use super::overdue::{DiskState, GivenUp};
use super::rate::Rate;
use super::service::{Sample, Threshold};
use super::{Budget, Ceiling, Dispatched, Overdue, WindowSample};
use crate::latency_target::{LatencyTarget, LatencyTargetStatus};
use crate::{DiskModel, DiskTime, GroupCounters, Time, saturating_nanos};

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
            self.service.0.totals.stalled(stalled);
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
        let window = self.window();
        let meanwhile = self.overdue.give_up(now, window, request)?;
        if meanwhile == DiskState::Stalled || self.limit.is_none() {
            return Ok(DiskTime::ZERO);
        }
        let in_disk_nanos = now.nanos_since(request.dispatched_at);
        Ok(Overdue::occupancy_cost(in_disk_nanos, request.cost, window))
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
        let mut counters = self.service.0.totals.counters();
        self.overdue.add_stalls_to(&mut counters, now);
        counters
    }

    /// What the disk did when work last waited for it, in thousandths of its figures' rate.
    pub(crate) fn speed_permille(&self) -> u64 {
        self.service.0.speed_permille()
    }
}
