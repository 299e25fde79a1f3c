//! What the queues have counted while a run goes on.

use forebay_block::parts_in_flight;
use forebay_core::{LoadStatus, QueueCounters, Time};
use forebay_load::recorder::MeasuredInterval;
use forebay_load::results::MembersResult;
use forebay_load::results::consumption::{BusiestSecond, DiskSample, disk_result};
use forebay_load::results::model::{DiskResult, rounded};

use super::scheduler::Scheduler;
use super::shard::Shard;
use crate::disk::{MembersInFlight, SimDisk};

/// How often the disk time dispatched is looked at.
const PERIOD_NANOS: u64 = 100_000_000;

/// Looks at what the queues have counted, ten times a second in the measured part of a run.
#[derive(Debug, Default)]
pub(super) struct Watch {
    /// When to look next.
    pub(super) next: Time,
    /// What was seen when the measured part began.
    baseline: Option<DiskSample>,
    /// What the members of an array had in flight until then, as [`SimDisk::members`] says.
    members: MembersInFlight,
    busiest: BusiestSecond,
}

impl Watch {
    pub(super) fn new(measured: MeasuredInterval) -> Self {
        Self { next: measured.from, ..Self::default() }
    }

    /// Looks if it is time to.
    pub(super) fn look(
        &mut self,
        now: Time,
        shards: &[Shard],
        scheduler: &Scheduler,
        disk: &dyn SimDisk,
    ) {
        if now < self.next {
            return;
        }
        self.next = now.plus_nanos(PERIOD_NANOS);
        let counted = counters(shards);
        self.busiest.look(now, counted.consumption);
        if self.baseline.is_none() {
            self.members = disk.members(now);
        }
        self.baseline.get_or_insert_with(|| look(now, counted, scheduler));
    }

    pub(super) fn disk_result(
        self,
        shards: &[Shard],
        scheduler: &Scheduler,
        disk: &dyn SimDisk,
        measured: MeasuredInterval,
    ) -> DiskResult {
        let before = self.baseline.unwrap_or_default();
        let busiest = self.busiest.rate_max().unwrap_or_default();
        let MembersInFlight { nanos, fullest_nanos } = disk.members(measured.to);
        let since = |(after, before): (&u64, &u64)| after.saturating_sub(*before);
        let members: Vec<u64> = nanos.iter().zip(&self.members.nanos).map(since).collect();
        let fullest = fullest_nanos.saturating_sub(self.members.fullest_nanos);
        let members = members_in_flight(&members, fullest, measured);
        let after = look(measured.to, counters(shards), scheduler);
        DiskResult { members, ..disk_result(&before, &after, measured, busiest) }
    }
}

/// What the members of an array had in flight for these times, in nanoseconds; `None` where there
/// are none, or had nothing.
fn members_in_flight(
    nanos: &[u64],
    fullest_nanos: u64,
    measured: MeasuredInterval,
) -> Option<MembersResult> {
    let all = nanos.iter().map(|&of_member| of_member as f64).sum::<f64>();
    (all > 0.0 && measured.seconds() > 0.0).then(|| MembersResult {
        in_flight: rounded(all / 1e9 / measured.seconds(), 2),
        parts: parts_in_flight(nanos).into_iter().map(|part| rounded(part, 4)).collect(),
        fullest: rounded(fullest_nanos as f64 / all, 4),
    })
}

pub(super) fn look(now: Time, queues: QueueCounters, scheduler: &Scheduler) -> DiskSample {
    let groups = scheduler.groups.iter().map(|group| &group.group);
    DiskSample { queues, load: LoadStatus::of(groups, now) }
}

/// What all queues have counted.
pub(super) fn counters(shards: &[Shard]) -> QueueCounters {
    let mut sum = QueueCounters::default();
    let queues = shards.iter().flat_map(|shard| shard.driver.queues());
    queues.for_each(|queue| sum.merge(&queue.counters()));
    sum
}
