//! What is written down about a phase.

use std::ops::Range;

use forebay_core::Time;
use forebay_load::recorder::Latencies;
use serde::{Deserialize, Serialize};

use crate::stalls::Stalls;
use crate::statistics::{confidence, mean};

/// The first part of a phase is left out, since the disk still fills.
const WARMUP: f64 = 0.15;
/// Fewer intervals than this say nothing about each other.
const INTERVALS_MIN: usize = 5;
/// A phase is cut into this many parts to see how uneven it is.
const TENTHS: usize = 10;
/// A disk stands still where nothing comes back for this many times the median of its latencies.
const STALL_TIMES: f64 = 10.0;

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

/// From one completion to another.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Span {
    /// Requests done after the first one, the last one included.
    pub requests: u64,
    /// How long that took.
    pub seconds: f64,
    /// The seconds of it in which the disk was stalled.
    #[serde(default, rename = "stood_still")]
    pub stalled_seconds: f64,
}

/// What came of a phase.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
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
    /// From the last completion of the warm-up to the last one while requests were sent, or to the
    /// first behind a stall that began then: no part of a request is lost at its ends, as it is at
    /// those of intervals.
    #[serde(default)]
    pub warm: Option<Span>,
    /// Half of the 95 % confidence interval of the rate, as a part of it: by tenths of that span,
    /// each from one completion to another, since few requests are no whole number in each of its
    /// intervals.
    #[serde(default)]
    pub margin: Option<f64>,
    /// When the disk stood still.
    #[serde(default)]
    pub stalls: Stalls,
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
        Self { interval: 1.0, ..Self::default() }
    }

    /// The time in which what counts was done, in seconds.
    pub(crate) fn span_seconds(&self) -> f64 {
        self.warm.map_or(self.seconds, |span| span.seconds)
    }

    /// Requests per second, without the warm-up, while the disk did not stand still: what requests
    /// of a kind cost, alongside others.
    pub fn rate(&self) -> Rate {
        self.rate_within(|span| span.seconds - span.stalled_seconds)
    }

    /// The same, with a margin that counts no part of a request.
    pub(crate) fn rate_of_spans(&self) -> Rate {
        let rate = self.rate();
        self.margin.map_or(rate, |part| Rate { margin: rate.mean * part, ..rate })
    }

    /// The same in all the time that it took.
    pub(crate) fn rate_in_all(&self) -> Rate {
        self.rate_within(|span| span.seconds)
    }

    fn rate_within(&self, seconds: impl Fn(&Span) -> f64) -> Rate {
        let rates = self.rates();
        let by_span = self.warm.map(|span| span.requests as f64 / seconds(&span));
        if rates.len() < INTERVALS_MIN {
            let whole = self.requests as f64 / self.seconds.max(1e-9);
            let part = 1.0 / (self.requests.max(1) as f64).sqrt();
            let mean = by_span.unwrap_or(whole);
            return Rate { mean, margin: mean * part };
        }
        Rate { mean: by_span.unwrap_or_else(|| mean(&rates)), margin: confidence(&rates) }
    }

    /// Requests per second in each interval after the warm-up.
    pub fn rates(&self) -> Vec<f64> {
        self.counts
            .iter()
            .skip(warm_from(self.counts.len()))
            .map(|&count| count as f64 / self.interval)
            .collect()
    }
}

/// The first of this many intervals that counts.
fn warm_from(intervals: usize) -> usize {
    (intervals as f64 * WARMUP).ceil() as usize
}

