//! What the queues have counted while a run goes on.

use std::collections::{BTreeMap, VecDeque};

use forebay_core::{Blocked, DiskTime, Time};
use forebay_load::recorder::MeasuredInterval;
use forebay_load::results::model::{DiskResult, rounded};

use super::shard::Shard;

/// How often the disk time dispatched is looked at.
const PERIOD_NANOS: u64 = 100_000_000;
const SECOND_NANOS: u64 = 1_000_000_000;

/// Looks at what the queues have counted, ten times a second in the measured part of a run.
#[derive(Debug)]
pub(super) struct Watch {
    next: Time,
    /// What the queues had counted when the measured part began.
    baseline: Option<(DiskTime, [u64; Blocked::ALL.len()])>,
    /// What was dispatched by when, in the last second.
    looks: VecDeque<(Time, DiskTime)>,
    /// The most disk time dispatched in any second, in seconds.
    busiest: f64,
}

impl Watch {
    pub(super) fn new(measured: MeasuredInterval) -> Self {
        let looks = VecDeque::with_capacity(16);
        Self { next: measured.from, baseline: None, looks, busiest: 0.0 }
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
        let counted = sum(shards);
        self.baseline.get_or_insert(counted);
        self.looks.push_back((now, counted.0));
        let is_second = |&(then, _): &(Time, DiskTime)| now.nanos_since(then) >= SECOND_NANOS;
        while self.looks.get(1).is_some_and(is_second) {
            self.looks.pop_front();
        }
        if let Some(&first) = self.looks.front().filter(|look| is_second(look)) {
            let span = MeasuredInterval { from: first.0, to: now };
            self.busiest = self.busiest.max(per_second(counted.0.minus(first.1), span));
        }
    }

    pub(super) fn disk_result(&self, shards: &[Shard], measured: MeasuredInterval) -> DiskResult {
        let (before, blocked_before) = self.baseline.unwrap_or_default();
        let (after, blocked_after) = sum(shards);
        let mean = per_second(after.minus(before), measured);
        let blocked = |reason: Blocked| {
            let index = reason.index();
            let nanos = blocked_after[index].saturating_sub(blocked_before[index]);
            (reason.name().to_owned(), rounded(nanos as f64 / 1e9, 3))
        };
        let queues = shards.iter().flat_map(|shard| shard.driver.queues());
        let flow_ratio = queues.map(|queue| queue.counters().flow_ratio_permille).max();
        DiskResult {
            consumption_mean: rounded(mean, 4),
            consumption_max: rounded(self.busiest.max(mean), 4),
            flow_ratio: flow_ratio.unwrap_or(1000) as f64 / 1000.0,
            in_flight_max: 0,
            dispatch_blocked: Blocked::ALL.into_iter().map(blocked).collect::<BTreeMap<_, _>>(),
        }
    }
}

fn sum(shards: &[Shard]) -> (DiskTime, [u64; Blocked::ALL.len()]) {
    let mut sum = (DiskTime::ZERO, [0; Blocked::ALL.len()]);
    for (consumption, blocked_nanos) in shards.iter().map(Shard::counters) {
        sum.0 = sum.0.plus(consumption);
        for (sum, nanos) in sum.1.iter_mut().zip(blocked_nanos) {
            *sum += nanos;
        }
    }
    sum
}

/// Seconds of disk time per second.
pub(super) fn per_second(disk_time: DiskTime, span: MeasuredInterval) -> f64 {
    let seconds = disk_time.units() as f64 / DiskTime::UNITS_PER_SECOND as f64;
    if span.seconds() > 0.0 { seconds / span.seconds() } else { 0.0 }
}
