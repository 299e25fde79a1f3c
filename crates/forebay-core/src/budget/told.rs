//! What is told of the disk, and what became of the latency target.

use super::feedback::{Disk, Sample, Threshold};
use super::overdue::Meanwhile;
use super::stops::GivenUp;
use super::{Budget, Dispatched, Overdue, WindowSample};
use crate::latency_target::{LatencyTarget, LatencyTargetStatus};
use crate::{DiskModel, DiskTime, GroupCounters, PRICE_ONE, Time};

impl Budget {
    /// Other rates, and other prices of mixes.
    pub(crate) fn set_model(&self, model: &DiskModel) {
        self.goal.0.set_model(model);
        self.mix.0.set_prices(model.mix_prices());
        if model.mix_prices().is_none() {
            self.feedback.0.set_price_of_mix(PRICE_ONE);
        }
    }

    /// What a request is measured against that was dispatched then, if it met a
    /// loaded disk.
    pub(crate) fn threshold_of_load(&self, dispatched_at: Time) -> Option<Threshold> {
        let mut threshold = self.feedback.0.threshold()?;
        threshold.in_disk |= self.controller.is_figures();
        self.feedback.0.met_load(dispatched_at).then_some(threshold)
    }

    /// What a shard has seen of the disk.
    pub(crate) fn tell(&self, now: Time, sample: Sample) {
        self.feedback.0.add(now, sample, &self.disk(), self.controller.is_figures());
    }

    /// Whether fresh requests find a larger window.
    #[inline]
    pub(crate) fn reserves_for_fresh(&self) -> bool {
        !self.controller.is_figures()
    }

    /// Whether completed requests are reported to the search for the window.
    #[inline]
    pub(crate) fn searches_knee(&self) -> bool {
        self.controller.knee().is_some()
    }

    /// Reports what a shard has completed to the search for the window.
    pub(crate) fn report_to_knee(&self, now: Time, sample: &mut WindowSample) {
        if let Some(knee) = self.controller.knee() {
            knee.report(now, sample, self.effective_goal());
        }
    }

    /// This went to the disk, of which the caller has not told yet: what it
    /// costs beside each other is the price of what follows.
    pub(crate) fn note_mix(&self, now: Time, dispatched: Dispatched) {
        let price = self.mix.0.note(now, dispatched, self.window());
        self.feedback.0.set_price_of_mix(price);
    }

    /// Work has to wait for the disk.
    pub(crate) fn refused(&self, now: Time) {
        self.feedback.0.refused(now);
    }

    /// What became of the latency target.
    pub(crate) fn latency_target(&self) -> Option<LatencyTargetStatus> {
        let status = self.feedback.0.status(&self.disk())?;
        Some(match self.controller.knee() {
            Some(knee) => LatencyTargetStatus {
                attainable: status.attainable && !knee.has_given_up(),
                window: self.window_in_force(),
                ..status
            },
            None => status,
        })
    }

    /// Another target, or none; only where there is a window to correct.
    pub(crate) fn set_latency_target(&self, target: Option<LatencyTarget>) {
        if self.counts_disk_time() {
            self.feedback.0.set_target(self.controller.set_target(target));
            self.goal.0.set_unstated_goal(self.controller.unstated_goal());
        }
    }

    /// A request has completed after so long, which may be overdue.
    pub(crate) fn completed(&self, now: Time, in_disk_nanos: u64) {
        if let Some(before) = self.overdue.completed(now, in_disk_nanos) {
            let stopped = self.overdue.learn(now, self.window(), in_disk_nanos, before);
            if stopped > 0 {
                self.feedback.0.stopped(stopped);
            }
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
        if meanwhile == Meanwhile::Silent || self.limit.is_none() {
            return Ok(DiskTime::ZERO);
        }
        let in_disk_nanos = now.nanos_since(request.dispatched_at);
        Ok(Overdue::occupancy_cost(in_disk_nanos, request.cost, window))
    }

    /// Most disk time that may be unfinished now when an ordinary request goes.
    pub(crate) fn window_in_force(&self) -> DiskTime {
        DiskTime::from_units(self.limit_units(self.effective_goal()))
    }

    /// The figures are a ceiling from now on, or prices alone.
    pub(crate) fn set_ceiling(&self, is_ceiling: bool) {
        self.controller.set_ceiling(is_ceiling);
        self.goal.0.set_unstated_goal(self.controller.unstated_goal());
    }

    /// What was counted of the group until `now`.
    pub(crate) fn counters(&self, now: Time) -> GroupCounters {
        let mut counters = self.feedback.0.counters();
        self.overdue.add_stops_to(&mut counters, now);
        counters
    }

    /// The speed in force, and what the disk delivered of its model.
    pub(crate) fn speeds_permille(&self) -> (u64, u64) {
        self.feedback.0.speeds_permille()
    }

    fn disk(&self) -> Disk {
        Disk {
            goal: self.effective_goal(),
            window: self.window(),
            extra: self.goal.0.extra(),
            base: self.base_latency(),
        }
    }
}
