//! What is written down about a phase.

use forebay_core::Time;
use forebay_load::recorder::Latencies;
use serde::{Deserialize, Serialize};

use crate::statistics::{confidence, mean};

/// The first part of a phase is left out, since the disk still fills.
const WARMUP: f64 = 0.15;
/// Fewer intervals than this say nothing about each other.
const INTERVALS_MIN: usize = 5;

/// Latencies of the requests of a phase, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LatencyFigures {
    /// How many there are.
    pub count: u64,
    /// The mean.
    pub mean: f64,
    /// The median.
    pub p50: f64,
    /// What 99 of 100 do not exceed.
    pub p99: f64,
    /// What 999 of 1000 do not exceed.
    pub p999: f64,
    /// The longest.
    pub max: f64,
}

impl LatencyFigures {
    fn of(latencies: &Latencies) -> Self {
        let us = |ns: u64| ns as f64 / 1e3;
        Self {
            count: latencies.count(),
            mean: latencies.mean_ns() / 1e3,
            p50: us(latencies.quantile_ns(0.5)),
            p99: us(latencies.quantile_ns(0.99)),
            p999: us(latencies.quantile_ns(0.999)),
            max: us(latencies.max_ns()),
        }
    }
}

/// What came of a phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Samples {
    /// When it began, in seconds since the target was made.
    pub began: f64,
    /// How long requests were sent.
    pub seconds: f64,
    /// Length of an interval of `counts`.
    pub interval: f64,
    /// Requests done in each interval.
    pub counts: Vec<u64>,
    /// Requests done while requests were sent.
    pub requests: u64,
    /// Bytes written or discarded.
    pub bytes_written: u64,
    /// Latencies of the requests.
    pub latency: LatencyFigures,
    /// How busy the threads were, from 0 to 1.
    pub processor: f64,
}

/// Requests per second, and half of the 95 % confidence interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Rate {
    /// The mean.
    pub mean: f64,
    /// How far the true mean may be away.
    pub margin: f64,
}

impl Samples {
    /// Of a phase that the target has no means for.
    pub(crate) fn none() -> Self {
        Self {
            began: 0.0,
            seconds: 0.0,
            interval: 1.0,
            counts: Vec::new(),
            requests: 0,
            bytes_written: 0,
            latency: LatencyFigures::default(),
            processor: 0.0,
        }
    }

    /// Requests per second, without the warm-up.
    pub fn rate(&self) -> Rate {
        let rates = self.rates();
        if rates.len() < INTERVALS_MIN {
            let mean = self.requests as f64 / self.seconds.max(1e-9);
            let part = 1.0 / (self.requests.max(1) as f64).sqrt();
            return Rate { mean, margin: mean * part };
        }
        Rate { mean: mean(&rates), margin: confidence(&rates) }
    }

    /// Requests per second in each interval after the warm-up.
    pub fn rates(&self) -> Vec<f64> {
        let skipped = (self.counts.len() as f64 * WARMUP).ceil() as usize;
        self.counts.iter().skip(skipped).map(|&count| count as f64 / self.interval).collect()
    }
}

/// Writes down what happens in a phase, or on one thread of it.
pub(crate) struct PhaseRecorder {
    began: Time,
    interval_nanos: u64,
    counts: Vec<u64>,
    warm_from: Time,
    latencies: Latencies,
    /// Of a phase that ends before it is warm.
    cold: Latencies,
}

impl PhaseRecorder {
    pub(crate) fn new(began: Time, seconds: f64) -> Option<Self> {
        let interval_nanos = ((seconds * 1e9 / 200.0) as u64).max(1_000_000);
        let warm_from = began.plus_nanos((seconds * 1e9 * WARMUP) as u64);
        let (latencies, cold) = (Latencies::new().ok()?, Latencies::new().ok()?);
        Some(Self { began, interval_nanos, counts: Vec::new(), warm_from, latencies, cold })
    }

    pub(crate) fn record(&mut self, began: Time, now: Time) {
        let index = (now.nanos_since(self.began) / self.interval_nanos) as usize;
        if self.counts.len() <= index {
            self.counts.resize(index + 1, 0);
        }
        if let Some(count) = self.counts.get_mut(index) {
            *count += 1;
        }
        let latencies = if now >= self.warm_from { &mut self.latencies } else { &mut self.cold };
        latencies.record(now.nanos_since(began));
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        if self.counts.len() < other.counts.len() {
            self.counts.resize(other.counts.len(), 0);
        }
        for (sum, count) in self.counts.iter_mut().zip(&other.counts) {
            *sum += count;
        }
        self.latencies.merge(&other.latencies);
        self.cold.merge(&other.cold);
    }

    /// The samples of a phase whose last request was sent at `ended`.
    pub(crate) fn samples(mut self, ended: Time, bytes_written: u64, processor: f64) -> Samples {
        let nanos = ended.nanos_since(self.began);
        self.counts.resize((nanos / self.interval_nanos) as usize, 0);
        let warm = self.latencies.count() >= self.cold.count();
        let seconds = nanos as f64 / 1e9;
        Samples {
            began: self.began.as_nanos() as f64 / 1e9,
            seconds,
            interval: self.interval_nanos as f64 / 1e9,
            requests: self.counts.iter().sum(),
            counts: self.counts,
            bytes_written,
            latency: LatencyFigures::of(if warm { &self.latencies } else { &self.cold }),
            processor,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    #[test]
    fn the_warm_up_and_what_came_late_do_not_count() {
        let mut recorder = PhaseRecorder::new(time(1000), 1.0).unwrap();
        for ms in 1..=1400 {
            // half as fast until it is warm
            if ms > 150 || ms % 2 == 0 {
                recorder.record(time(999 + ms), time(1000 + ms));
            }
        }
        let samples = recorder.samples(time(2000), 0, 0.0);
        assert_eq!(samples.rate(), Rate { mean: 1000.0, margin: 0.0 });
        assert_eq!(samples.latency.p50, 1000.0);
        assert_eq!(samples.counts.len(), 200);
    }

    #[test]
    fn a_phase_that_ends_at_once_has_a_rate_too() {
        let mut recorder = PhaseRecorder::new(Time::ZERO, 1.0).unwrap();
        (1..=10).for_each(|ms| recorder.record(time(ms - 1), time(ms)));
        let samples = recorder.samples(time(10), 0, 0.0);
        assert!((samples.rate().mean - 900.0).abs() <= 100.0, "{:?}", samples.rate());
        assert_eq!(samples.latency.count, 10);
    }
}
