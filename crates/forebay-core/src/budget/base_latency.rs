//! The latency of a disk that has little to do, learnt while it serves.
//!
//! Decision: `docs/decisions/0026-base-latency.md`.

use crate::Time;
use crate::sync::{AtomicU32, AtomicU64, Ordering};

/// The service times that the learnt base latency is the median of. It is computed again once all of
/// them are new, so that more follow the disk later, and fewer leave outliers more weight.
const SAMPLES: usize = 32;
/// Service times within this time, in nanoseconds (1 ms), count as one sample. They may have met
/// the same stall of the disk, which would fill all samples at once.
const APART_NANOS: u64 = 1_000_000;
/// The service times from which the first median is taken. A median of fewer would believe a few
/// outliers.
const SAMPLES_MIN: u32 = 8;
/// The longest base latency that is believed, in nanoseconds (20 ms). Hard disks take 10 to 20 ms
/// for a seek, and disks behind a network up to 20. A disk that seems to answer later is slow at
/// the moment, and a larger window would make it slower.
const BELIEVED_NANOS_MAX: u64 = 20_000_000;

/// The last service times of requests that met a nearly idle disk, and their
/// median. Shared by all queues of a group.
#[derive(Debug, Default)]
pub(crate) struct BaseLatency {
    nanos: [AtomicU64; SAMPLES],
    seen: AtomicU32,
    seen_at: AtomicU64,
}

impl BaseLatency {
    /// Adds a service time, unless another was added just before; answers with
    /// the median of the latest as soon as there are enough, and then whenever all
    /// of them are new.
    #[inline]
    pub(crate) fn observe(&self, now: Time, service_nanos: u64) -> Option<u64> {
        let seen_at = Time::from_nanos(self.seen_at.load(Ordering::Relaxed));
        if seen_at > Time::ZERO && now.nanos_since(seen_at) < APART_NANOS {
            return None;
        }
        self.add(now, service_nanos)
    }

    #[inline(never)]
    fn add(&self, now: Time, service_nanos: u64) -> Option<u64> {
        self.seen_at.store(now.as_nanos(), Ordering::Relaxed);
        let seen = self.seen.load(Ordering::Relaxed);
        let slot = seen as usize % SAMPLES;
        self.nanos[slot].store(service_nanos.min(BELIEVED_NANOS_MAX), Ordering::Relaxed);
        // two shards at once may lose a sample; that is not worth a locked instruction
        let seen = seen.wrapping_add(1);
        self.seen.store(seen, Ordering::Relaxed);
        (seen == SAMPLES_MIN || seen.is_multiple_of(SAMPLES as u32)).then(|| self.median(seen))
    }

    /// Forgets what was seen: nothing confirms it any more.
    pub(crate) fn forget(&self) {
        self.seen.store(0, Ordering::Relaxed);
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

    /// Service times at samples far enough apart, and what was found.
    fn observe(base: &BaseLatency, times: impl Iterator<Item = u64>) -> Option<u64> {
        let begin = base.seen_at.load(Ordering::Relaxed);
        let at = |index: usize| Time::from_nanos(begin + (index as u64 + 1) * APART_NANOS);
        times.enumerate().filter_map(|(index, nanos)| base.observe(at(index), nanos)).last()
    }

    #[test]
    fn the_median_of_the_latest_shrugs_off_outliers_and_follows_a_change() {
        let base = BaseLatency::default();
        let first = [80, 90, 5_000_000_000, 85, 95, 70, 75];
        assert_eq!(observe(&base, first.into_iter()), None);
        assert_eq!(observe(&base, [100].into_iter()), Some(90));
        assert_eq!(observe(&base, core::iter::repeat_n(300, 88)), Some(300));
    }

    #[test]
    fn what_was_seen_of_a_slow_disk_is_not_mixed_with_what_is_seen_when_it_is_well() {
        let base = BaseLatency::default();
        observe(&base, core::iter::repeat_n(2_000, 31));
        base.forget();
        assert_eq!(observe(&base, core::iter::repeat_n(80, 7)), None);
        assert_eq!(observe(&base, core::iter::repeat_n(80, 1)), Some(80));
    }

    #[test]
    fn a_hang_is_not_taken_for_a_latency() {
        let base = BaseLatency::default();
        assert_eq!(observe(&base, core::iter::repeat_n(u64::MAX, 8)), Some(BELIEVED_NANOS_MAX));
    }

    #[test]
    fn requests_that_met_the_same_stall_are_one_sample() {
        let base = BaseLatency::default();
        let mut found = None;
        for turn in 1..=64 {
            let now = Time::from_nanos(turn * 2 * APART_NANOS);
            let nanos = if turn % 8 == 0 { 5_000_000 } else { 80_000 };
            // the many that wait in a disk that stands still come back together
            for _ in 0..if turn % 8 == 0 { 40 } else { 1 } {
                found = base.observe(now, nanos).or(found);
            }
        }
        assert_eq!(found, Some(80_000));
    }
}
