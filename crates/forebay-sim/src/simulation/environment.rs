//! What the shards of a run have in common.

use forebay_core::{ClassId, DiskModel, DiskTime, Op, Time};
use forebay_load::recorder::Measured;

use super::alarms::Alarms;
use super::config::Polling;
use super::trace::Tracer;
use crate::disk::{Command, SimDisk};
use crate::invariants::Invariants;

/// The world around a shard.
pub(super) struct Environment {
    pub(super) disk: Box<dyn SimDisk>,
    /// When each shard has its next turn.
    pub(super) alarms: Alarms,
    pub(super) polling: Polling,
    /// Whether turns begin by sending requests to the disk, and not by taking what it has finished.
    pub(super) takes_last: bool,
    /// From an event to the turn of the shard concerned, in nanoseconds.
    pub(super) wake_up_nanos: u64,
    pub(super) measured: Measured,
    /// The classes of each I/O group in the order of the job file.
    pub(super) classes: Vec<Vec<ClassId>>,
    /// What requests are thought to cost.
    pub(super) model: DiskModel,
    /// What requests cost the disk in truth.
    pub(super) true_model: DiskModel,
    /// True disk time of the commands that succeeded in the measured part.
    pub(super) worth: DiskTime,
    /// Requests that were completed, warm-up included.
    pub(super) requests: u64,
    pub(super) in_disk: u64,
    pub(super) in_disk_max: u64,
    /// Commands that the disk has not finished.
    pub(super) inside_disk: u64,
    pub(super) tracer: Option<Tracer>,
    pub(super) invariants: Option<Invariants>,
}

impl Environment {
    pub(super) fn submit(&mut self, now: Time, id: u64, command: Command) {
        self.in_disk += 1;
        self.inside_disk += 1;
        self.in_disk_max = self.in_disk_max.max(self.in_disk);
        self.disk.submit(now, id, command);
    }

    /// A command has come back from the disk.
    pub(super) fn came_back(&mut self, now: Time, op: Op, len: u64, ok: bool) {
        self.in_disk -= 1;
        if ok && now >= self.measured.from && now <= self.measured.to {
            self.worth = self.worth.plus(self.true_model.cost(op, len));
        }
    }

    /// Gives a shard its turn once it has taken notice of what happens now.
    pub(super) fn wake(&mut self, now: Time, shard: usize) {
        self.alarms.at_the_latest(shard, now.plus_nanos(self.wake_up_nanos));
    }
}
