//! What the queues of a disk have counted in a run: disk time per second, and what held requests
//! back.

use std::collections::VecDeque;

use forebay_core::{Blocked, DiskTime, GroupCounters, LoadStatus, QueueCounters, Time};

use super::model::{DiskResult, LatencyTargetResult, StallsResult, WAITED_MIN, rounded};
use crate::recorder::MeasuredInterval;

const SECOND_NANOS: u64 = 1_000_000_000;

/// Seconds of disk time per second of `span`; 0 if that is empty.
pub fn per_second(disk_time: DiskTime, span: MeasuredInterval) -> f64 {
    let seconds = disk_time.units() as f64 / DiskTime::UNITS_PER_SECOND as f64;
    if span.seconds() > 0.0 { seconds / span.seconds() } else { 0.0 }
}

/// What was seen of a disk at one moment.
#[derive(Clone, Debug, Default)]
pub struct DiskSample {
    /// What its queues together had counted.
    pub queues: QueueCounters,
    /// Whether it did what its figures say.
    pub load: LoadStatus,
}

/// The result of a disk that looked like this `before` and `after` the measured part of a run, and
/// whose queues dispatched `consumption_max` in its busiest second.
pub fn disk_result(
    DiskSample { queues: before, load: load_before }: &DiskSample,
    DiskSample { queues: after, load }: &DiskSample,
    measured: MeasuredInterval,
    consumption_max: f64,
) -> DiskResult {
    let mean = per_second(after.consumption.minus(before.consumption), measured);
    let blocked = |reason: Blocked| {
        let [before, after] =
            [before, after].map(|counters| counters.blocked_nanos[reason.index()]);
        let nanos = after.saturating_sub(before);
        (reason.name().to_owned(), rounded(nanos as f64 / 1e9, 3))
    };
    let counted = load.counters.since(&load_before.counters);
    let waited = counted.waited_nanos as f64 / 1e9;
    let permille = counted.speed_permille().filter(|_| waited >= measured.seconds() * WAITED_MIN);
    DiskResult {
        consumption_mean: rounded(mean, 4),
        consumption_max: rounded(consumption_max.max(mean), 4),
        flow_ratio: after.flow_ratio_permille as f64 / 1000.0,
        in_flight_max: after.in_disk_max.into(),
        dispatch_blocked: Blocked::ALL.into_iter().map(blocked).collect(),
        members: None,
        wake_ups: Some(after.wake_ups.saturating_sub(before.wake_ups)),
        speed: permille.map(|permille| permille as f64 / 1000.0),
        waited_seconds: permille.map(|_| rounded(waited, 3)),
        stalls: stalls(&counted),
        latency_target: latency_target(load, &counted, measured),
    }
}

fn stalls(counted: &GroupCounters) -> Option<StallsResult> {
    let seconds = |nanos: u64| rounded(nanos as f64 / 1e9, 3);
    (counted.stalls > 0).then(|| StallsResult {
        count: counted.stalls,
        seconds: seconds(counted.stalled_nanos),
        longest_seconds: seconds(counted.stall_nanos_max),
        overdue: counted.stall_overdue,
    })
}

/// What became of the latency target, of which so much was counted.
fn latency_target(
    load: &LoadStatus,
    counted: &GroupCounters,
    measured_in: MeasuredInterval,
) -> Option<LatencyTargetResult> {
    let status = load.target?;
    let GroupCounters { measured, over_target: over, .. } = *counted;
    let allowed = u64::from(1000 - status.target.permille());
    Some(LatencyTargetResult {
        target: status.target.to_string(),
        latency_us: status.target.latency().as_nanos() as f64 / 1e3,
        below_base: status.below_base,
        measured,
        over,
        holds: counted.keeps_target(allowed, measured_in.to.nanos_since(measured_in.from)),
        attainable: status.attainable,
        window_us: rounded(status.window.as_nanos_ceil() as f64 / 1e3, 1),
    })
}

/// The most disk time dispatched in any second, by sampling the total now and then.
#[derive(Clone, Debug, Default)]
pub struct BusiestSecond {
    /// What was dispatched by when, in the last second.
    samples: VecDeque<(Time, DiskTime)>,
    rate_max: Option<f64>,
}

impl BusiestSecond {
    /// So much was dispatched by `now`.
    pub fn look(&mut self, now: Time, dispatched: DiskTime) {
        self.samples.push_back((now, dispatched));
        let is_second = |&(then, _): &(Time, DiskTime)| now.nanos_since(then) >= SECOND_NANOS;
        while self.samples.get(1).is_some_and(is_second) {
            self.samples.pop_front();
        }
        if self.samples.front().is_some_and(is_second) {
            let rate = self.rate();
            self.rate_max = Some(self.rate_max.map_or(rate, |max| max.max(rate)));
        }
    }

    /// Seconds of disk time per second; `None` before a second is over.
    pub fn rate_max(&self) -> Option<f64> {
        self.rate_max
    }

    /// The same of the last second, or of all the time if that is shorter.
    pub fn rate(&self) -> f64 {
        let (Some(&(from, before)), Some(&(to, after))) =
            (self.samples.front(), self.samples.back())
        else {
            return 0.0;
        };
        per_second(after.minus(before), MeasuredInterval { from, to })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn busiest(samples: &[(u64, u64)]) -> f64 {
        let mut busiest = BusiestSecond::default();
        for &(at_ms, dispatched_ms) in samples {
            let dispatched = DiskTime::from_nanos(dispatched_ms * 1_000_000);
            busiest.look(Time::from_nanos(at_ms * 1_000_000), dispatched);
        }
        busiest.rate_max().unwrap_or_else(|| busiest.rate())
    }

    #[test]
    fn the_busiest_second_may_begin_at_any_look() {
        let samples = [(0, 0), (500, 100), (1000, 200), (1500, 700), (2000, 1200), (3000, 1300)];
        assert_eq!(busiest(&samples), 1.0);
    }

    #[test]
    fn less_than_a_second_is_taken_whole() {
        assert_eq!(busiest(&[(0, 0), (100, 90), (400, 100)]), 0.25);
        assert_eq!(busiest(&[]), 0.0);
    }
}
