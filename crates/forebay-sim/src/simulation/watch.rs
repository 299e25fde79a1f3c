//! What the queues have counted while a run goes on.

use forebay_core::{QueueCounters, Time};
use forebay_load::recorder::MeasuredInterval;
use forebay_load::results::consumption::{BusiestSecond, disk_result};
use forebay_load::results::model::DiskResult;

use super::shard::Shard;

/// How often the disk time dispatched is looked at.
const PERIOD_NANOS: u64 = 100_000_000;

/// Looks at what the queues have counted, ten times a second in the measured part of a run.
#[derive(Debug)]
pub(super) struct Watch {
    next: Time,
    /// What the queues had counted when the measured part began.
    baseline: Option<QueueCounters>,
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
    pub(super) fn look(&mut self, now: Time, shards: &[Shard]) {
        if now < self.next {
            return;
        }
        self.next = now.plus_nanos(PERIOD_NANOS);
        let counted = counters(shards);
        self.busiest.look(now, counted.consumption);
        self.baseline.get_or_insert(counted);
    }

    pub(super) fn disk_result(self, shards: &[Shard], measured: MeasuredInterval) -> DiskResult {
        let before = self.baseline.unwrap_or_default();
        let busiest = self.busiest.rate_max().unwrap_or_default();
        disk_result(&before, &counters(shards), measured, busiest)
    }
}

/// What all queues have counted.
fn counters(shards: &[Shard]) -> QueueCounters {
    let mut sum = QueueCounters::default();
    let queues = shards.iter().flat_map(|shard| shard.driver.queues());
    queues.for_each(|queue| sum.merge(&queue.counters()));
    sum
}
