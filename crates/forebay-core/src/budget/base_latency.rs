//! The latency of a disk that has little to do, learnt while it serves.

use crate::sync::{AtomicU32, AtomicU64, Ordering};

const SAMPLES: usize = 32;
/// With fewer service times than this nothing is believed.
const SAMPLES_MIN: u32 = 8;
/// A disk is not believed to answer later than this: hard disks take 10 to 20 ms
/// for a seek, and disks behind a network up to 20; what looks later is slow now.
pub(super) const BELIEVED_NANOS_MAX: u64 = 20_000_000;

/// The last service times of requests that met a nearly idle disk, and their
/// median. Shared by all queues of a group.
#[derive(Debug)]
pub(crate) struct BaseLatency {
    nanos: [AtomicU64; SAMPLES],
    seen: AtomicU32,
}

impl BaseLatency {
    pub(crate) fn new() -> Self {
        Self { nanos: core::array::from_fn(|_| AtomicU64::new(0)), seen: AtomicU32::new(0) }
    }

    /// Adds a service time; answers with the median of the latest as soon as
    /// there are enough, and then whenever all of them are new.
    pub(crate) fn observe(&self, service_nanos: u64) -> Option<u64> {
        let seen = self.seen.load(Ordering::Relaxed);
        let slot = seen as usize % SAMPLES;
        self.nanos[slot].store(service_nanos.min(BELIEVED_NANOS_MAX), Ordering::Relaxed);
        // two shards at once may lose a sample; that is not worth a locked instruction
        let seen = seen.wrapping_add(1);
        self.seen.store(seen, Ordering::Relaxed);
        (seen == SAMPLES_MIN || seen.is_multiple_of(SAMPLES as u32)).then(|| self.median(seen))
    }

    fn median(&self, seen: u32) -> u64 {
        let mut latest = [0; SAMPLES];
        let count = SAMPLES.min(seen as usize);
        for (value, sample) in latest.iter_mut().zip(&self.nanos) {
            *value = sample.load(Ordering::Relaxed);
        }
        let latest = &mut latest[..count];
        *latest.select_nth_unstable(count / 2).1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_the_latest_shrugs_off_outliers_and_follows_a_change() {
        let base = BaseLatency::new();
        for nanos in [80, 90, 5_000_000_000, 85, 95, 70, 75] {
            assert_eq!(base.observe(nanos), None);
        }
        assert_eq!(base.observe(100), Some(90));
        let medians = (0..88).filter_map(|_| base.observe(300));
        assert!(medians.eq([300; 3]));
    }

    #[test]
    fn a_hang_is_not_taken_for_a_latency() {
        let base = BaseLatency::new();
        let medians = (0..8).filter_map(|_| base.observe(u64::MAX)).max();
        assert_eq!(medians, Some(BELIEVED_NANOS_MAX));
    }
}
