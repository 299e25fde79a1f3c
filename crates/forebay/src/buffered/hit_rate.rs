//! How many of the recent reads of a descriptor found what they wanted in memory.

use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// Descriptors that have a place of their own; a place is only about which way is cheaper.
const PLACES: usize = 1024;
/// All of them.
const ALL: u32 = 1 << 16;
/// From this part on a read is tried at once.
const MOSTLY: u32 = ALL / 10 * 9;
/// The weight of a read is one in two to this power.
const WEIGHT: u32 = 4;

static RECENT: [HitRate; PLACES] = [const { HitRate::new() }; PLACES];

/// Of one descriptor, or of those that share the place.
pub(super) struct HitRate {
    /// Of [`ALL`].
    hits: AtomicU32,
    /// Where the last read ended.
    end: AtomicU64,
}

impl HitRate {
    const fn new() -> Self {
        Self { hits: AtomicU32::new(0), end: AtomicU64::new(u64::MAX) }
    }

    pub(super) fn of(file: BorrowedFd<'_>) -> &'static Self {
        &RECENT[file.as_raw_fd() as usize % PLACES]
    }

    #[inline]
    pub(super) fn is_high(&self) -> bool {
        self.hits.load(Relaxed) >= MOSTLY
    }

    /// Whether a read of `len` bytes at `offset` goes on where the last one ended.
    #[inline]
    pub(super) fn goes_on(&self, offset: u64, len: usize) -> bool {
        let before = self.end.load(Relaxed);
        self.end.store(offset.wrapping_add(len as u64), Relaxed);
        before == offset
    }

    #[inline]
    pub(super) fn add(&self, hit: bool) {
        let hits = self.hits.load(Relaxed);
        let part = if hit { (ALL - hits).div_ceil(1 << WEIGHT) } else { 0 };
        let next = if hit { hits + part } else { hits - (hits >> WEIGHT) };
        if next != hits {
            self.hits.store(next, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_follows_the_last_reads() {
        let rate = HitRate::new();
        assert!(!rate.is_high(), "nothing is known");
        let until_high = (1..).find(|_| {
            rate.add(true);
            rate.is_high()
        });
        assert!((10..60).contains(&until_high.unwrap()));
        (0..1000).for_each(|_| rate.add(true));
        rate.add(false);
        assert!(rate.is_high(), "one miss is nothing");
        (0..3).for_each(|_| rate.add(false));
        assert!(!rate.is_high());
        assert!(!rate.goes_on(4096, 4096) && rate.goes_on(8192, 100) && rate.goes_on(8292, 1));
    }
}
