//! Log-linear histograms of durations, which one thread writes and any thread reads.

use std::sync::atomic::{AtomicU64, Ordering};

/// The binary logarithm of the unit in nanoseconds: 2^10 ns, about a microsecond.
const UNIT_BITS: u32 = 10;
/// The binary logarithm of the buckets per doubling: with 16, a duration is known to within 6.25 %.
const STEP_BITS: u32 = 4;
const STEPS: usize = 1 << STEP_BITS;
/// The number of doublings. The last bucket holds all durations from 2^27 units (137 s) on.
const OCTAVES: usize = 24;
const BUCKETS: usize = OCTAVES * STEPS;

/// A histogram in atomics. Only one thread at a time may record, so that recording needs no locked
/// instruction. Any thread may read at the same time.
#[derive(Debug)]
pub(crate) struct Histogram {
    counts: [AtomicU64; BUCKETS],
}

impl Histogram {
    pub(crate) const fn new() -> Self {
        Self { counts: [const { AtomicU64::new(0) }; BUCKETS] }
    }

    /// Counts one duration. Two threads must not call it at once.
    pub(crate) fn record(&self, nanos: u64) {
        add(&self.counts[bucket(nanos)], 1);
    }

    /// Clears the histogram. Two threads must not call it at once.
    pub(crate) fn clear(&self) {
        self.counts.iter().for_each(|count| count.store(0, Ordering::Relaxed));
    }

    /// Adds the counts to `distribution`, and returns their number. The caller keeps the sum of the
    /// durations.
    pub(crate) fn add_to(&self, distribution: &mut Distribution) -> u64 {
        let counts = self.counts.iter().enumerate();
        counts.fold(0, |sum, (bucket, from)| {
            let count = from.load(Ordering::Relaxed);
            distribution.add(bucket, count);
            sum + count
        })
    }
}

/// Adds with a load and a store, which loses nothing because there is one writer.
pub(super) fn add(number: &AtomicU64, amount: u64) {
    number.store(number.load(Ordering::Relaxed).wrapping_add(amount), Ordering::Relaxed);
}

fn bucket(nanos: u64) -> usize {
    let units = nanos >> UNIT_BITS;
    // Below two doublings of steps every unit has its own bucket.
    let shift = (units | (2 * STEPS as u64 - 1)).ilog2() - STEP_BITS;
    let index = shift as usize * STEPS + (units >> shift) as usize;
    index.min(BUCKETS - 1)
}

/// The upper bound of a bucket in nanoseconds, exclusive.
fn upper_nanos(bucket: usize) -> u64 {
    let shift = (bucket / STEPS).saturating_sub(1);
    let units = (bucket - shift * STEPS + 1) as u64;
    units << (shift as u32 + UNIT_BITS)
}

/// A distribution of durations: a copy of a histogram, or the sum of several.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Distribution {
    /// The counts up to the last bucket that is not empty. Most classes on most disks have none.
    counts: Vec<u64>,
    sum_nanos: u64,
}

impl Distribution {
    /// Adds `count` durations of a bucket.
    fn add(&mut self, bucket: usize, count: u64) {
        if count == 0 {
            return;
        }
        if self.counts.len() <= bucket {
            self.counts.resize(bucket + 1, 0);
        }
        self.counts[bucket] += count;
    }

    /// Adds durations of 0, of requests that did not wait.
    pub(super) fn add_instants(&mut self, count: u64) {
        self.add(0, count);
    }

    /// Adds to the sum of the durations.
    pub(super) fn add_nanos(&mut self, nanos: u64) {
        self.sum_nanos += nanos;
    }

    /// The number of durations.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The sum of the durations, in nanoseconds.
    pub const fn sum_nanos(&self) -> u64 {
        self.sum_nanos
    }

    /// A duration in nanoseconds that at least `permille` of 1000 durations did not exceed. It is
    /// at most 6.25 % above the least such duration. `None` without durations.
    pub fn percentile_nanos(&self, permille: u32) -> Option<u64> {
        let count = self.count();
        let wanted = (u128::from(count) * u128::from(permille.min(1000))).div_ceil(1000).max(1);
        let mut passed = 0;
        let reached = self.counts.iter().position(|&in_bucket| {
            passed += u128::from(in_bucket);
            passed >= wanted
        });
        reached.map(upper_nanos)
    }

    /// The end of each doubling in nanoseconds, from 16 µs on, and the number of durations between
    /// the previous end and this one. The last doubling has no upper bound.
    pub fn doublings(&self) -> impl Iterator<Item = (u64, u64)> {
        let mut counts = self.counts.chunks(STEPS);
        (0..OCTAVES).map(move |octave| {
            let count = counts.next().map_or(0, |counts| counts.iter().sum());
            (upper_nanos(octave * STEPS + STEPS - 1), count)
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn buckets_touch_and_cover_everything() {
        for index in 0..BUCKETS - 1 {
            let end = upper_nanos(index);
            assert_eq!(bucket(end - 1), index);
            assert_eq!(bucket(end), index + 1);
        }
        assert_eq!(bucket(0), 0);
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn an_empty_histogram_has_no_percentile() {
        assert_eq!(Distribution::default().percentile_nanos(500), None);
    }

    proptest! {
        #[test]
        fn percentiles_are_right_to_one_step(
            mut nanos in prop::collection::vec(20_000u64..100_000_000_000, 1..300),
            permille in 1u32..=1000,
        ) {
            let histogram = Histogram::new();
            nanos.iter().for_each(|&nanos| histogram.record(nanos));
            let mut distribution = Distribution::default();
            let count = histogram.add_to(&mut distribution);
            prop_assert_eq!((count, distribution.count()), (nanos.len() as u64, count));
            nanos.sort_unstable();
            let exact = nanos[(nanos.len() * permille as usize).div_ceil(1000) - 1] as f64;
            let found = distribution.percentile_nanos(permille).unwrap() as f64;
            prop_assert!(found > exact && found <= exact * 1.0626 + 1.0, "{found} for {exact}");
            let in_doublings: u64 = distribution.doublings().map(|(_, count)| count).sum();
            prop_assert_eq!(in_doublings, nanos.len() as u64);
        }
    }
}
