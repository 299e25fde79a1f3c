//! What a served disk has done.

use std::time::Duration;

use forebay_core::Op;
use hdrhistogram::Histogram;

/// Requests of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Requests {
    /// How many were answered.
    pub answered: u64,
    /// Bytes of the answered ones; zero for flushes.
    pub bytes: u64,
    /// How many of the answered ones failed.
    pub failed: u64,
}

/// How a length of time was spread over the answered requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spread {
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
    pub requests: [Requests; Op::ALL.len()],
    /// Requests not answered yet.
    pub waiting: usize,
    /// From a request's arrival to its answer, inside the server.
    pub latency: Spread,
    /// How much later than due the answers left.
    pub lateness: Spread,
}

impl ServeStats {
    /// The requests of one kind.
    pub const fn of(&self, op: Op) -> Requests {
        self.requests[op.index()]
    }
}

/// One answered request.
pub(crate) struct Answered {
    pub(crate) op: Op,
    pub(crate) len: u64,
    pub(crate) failed: bool,
    pub(crate) latency_nanos: u64,
    pub(crate) late_nanos: u64,
}

/// Collects what [`ServeStats`] shows.
pub(crate) struct Tally {
    requests: [Requests; Op::ALL.len()],
    latency: Histogram<u64>,
    lateness: Histogram<u64>,
}

impl Tally {
    pub(crate) fn new() -> Self {
        Self { requests: Default::default(), latency: nanoseconds(), lateness: nanoseconds() }
    }

    pub(crate) fn record(&mut self, answered: &Answered) {
        let kind = &mut self.requests[answered.op.index()];
        kind.answered += 1;
        kind.bytes = kind.bytes.saturating_add(answered.len);
        kind.failed += u64::from(answered.failed);
        self.latency.saturating_record(answered.latency_nanos);
        self.lateness.saturating_record(answered.late_nanos);
    }

    pub(crate) fn stats(&self, waiting: usize) -> ServeStats {
        ServeStats {
            requests: self.requests,
            waiting,
            latency: spread(&self.latency),
            lateness: spread(&self.lateness),
        }
    }
}

/// From 1 ns to an hour, to 1 %.
fn nanoseconds() -> Histogram<u64> {
    #[expect(clippy::expect_used, reason = "the arguments are constants")]
    Histogram::new_with_bounds(1, 3_600_000_000_000, 2).expect("bounds that a histogram takes")
}

fn spread(histogram: &Histogram<u64>) -> Spread {
    let at = |quantile| Duration::from_nanos(histogram.value_at_quantile(quantile));
    Spread {
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
        let mut tally = Tally::new();
        for (op, len, failed) in
            [(Op::Read, 4096, false), (Op::Read, 512, true), (Op::Flush, 0, false)]
        {
            let (latency_nanos, late_nanos) = (500_000, 10_000);
            tally.record(&Answered { op, len, failed, latency_nanos, late_nanos });
        }
        let stats = tally.stats(2);
        assert_eq!(stats.of(Op::Read), Requests { answered: 2, bytes: 4608, failed: 1 });
        assert_eq!(stats.of(Op::Flush), Requests { answered: 1, bytes: 0, failed: 0 });
        assert_eq!(stats.of(Op::Write), Requests::default());
        assert_eq!(stats.waiting, 2);
        assert!(stats.latency.p50.abs_diff(Duration::from_micros(500)) < Duration::from_micros(5));
        assert!(stats.lateness.p99 < stats.latency.p50);
    }
}
