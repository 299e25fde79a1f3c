//! What the queues have counted while a run goes on.

use forebay_core::{LoadStatus, QueueCounters, Time};
use forebay_load::recorder::MeasuredInterval;
use forebay_load::results::consumption::{BusiestSecond, DiskLook, disk_result};
use forebay_load::results::model::DiskResult;

use super::scheduler::Scheduler;
use super::shard::Shard;

/// How often the disk time dispatched is looked at.
const PERIOD_NANOS: u64 = 100_000_000;

/// Looks at what the queues have counted, ten times a second in the measured part of a run.
#[derive(Debug)]
pub(super) struct Watch {
    next: Time,
    /// What was seen when the measured part began.
    baseline: Option<DiskLook>,
    busiest: BusiestSecond,
}

impl Watch {
    pub(super) fn new(measured: MeasuredInterval) -> Self {
        Self { next: measured.from, baseline: None, busiest: BusiestSecond::default() }
    }

    /// When to look next.
    pub(super) fn next_time(&self) -> Time {
        self.next
    }

    /// Looks if it is time to.
    pub(super) fn look(&mut self, now: Time, shards: &[Shard], scheduler: &Scheduler) {
        if now < self.next {
            return;
        }
        self.next = now.plus_nanos(PERIOD_NANOS);
        let counted = counters(shards);
        self.busiest.look(now, counted.consumption);
        self.baseline.get_or_insert_with(|| look(now, counted, scheduler));
    }

    pub(super) fn disk_result(
        self,
        shards: &[Shard],
        scheduler: &Scheduler,
        measured: MeasuredInterval,
    ) -> DiskResult {
        let before = self.baseline.unwrap_or_default();
        let busiest = self.busiest.rate_max().unwrap_or_default();
        disk_result(&before, &look(measured.to, counters(shards), scheduler), measured, busiest)
    }
}

pub(super) fn look(now: Time, queues: QueueCounters, scheduler: &Scheduler) -> DiskLook {
    let groups = scheduler.groups.iter().map(|group| &group.group);
    DiskLook { queues, load: LoadStatus::of(groups, now) }
}

/// What all queues have counted.
pub(super) fn counters(shards: &[Shard]) -> QueueCounters {
    let mut sum = QueueCounters::default();
    let queues = shards.iter().flat_map(|shard| shard.driver.queues());
    queues.for_each(|queue| sum.merge(&queue.counters()));
    sum
}
