//! How even a job was in a run: its figures, and how far chance may have moved them.
//!
//! The parts of a run are joined in pairs, for neighbours are alike. A rate is as unsure as the
//! parts differ; a percentile as it moves when each part in turn is left out (the delete-a-group
//! jackknife), so that a few bad moments make it as unsure as they should.

use crate::recorder::buckets::{BUCKETS, bounds, bucket_of};
use crate::results::model::{ClassResult, IntervalResult};

/// Parts that are joined.
const JOINED: usize = 2;
/// With fewer parts nothing is known of how they differ.
pub(super) const PARTS_MIN: usize = 5;

/// The logarithm of a figure, and how unsure it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Known {
    pub(super) log: f64,
    pub(super) variance: f64,
    pub(super) degrees: f64,
}

/// A part of a run.
struct Part {
    bytes: f64,
    requests: u64,
    latencies: Vec<u64>,
}

/// The parts of what one job did.
pub(super) struct Parts(Vec<Part>);

impl Parts {
    /// None where the file has no parts, or not enough.
    pub(super) fn of(class: &ClassResult) -> Option<Self> {
        let parts: Option<Vec<Part>> = class.intervals.chunks(JOINED).map(joined).collect();
        parts.filter(|parts| parts.len() >= PARTS_MIN).map(Self)
    }

    /// Requests whose latencies are known.
    pub(super) fn latencies(&self) -> u64 {
        self.0.iter().map(|part| part.requests).sum()
    }

    /// Bytes per part.
    pub(super) fn throughput(&self) -> Option<Known> {
        let count = self.0.len() as f64;
        let mean = self.0.iter().map(|part| part.bytes).sum::<f64>() / count;
        let squares: f64 = self.0.iter().map(|part| (part.bytes / mean - 1.0).powi(2)).sum();
        let variance = squares / (count - 1.0) / count;
        (mean > 0.0).then(|| Known { log: mean.ln(), variance, degrees: count - 1.0 })
    }

    /// A percentile, as a part of all, of the latency in nanoseconds.
    pub(super) fn percentile(&self, part: f64) -> Option<Known> {
        let all = self.summed(None);
        let log = quantile(&all, part)?.ln();
        let without =
            (0..self.0.len()).map(|left| Some(quantile(&self.summed(Some(left)), part)?.ln()));
        let without: Vec<f64> = without.collect::<Option<_>>()?;
        let count = without.len() as f64;
        let mean = without.iter().sum::<f64>() / count;
        let squares: f64 = without.iter().map(|one| (one - mean).powi(2)).sum();
        Some(Known { log, variance: squares * (count - 1.0) / count, degrees: count - 1.0 })
    }

    /// The latencies of all parts but one.
    fn summed(&self, without: Option<usize>) -> Vec<u64> {
        let mut sum = vec![0; BUCKETS];
        let parts = self.0.iter().enumerate().filter(|(index, _)| Some(*index) != without);
        for (_, part) in parts {
            sum.iter_mut().zip(&part.latencies).for_each(|(sum, count)| *sum += count);
        }
        sum
    }
}

fn joined(intervals: &[IntervalResult]) -> Option<Part> {
    let mut latencies = vec![0; BUCKETS];
    for entry in intervals.iter().flat_map(|interval| interval.latency_ns.split_whitespace()) {
        let (ns, count) = entry.split_once(':')?;
        let (ns, count): (u64, u64) = (ns.parse().ok()?, count.parse().ok()?);
        latencies.iter_mut().skip(bucket_of(ns)).take(1).for_each(|sum| *sum += count);
    }
    let bytes = intervals.iter().map(|interval| interval.bytes as f64).sum();
    Some(Part { bytes, requests: latencies.iter().sum(), latencies })
}

/// A quantile, in nanoseconds, as if latencies were spread evenly within a bucket.
fn quantile(counts: &[u64], part: f64) -> Option<f64> {
    let all: u64 = counts.iter().sum();
    let rank = part * all as f64;
    let mut before = 0;
    for (bucket, &count) in counts.iter().enumerate() {
        if count > 0 && (before + count) as f64 >= rank {
            let (from, to) = bounds(bucket);
            let within = (rank - before as f64) / count as f64;
            return Some((from as f64 + (to - from) as f64 * within).max(1.0));
        }
        before += count;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_lies_within_its_bucket() {
        let mut counts = vec![0; BUCKETS];
        (1..=100_000_u64).for_each(|us| counts[bucket_of(us * 1000)] += 1);
        for part in [0.5, 0.9, 0.99, 0.999] {
            let found = quantile(&counts, part).unwrap();
            assert!((found / (part * 1e8) - 1.0).abs() < 0.01, "{part}: {found}");
        }
        assert_eq!(quantile(&[0; 4], 0.5), None);
    }
}
