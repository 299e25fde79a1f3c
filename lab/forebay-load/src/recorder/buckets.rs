//! Latencies by size, coarsely: sixteen buckets for each doubling.

/// Each doubling of a latency has this many buckets, so that one is 6 % wide at most.
const STEPS: u64 = 16;
const STEP_BITS: u32 = STEPS.trailing_zeros();
/// The longest latency that is distinguished from longer ones: 2^42 ns, over an hour.
const BITS_MAX: u32 = 42;

/// How many buckets there are.
pub const BUCKETS: usize = ((BITS_MAX - STEP_BITS + 1) as u64 * STEPS) as usize;

/// The bucket of a latency of `ns` nanoseconds.
pub fn bucket_of(ns: u64) -> usize {
    if ns < STEPS {
        return ns as usize;
    }
    let doublings = ns.ilog2() - STEP_BITS;
    let step = (ns >> doublings) - STEPS;
    ((u64::from(doublings + 1) * STEPS + step) as usize).min(BUCKETS - 1)
}

/// The latencies of a bucket, in nanoseconds: from the first to below the second.
pub fn bounds(bucket: usize) -> (u64, u64) {
    let (rows, step) = (bucket as u64 / STEPS, bucket as u64 % STEPS);
    if rows == 0 {
        return (step, step + 1);
    }
    let doublings = rows - 1;
    ((STEPS + step) << doublings, (STEPS + step + 1) << doublings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_latency_is_within_its_bucket() {
        let shortest = (0..2000).chain((0..42).flat_map(|bit| [(1 << bit) - 1, 1 << bit]));
        for ns in shortest.chain([999_999, 123_456_789, (1 << 42) - 1]) {
            let (from, to) = bounds(bucket_of(ns));
            assert!(from <= ns && ns < to, "{ns}: {from} to {to}");
            assert!(to - from <= (from / 16).max(1), "{ns}");
        }
        assert_eq!(bucket_of(u64::MAX), BUCKETS - 1);
    }
}
