//! What is told of the disk, and what became of the latency target.

use super::feedback::{Disk, Sample, Threshold};
use super::{Budget, Dispatched};
use crate::latency_target::{LatencyTarget, LatencyTargetStatus};
use crate::{DiskModel, GroupCounters, PRICE_ONE, Time};

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
        let threshold = self.feedback.0.threshold()?;
        self.feedback.0.met_load(dispatched_at).then_some(threshold)
    }

    /// What a shard has seen of the disk.
    pub(crate) fn tell(&self, now: Time, sample: Sample) {
        self.feedback.0.add(now, sample, &self.disk());
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
        self.feedback.0.status(&self.disk())
    }

    /// Another target, or none; only where there is a window to correct.
    pub(crate) fn set_latency_target(&self, target: Option<LatencyTarget>) {
        if self.counts_disk_time() {
            self.feedback.0.set_target(target);
        }
    }

    /// What was counted of the group.
    pub(crate) fn counters(&self) -> GroupCounters {
        self.feedback.0.counters()
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
