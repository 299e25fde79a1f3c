//! What the shards of a run have in common.

use forebay_core::{ClassId, DiskModel, DiskTime, Op, Time};
use forebay_driver::QueueClass;
use forebay_load::recorder::MeasuredInterval;

use super::alarms::Alarms;
use super::engine::Engine;
use super::trace::Tracer;
use crate::config::Polling;
use crate::invariants::Invariants;

/// The world around a shard.
pub(super) struct Environment {
    pub(super) engine: Engine,
    /// When each shard has its next turn.
    pub(super) alarms: Alarms,
    pub(super) polling: Polling,
    /// Whether turns begin by sending requests to the disk, and not by taking what it has finished.
    pub(super) takes_last: bool,
    /// From an event to the turn of the shard concerned, in nanoseconds.
    pub(super) wake_up_nanos: u64,
    pub(super) measured: MeasuredInterval,
    /// The classes of each I/O group in the order of the job file.
    pub(super) classes: Vec<Vec<ClassId>>,
    /// What requests are thought to cost.
    pub(super) model: DiskModel,
    /// What requests cost the disk in truth.
    pub(super) true_model: DiskModel,
    pub(super) counts: Counts,
    pub(super) tracer: Option<Tracer>,
    pub(super) invariants: Option<Invariants>,
}

/// What is counted over all shards.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    /// True disk time of the commands that succeeded in the measured part.
    pub(super) disk_time: DiskTime,
    /// Requests that were completed, warm-up included.
    pub(super) requests: u64,
    /// Parts that were dispatched and have not ended.
    pub(super) parts_in_flight: u64,
    pub(super) parts_in_flight_max: u64,
    /// Shards woken by other shards and by the timers of their queues, warm-up included.
    pub(super) wake_ups: u64,
    /// Commands that the disk has not finished.
    pub(super) commands_in_disk: u64,
}

impl Environment {
    /// A class of the job file as a queue knows it.
    pub(super) fn class(&self, queue: usize, class: usize) -> QueueClass {
        QueueClass { queue, id: self.classes[queue][class], holder: false }
    }

    /// The disk has done so much of what was thought to cost so much.
    pub(super) fn done(&mut self, now: Time, op: Op, bytes: u64, charged: DiskTime) {
        if now >= self.measured.from && now <= self.measured.to {
            let cost = if charged < self.model.cost(op, bytes) {
                self.true_model.sequential_cost(op, bytes)
            } else {
                self.true_model.cost(op, bytes)
            };
            self.counts.disk_time = self.counts.disk_time.plus(cost);
        }
    }

    /// Another shard's queue has named a shard to be woken.
    pub(super) fn wake_named(&mut self, now: Time, shard: usize) {
        self.counts.wake_ups += 1;
        self.wake(now, shard);
    }

    /// Gives a shard its turn once it has taken notice of what happens now.
    pub(super) fn wake(&mut self, now: Time, shard: usize) {
        self.alarms.at_the_latest(shard, now.plus_nanos(self.wake_up_nanos));
    }
}
