//! The measured part of a run in equal parts: how even it was.

use forebay_core::Time;

use super::MeasuredInterval;
use super::buckets::{BUCKETS, bucket_of};

/// This many parts.
pub const INTERVALS: usize = 20;

/// What happened in one part.
#[derive(Clone, Debug)]
pub struct Interval {
    /// Requests done in it.
    pub requests: u64,
    /// Bytes moved by these.
    pub bytes: u64,
    /// Latencies of the requests that were meant to begin in it, counted by
    /// [`bucket_of`](super::buckets::bucket_of).
    pub latencies: Vec<u32>,
    /// The same of flushes, if their latencies are apart.
    pub flush_latencies: Vec<u32>,
}

/// All parts. Takes 100 kB, all when it is made.
#[derive(Clone, Debug)]
pub struct Intervals {
    measured: MeasuredInterval,
    /// The parts, in order.
    pub parts: Vec<Interval>,
}

impl Intervals {
    pub(super) fn new(measured: MeasuredInterval) -> Self {
        let counts = || vec![0; BUCKETS];
        let (latencies, flush_latencies) = (counts(), counts());
        let none = Interval { requests: 0, bytes: 0, latencies, flush_latencies };
        Self { measured, parts: vec![none; INTERVALS] }
    }

    /// A request was done at `at`.
    pub(super) fn done(&mut self, at: Time, bytes: u64) {
        if let Some(part) = self.part(at) {
            part.requests += 1;
            part.bytes += bytes;
        }
    }

    /// A request that was meant to begin at `intended` took so long. The latencies of a `flush` are
    /// apart.
    pub(super) fn took(&mut self, intended: Time, ns: u64, flush: bool) {
        let counts = self.part(intended).map(|part| match flush {
            true => &mut part.flush_latencies,
            false => &mut part.latencies,
        });
        if let Some(count) = counts.and_then(|counts| counts.get_mut(bucket_of(ns))) {
            *count = count.saturating_add(1);
        }
    }

    pub(super) fn merge(&mut self, other: &Self) {
        for (part, more) in self.parts.iter_mut().zip(&other.parts) {
            part.requests += more.requests;
            part.bytes += more.bytes;
            let pairs = [
                (&mut part.latencies, &more.latencies),
                (&mut part.flush_latencies, &more.flush_latencies),
            ];
            for (count, more) in pairs.into_iter().flat_map(|(all, more)| all.iter_mut().zip(more))
            {
                *count = count.saturating_add(*more);
            }
        }
    }

    /// The part in which `at` lies; none outside of the measured part of the run.
    fn part(&mut self, at: Time) -> Option<&mut Interval> {
        let MeasuredInterval { from, to } = self.measured;
        if at < from || at > to {
            return None;
        }
        let all = u128::from(to.nanos_since(from)).max(1);
        let index = u128::from(at.nanos_since(from)) * INTERVALS as u128 / all;
        self.parts.get_mut((index as usize).min(INTERVALS - 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_moment_of_the_measured_part_is_in_one_of_its_parts() {
        let at = Time::from_nanos;
        let mut intervals = Intervals::new(MeasuredInterval { from: at(1000), to: at(3000) });
        for ns in [999, 1000, 1099, 1100, 2999, 3000, 3001] {
            intervals.done(at(ns), 10);
            intervals.took(at(ns), 77, false);
            intervals.took(at(ns), 99, true);
        }
        let requests: Vec<u64> = intervals.parts.iter().map(|part| part.requests).collect();
        assert_eq!((requests[0], requests[1], requests[19]), (2, 1, 2));
        assert_eq!(requests.iter().sum::<u64>(), 5);
        let mut both = intervals.clone();
        both.merge(&intervals);
        assert_eq!((both.parts[0].bytes, both.parts[0].latencies[bucket_of(77)]), (40, 4));
        assert_eq!(both.parts[0].flush_latencies[bucket_of(99)], 4);
        assert_eq!(both.parts[0].flush_latencies.iter().sum::<u32>(), 4);
    }
}
