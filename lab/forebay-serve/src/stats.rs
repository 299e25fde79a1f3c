//! What a served disk has done.

use std::time::Duration;

use forebay_core::Op;
use hdrhistogram::Histogram;

/// Requests of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestCounts {
    /// How many were completed.
    pub completed: u64,
    /// Bytes of the completed ones; zero for flushes.
    pub bytes: u64,
    /// How many of the completed ones failed.
    pub failed: u64,
}

/// How a length of time was spread over the completed requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LatencySummary {
    /// Mean.
    pub mean: Duration,
    /// Half took at most this.
    pub p50: Duration,
    /// 99 % took at most this.
    pub p99: Duration,
    /// The longest.
    pub max: Duration,
}

/// What a served disk has done since it was mounted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServeStats {
    /// By kind, in the order of [`Op::ALL`].
    pub requests: [RequestCounts; Op::ALL.len()],
    /// Requests not completed yet.
    pub in_flight: usize,
    /// From a request's arrival to its completion, inside the server.
    pub latency: LatencySummary,
    /// How much later than due the replies left.
    pub lateness: LatencySummary,
}

impl ServeStats {
    /// The requests of one kind.
    pub const fn of(&self, op: Op) -> RequestCounts {
        self.requests[op.index()]
    }
}

/// What is recorded of a completed request.
pub(crate) struct CompletionSample {
    pub(crate) op: Op,
    pub(crate) len: u64,
    pub(crate) failed: bool,
    pub(crate) latency_nanos: u64,
    pub(crate) late_nanos: u64,
}

/// Collects what [`ServeStats`] shows.
pub(crate) struct StatsRecorder {
    requests: [RequestCounts; Op::ALL.len()],
    latency: Histogram<u64>,
    lateness: Histogram<u64>,
}

impl StatsRecorder {
    pub(crate) fn new() -> Self {
        Self { requests: Default::default(), latency: nanoseconds(), lateness: nanoseconds() }
    }

    pub(crate) fn record(&mut self, sample: &CompletionSample) {
        let kind = &mut self.requests[sample.op.index()];
        kind.completed += 1;
        kind.bytes = kind.bytes.saturating_add(sample.len);
        kind.failed += u64::from(sample.failed);
        self.latency.saturating_record(sample.latency_nanos);
        self.lateness.saturating_record(sample.late_nanos);
    }

    pub(crate) fn stats(&self, in_flight: usize) -> ServeStats {
        ServeStats {
            requests: self.requests,
            in_flight,
            latency: summary(&self.latency),
            lateness: summary(&self.lateness),
        }
    }
}

/// From 1 ns to an hour, to 1 %.
fn nanoseconds() -> Histogram<u64> {
    #[expect(clippy::expect_used, reason = "the arguments are constants")]
    Histogram::new_with_bounds(1, 3_600_000_000_000, 2).expect("bounds that a histogram takes")
}

fn summary(histogram: &Histogram<u64>) -> LatencySummary {
    let at = |quantile| Duration::from_nanos(histogram.value_at_quantile(quantile));
    LatencySummary {
        mean: Duration::from_secs_f64(histogram.mean() * 1e-9),
        p50: at(0.5),
        p99: at(0.99),
        max: Duration::from_nanos(histogram.max()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_counted_by_kind() {
        let mut recorder = StatsRecorder::new();
        for (op, len, failed) in
            [(Op::Read, 4096, false), (Op::Read, 512, true), (Op::Flush, 0, false)]
        {
            let (latency_nanos, late_nanos) = (500_000, 10_000);
            recorder.record(&CompletionSample { op, len, failed, latency_nanos, late_nanos });
        }
        let stats = recorder.stats(2);
        assert_eq!(stats.of(Op::Read), RequestCounts { completed: 2, bytes: 4608, failed: 1 });
        assert_eq!(stats.of(Op::Flush), RequestCounts { completed: 1, bytes: 0, failed: 0 });
        assert_eq!(stats.of(Op::Write), RequestCounts::default());
        assert_eq!(stats.in_flight, 2);
        assert!(stats.latency.p50.abs_diff(Duration::from_micros(500)) < Duration::from_micros(5));
        assert!(stats.lateness.p99 < stats.latency.p50);
    }
}
