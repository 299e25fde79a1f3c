//! A histogram of latencies.

use hdrhistogram::{CreationError, Histogram};

/// The longest latency that is distinguished from longer ones, in nanoseconds: one hour.
const LATENCY_NS_MAX: u64 = 3_600 * 1_000_000_000;

/// Latencies in nanoseconds: percentiles within 0.1 %, mean and maximum exactly.
///
/// All memory, 135 kB, is taken when it is made; recording allocates nothing.
#[derive(Clone, Debug)]
pub struct Latencies {
    histogram: Histogram<u32>,
    total_ns: u128,
    max_ns: u64,
}

impl Latencies {
    /// No latencies yet.
    ///
    /// # Errors
    /// Never on a machine that can address the memory: the bounds are fixed ones.
    pub fn new() -> Result<Self, CreationError> {
        Self::with_digits(3)
    }

    /// No latencies yet, and percentiles within 1 % only: 18 kB.
    pub(super) fn coarse() -> Result<Self, CreationError> {
        Self::with_digits(2)
    }

    fn with_digits(digits: u8) -> Result<Self, CreationError> {
        let histogram = Histogram::new_with_bounds(1, LATENCY_NS_MAX, digits)?;
        Ok(Self { histogram, total_ns: 0, max_ns: 0 })
    }

    /// Adds a latency of `ns` nanoseconds.
    pub fn record(&mut self, ns: u64) {
        self.histogram.saturating_record(ns);
        self.total_ns += u128::from(ns);
        self.max_ns = self.max_ns.max(ns);
    }

    /// Adds the latencies of `other`.
    pub fn merge(&mut self, other: &Self) {
        for bucket in other.histogram.iter_recorded() {
            let ns = bucket.value_iterated_to();
            self.histogram.saturating_record_n(ns, bucket.count_at_value());
        }
        self.total_ns += other.total_ns;
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    /// Forgets all latencies.
    pub fn clear(&mut self) {
        self.histogram.reset();
        self.total_ns = 0;
        self.max_ns = 0;
    }

    /// How many latencies there are.
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// How many took no longer than this many nanoseconds.
    pub fn count_within(&self, ns: u64) -> u64 {
        self.histogram.count_between(0, ns.min(LATENCY_NS_MAX))
    }

    /// The mean in nanoseconds, 0 if there are none.
    pub fn mean_ns(&self) -> f64 {
        let count = self.count();
        if count == 0 { 0.0 } else { self.total_ns as f64 / count as f64 }
    }

    /// The latency in nanoseconds that the part `quantile` (0 to 1) of all do not exceed, 0 if
    /// there are none.
    pub fn quantile_ns(&self, quantile: f64) -> u64 {
        self.histogram.value_at_quantile(quantile).min(self.max_ns)
    }

    /// The longest in nanoseconds, 0 if there are none.
    pub fn max_ns(&self) -> u64 {
        self.max_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn latencies(ns: impl IntoIterator<Item = u64>) -> Latencies {
        let mut latencies = Latencies::new().unwrap();
        ns.into_iter().for_each(|ns| latencies.record(ns));
        latencies
    }

    #[test]
    fn nothing_recorded_is_all_zero() {
        let none = latencies([]);
        assert_eq!((none.count(), none.quantile_ns(0.99), none.max_ns()), (0, 0, 0));
        assert_eq!(none.mean_ns(), 0.0);
    }

    #[test]
    fn a_constant_latency_is_told_exactly() {
        let constant = latencies([1_000_000; 10]);
        assert_eq!(constant.quantile_ns(0.5), 1_000_000);
        assert_eq!(constant.max_ns(), 1_000_000);
        assert_eq!(constant.mean_ns(), 1e6);
    }

    #[test]
    fn percentiles_are_within_a_thousandth() {
        let spread = latencies((1..=100_000).map(|us| us * 1_000));
        for (quantile, exact) in [(0.5, 50e6), (0.99, 99e6), (0.999, 99.9e6)] {
            let found = spread.quantile_ns(quantile) as f64;
            assert!((found / exact - 1.0).abs() < 0.001, "{quantile}: {found}, not {exact}");
        }
    }

    #[test]
    fn values_within_a_bound_are_counted() {
        let spread = latencies((1..=1000).map(|us| us * 1_000));
        let within = [0, 500_000, u64::MAX].map(|ns| spread.count_within(ns));
        assert!(within[0] == 0 && within[1].abs_diff(500) <= 1 && within[2] == 1000, "{within:?}");
    }

    #[test]
    fn merging_is_as_recording_into_one() {
        let mut merged = latencies((1..1000).map(|n| n * 977));
        merged.merge(&latencies((1..1000).map(|n| n * 1013)));
        let one = latencies((1..1000).flat_map(|n| [n * 977, n * 1013]));
        assert_eq!(merged.histogram, one.histogram);
        assert_eq!((merged.total_ns, merged.max_ns), (one.total_ns, one.max_ns));
        merged.clear();
        assert_eq!(merged.count(), 0);
    }

    #[test]
    fn latencies_beyond_an_hour_stay_in_order_and_in_memory() {
        let long = latencies([1, u64::MAX]);
        assert_eq!(long.max_ns(), u64::MAX);
        assert!(long.quantile_ns(1.0) >= LATENCY_NS_MAX);
        assert!(long.histogram.distinct_values() * 4 < 200_000);
    }
}
