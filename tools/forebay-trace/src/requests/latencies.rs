//! How long requests took.

use std::time::Duration;

use hdrhistogram::Histogram;
use serde::Serialize;

/// Three digits.
const DIGITS: u8 = 3;

/// The latencies of many requests; none takes memory before the first.
#[derive(Clone, Debug, Default)]
pub(super) struct Latencies {
    nanos: Option<Histogram<u64>>,
    max: u64,
}

/// Percentiles of latencies in microseconds, to a thousandth; all 0 where there are none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct LatencySummary {
    /// How many.
    pub count: u64,
    /// The median.
    pub p50: f64,
    /// Of 100 requests 95 took no longer.
    pub p95: f64,
    /// Of 100 requests 99 took no longer.
    pub p99: f64,
    /// The longest, exactly.
    pub max: f64,
}

impl Latencies {
    pub(super) fn add(&mut self, latency: Duration) {
        let nanos = u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX);
        self.max = self.max.max(nanos);
        if self.nanos.is_none() {
            self.nanos = Histogram::new(DIGITS).ok();
        }
        if let Some(histogram) = &mut self.nanos {
            // it grows with its values; what is beyond its reach, centuries, is not counted
            let _ = histogram.record(nanos.max(1));
        }
    }

    pub(super) fn summary(&self) -> LatencySummary {
        let Some(nanos) = self.nanos.as_ref().filter(|nanos| !nanos.is_empty()) else {
            return LatencySummary::default();
        };
        let at = |quantile| nanos.value_at_quantile(quantile).min(self.max) as f64 / 1e3;
        let max = self.max as f64 / 1e3;
        LatencySummary { count: nanos.len(), p50: at(0.5), p95: at(0.95), p99: at(0.99), max }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_right_to_a_thousandth() {
        assert_eq!(Latencies::default().summary(), LatencySummary::default());
        let mut latencies = Latencies::default();
        for micros in 1..=1000 {
            latencies.add(Duration::from_micros(micros));
        }
        let summary = latencies.summary();
        assert_eq!(summary.count, 1000);
        for (found, is) in [
            (summary.p50, 500.0),
            (summary.p95, 950.0),
            (summary.p99, 990.0),
            (summary.max, 1000.0),
        ] {
            assert!((found - is).abs() <= 1.0, "{summary:?}");
        }
        latencies.add(Duration::MAX);
        latencies.add(Duration::ZERO);
        assert!(latencies.summary().count >= 1001);
    }
}