/// Writes down what happens in a phase, or on one thread of it.
pub(crate) struct PhaseRecorder {
    began: Time,
    interval_nanos: u64,
    counts: Vec<u64>,
    /// The last completion in each interval, in nanoseconds since the phase began.
    last: Vec<u64>,
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
        let (counts, last) = (Vec::new(), Vec::new());
        Some(Self { began, interval_nanos, counts, last, warm_from, latencies, cold })
    }

    pub(crate) fn record(&mut self, began: Time, now: Time) {
        let at = now.nanos_since(self.began);
        let index = (at / self.interval_nanos) as usize;
        self.reach(index + 1);
        if let (Some(count), Some(last)) = (self.counts.get_mut(index), self.last.get_mut(index)) {
            *count += 1;
            *last = at.max(*last);
        }
        let latencies = if now >= self.warm_from { &mut self.latencies } else { &mut self.cold };
        latencies.record(now.nanos_since(began));
    }

    /// Has at least this many intervals.
    fn reach(&mut self, intervals: usize) {
        if self.counts.len() < intervals {
            self.counts.resize(intervals, 0);
            self.last.resize(intervals, 0);
        }
    }

    /// Where intervals lie between completions in which nothing came back, for many times what half
    /// of the requests take at most: the first of them, and the one in which something did.
    fn stalls(&self, p50_us: f64) -> Vec<Range<usize>> {
        let least = p50_us * 1e3 * STALL_TIMES / self.interval_nanos as f64;
        let mut stalls = Vec::new();
        let mut free = 0;
        for (index, _) in self.counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            if (index - free) as f64 > least {
                stalls.push(free..index);
            }
            free = index + 1;
        }
        stalls
    }

    /// From the last completion of the warm-up to the last one in this many intervals, or to the
    /// first behind the last stall.
    fn warm(&self, intervals: usize, stalls: &[Range<usize>]) -> Option<Span> {
        let until = stalls.last().map_or(intervals, |last| intervals.max(last.end + 1));
        let counts = self.counts.get(..until)?;
        // a phase that a stall made longer was warm as soon as others
        let planned = self.warm_from.nanos_since(self.began) / self.interval_nanos;
        let (cold, warm) = counts.split_at_checked(warm_from(intervals).min(planned as usize))?;
        let last_cold = self.last.get(..cold.len())?.iter().max().copied().unwrap_or(0);
        let last = self.last.get(..until)?.iter().max().copied().unwrap_or(0);
        let (requests, nanos) = (warm.iter().sum(), last.saturating_sub(last_cold));
        let within = stalls.iter().filter(|stall| stall.start >= cold.len());
        let stalled_nanos =
            within.map(Range::len).sum::<usize>() as f64 * self.interval_nanos as f64;
        let (seconds, stalled_seconds) = (nanos as f64 / 1e9, stalled_nanos / 1e9);
        (stalled_seconds < seconds).then_some(Span { requests, seconds, stalled_seconds })
    }

    /// How far the rate of this many intervals may be wrong, as a part of it.
    fn margin(&self, intervals: usize, stalls: &[Range<usize>]) -> Option<f64> {
        let from = warm_from(intervals);
        let mut before = self.last.get(..from)?.iter().max().copied().unwrap_or(0);
        let mut rates = Vec::new();
        for part in 0..TENTHS {
            let [begin, end] =
                [part, part + 1].map(|part| from + (intervals - from) * part / TENTHS);
            let last = self.last.get(begin..end)?.iter().max().copied().unwrap_or(0);
            let requests: u64 = self.counts.get(begin..end)?.iter().sum();
            let stopped = stalls
                .iter()
                .map(|stall| stall.end.min(end).saturating_sub(stall.start.max(begin)));
            let stopped = stopped.sum::<usize>() as u64 * self.interval_nanos;
            let nanos = last.saturating_sub(before).saturating_sub(stopped);
            if nanos > 0 {
                rates.push(requests as f64 / nanos as f64);
                before = last;
            }
        }
        (rates.len() >= INTERVALS_MIN).then(|| confidence(&rates) / mean(&rates))
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.reach(other.counts.len());
        for (sum, count) in self.counts.iter_mut().zip(&other.counts) {
            *sum += count;
        }
        for (last, other) in self.last.iter_mut().zip(&other.last) {
            *last = (*last).max(*other);
        }
        self.latencies.merge(&other.latencies);
        self.cold.merge(&other.cold);
    }

    /// The samples of a phase whose last request was sent at `ended`.
    pub(crate) fn samples(mut self, ended: Time, bytes_written: u64, processor: f64) -> Samples {
        let nanos = ended.nanos_since(self.began);
        let intervals = (nanos / self.interval_nanos) as usize;
        let interval = self.interval_nanos as f64 / 1e9;
        let warm = self.latencies.count() >= self.cold.count();
        let latency = LatencyFigures::of(if warm { &self.latencies } else { &self.cold });
        self.reach(intervals);
        // what begins later has too few requests left to come back
        let stalls =
            self.stalls(latency.p50).into_iter().filter(|stall| stall.start <= intervals + 1);
        let stalls: Vec<Range<usize>> = stalls.collect();
        let span = self.warm(intervals, &stalls);
        let margin = self.margin(intervals, &stalls);
        self.counts.truncate(intervals);
        Samples {
            began: self.began.as_nanos() as f64 / 1e9,
            seconds: nanos as f64 / 1e9,
            interval,
            requests: self.counts.iter().sum(),
            warm: span,
            margin,
            stalls: Stalls::of(&stalls, interval),
            counts: self.counts,
            bytes_written,
            latency,
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
        let Rate { mean, margin } = samples.rate();
        assert!((mean - 1000.0).abs() < 2.0 && margin == 0.0, "{mean} +- {margin}");
        assert_eq!(samples.latency.p50, 1000.0);
        assert_eq!(samples.counts.len(), 200);
    }

    #[test]
    fn a_rate_of_few_requests_loses_no_part_of_one() {
        for (apart, at_once) in [(7, 1), (23, 1), (23, 4), (31, 8)] {
            let mut recorder = PhaseRecorder::new(Time::ZERO, 1.0).unwrap();
            for done in 1..=1000 / apart {
                (0..at_once).for_each(|_| recorder.record(Time::ZERO, time(done * apart)));
            }
            let Rate { mean, margin } = recorder.samples(time(1000), 0, 0.0).rate_of_spans();
            let truth = at_once as f64 * 1000.0 / apart as f64;
            assert!((mean / truth - 1.0).abs() < 1e-9, "{mean} is not {truth}");
            assert!(margin < truth * 1e-9, "{margin}");
        }
    }

    #[test]
    fn a_phase_that_ends_at_once_has_a_rate_too() {
        let mut recorder = PhaseRecorder::new(Time::ZERO, 1.0).unwrap();
        (1..=10).for_each(|ms| recorder.record(time(ms - 1), time(ms)));
        let samples = recorder.samples(time(10), 0, 0.0);
        assert!((samples.rate().mean - 900.0).abs() <= 100.0, "{:?}", samples.rate());
        assert_eq!(samples.latency.count, 10);
    }

    /// 1 request per ms, half a second of them, and a hang that nothing comes back from until
    /// `ends`; what waited comes at once then.
    fn hung(from: u64, ends: u64) -> Samples {
        let mut recorder = PhaseRecorder::new(Time::ZERO, 0.5).unwrap();
        (1..=from).for_each(|ms| recorder.record(time(ms - 1), time(ms)));
        (ends + 1..=500).for_each(|ms| recorder.record(time(ms - 1), time(ms)));
        (0..4).for_each(|_| recorder.record(time(from), time(ends)));
        recorder.samples(time(500), 0, 0.0)
    }

    #[test]
    fn a_hang_that_outlives_a_phase_counts_as_one_within_it() {
        let [within, behind] = [hung(200, 300), hung(400, 1400)];
        assert_eq!(within.stalls.count, 1);
        let [in_all, between] = [within.rate_in_all().mean, within.rate().mean];
        assert!((in_all - 400.0 / 0.5).abs() < 30.0, "{in_all}");
        assert!((between - 1000.0).abs() < 30.0, "{between}");
        assert!((0.9..1.0).contains(&behind.stalls.longest), "{:?}", behind.stalls);
        // from the end of the warm-up on 325 requests in 1.325 seconds, and four that had waited
        assert!((behind.rate_in_all().mean - 329.0 / 1.325).abs() < 3.0, "{behind:?}");
        assert_eq!((behind.seconds, behind.requests), (0.5, 400));
    }

    #[test]
    fn slow_requests_are_no_stall() {
        let mut recorder = PhaseRecorder::new(Time::ZERO, 0.5).unwrap();
        (1..=20).for_each(|done| recorder.record(time(done * 40 - 40), time(done * 40)));
        let samples = recorder.samples(time(500), 0, 0.0);
        assert_eq!(samples.stalls, Stalls::default());
    }
}
