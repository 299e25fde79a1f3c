//! Where requests of each latency spent it.

use super::Completion;
use super::buckets::{BUCKETS, bucket_of};

/// The parts of the ways of some requests, summed, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LatencyParts {
    /// How many requests.
    pub requests: u64,
    /// From the intended start to the hand-over to the scheduler: they were not sent, since the
    /// generator had as many under way as it may, or ran late.
    pub backlog_ns: u64,
    /// From the hand-over to the dispatch.
    pub queue_ns: u64,
    /// From the dispatch to the completion.
    pub disk_ns: u64,
}

impl LatencyParts {
    fn add(&mut self, other: &Self) {
        self.requests += other.requests;
        self.backlog_ns = self.backlog_ns.saturating_add(other.backlog_ns);
        self.queue_ns = self.queue_ns.saturating_add(other.queue_ns);
        self.disk_ns = self.disk_ns.saturating_add(other.disk_ns);
    }
}

/// The ways of all requests by latency. Takes 20 kB.
#[derive(Clone, Debug)]
pub struct LatencyBreakdown(Vec<LatencyParts>);

impl LatencyBreakdown {
    pub(super) fn new() -> Self {
        Self(vec![LatencyParts::default(); BUCKETS])
    }

    pub(super) fn record(&mut self, request: &Completion) {
        let Completion { intended, enqueued, dispatched, completed, .. } = *request;
        let parts = LatencyParts {
            requests: 1,
            backlog_ns: enqueued.nanos_since(intended),
            queue_ns: dispatched.nanos_since(enqueued),
            disk_ns: completed.nanos_since(dispatched),
        };
        self.add(completed.nanos_since(intended), &parts);
    }

    /// A request was not done at the end, when it was so old: it counts as not sent, for most are.
    pub(super) fn unfinished(&mut self, age_ns: u64) {
        self.add(
            age_ns,
            &LatencyParts { requests: 1, backlog_ns: age_ns, ..LatencyParts::default() },
        );
    }

    fn add(&mut self, latency_ns: u64, parts: &LatencyParts) {
        self.0.iter_mut().skip(bucket_of(latency_ns)).take(1).for_each(|sum| sum.add(parts));
    }

    pub(super) fn merge(&mut self, other: &Self) {
        self.0.iter_mut().zip(&other.0).for_each(|(sum, more)| sum.add(more));
    }

    /// The parts of the latency of the requests around a quantile: of at least one in a hundred of all, as many on
    /// either side of it as there are.
    pub fn around(&self, quantile: f64) -> LatencyParts {
        let all: u64 = self.0.iter().map(|parts| parts.requests).sum();
        let half = (1.0 - quantile) / 2.0;
        let rank = |part: f64| (part * all as f64).ceil() as u64;
        let (first, last) = (rank(quantile - half), rank(quantile + half));
        let (mut sum, mut before) = (LatencyParts::default(), 0);
        for parts in &self.0 {
            let behind = before + parts.requests;
            if parts.requests > 0 && behind >= first && before < last.max(1) {
                sum.add(parts);
            }
            before = behind;
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use forebay_core::Time;

    #[test]
    fn the_parts_at_a_percentile_are_those_of_its_requests() {
        let mut breakdown = LatencyBreakdown::new();
        let request = |backlog: u64, queue: u64, disk: u64| {
            let at = Time::from_nanos;
            let (enqueued, dispatched) = (at(backlog), at(backlog + queue));
            let completed = at(backlog + queue + disk);
            let (intended, bytes, ok, flush) = (Time::ZERO, 1, true, false);
            Completion { intended, enqueued, dispatched, completed, bytes, ok, flush }
        };
        (0..980).for_each(|_| breakdown.record(&request(0, 10, 1000)));
        (0..15).for_each(|_| breakdown.record(&request(50_000, 10, 10_000)));
        (0..5).for_each(|_| breakdown.unfinished(9_000_000));
        let parts = breakdown.around(0.99);
        assert_eq!((parts.requests, parts.backlog_ns / 15), (15, 50_000));
        assert_eq!((parts.queue_ns / 15, parts.disk_ns / 15), (10, 10_000));
        let middle = breakdown.around(0.5);
        assert_eq!((middle.requests, middle.backlog_ns), (980, 0));
        assert_eq!(LatencyBreakdown::new().around(0.99), LatencyParts::default());
    }
}
