//! The hit rate of the recent reads of a descriptor in the page cache.

use std::cell::Cell;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use crossbeam_utils::CachePadded;

/// The number of slots for descriptors. Descriptors that share a slot only lose accuracy.
const PLACES: usize = 1024;
/// The number of slots of a thread.
const THREAD_PLACES: usize = 64;
/// The value of a hit rate of 1.
const ALL: u32 = 1 << 16;
/// From this hit rate on a read is tried without waiting first.
const MOSTLY: u32 = ALL / 10 * 9;
/// The weight of a read is one in 2^`WEIGHT`.
const WEIGHT: u32 = 4;
/// After this many reads far from the reads before them, a thread checks only one in [`LOOKS`]
/// reads for a sequential run.
const CALM: u32 = 64;
const LOOKS: u32 = 8;
/// A read within this many times its length after the last one is near: several threads may read a
/// file in turns.
const NEAR: u64 = 64;

static RECENT: [CachePadded<HitRate>; PLACES] =
    [const { CachePadded::new(HitRate::new()) }; PLACES];

thread_local! {
    /// The number of consecutive reads of this thread that were far from the reads before them.
    static APART: [Cell<u32>; THREAD_PLACES] = const { [const { Cell::new(0) }; THREAD_PLACES] };
}

/// The hit rate of a descriptor, or of all that share the slot.
pub(super) struct HitRate {
    /// The hit rate, as a fraction of [`ALL`].
    hits: AtomicU32,
    /// The offset in bytes at which the last read ended.
    end: AtomicU64,
}

impl HitRate {
    const fn new() -> Self {
        Self { hits: AtomicU32::new(0), end: AtomicU64::new(0) }
    }

    pub(super) fn of(file: BorrowedFd<'_>) -> &'static Self {
        &RECENT[file.as_raw_fd() as usize % PLACES]
    }

    #[inline]
    pub(super) fn is_high(&self) -> bool {
        self.hits.load(Relaxed) >= MOSTLY
    }

    /// Whether a read of `len` bytes of `file` at `offset` continues where the last one ended, on
    /// any thread. Threads that read at random offsets rarely access the shared slot, because it
    /// would move between their processors for each read.
    #[inline]
    pub(super) fn goes_on(&self, file: BorrowedFd<'_>, offset: u64, len: usize) -> bool {
        APART
            .with(|apart| self.look(&apart[file.as_raw_fd() as usize % THREAD_PLACES], offset, len))
    }

    #[inline]
    fn look(&self, apart: &Cell<u32>, offset: u64, len: usize) -> bool {
        let reads = apart.get();
        apart.set(if reads < CALM + LOOKS { reads + 1 } else { CALM + 1 });
        if reads > CALM && reads < CALM + LOOKS {
            return false;
        }
        let before = self.end.load(Relaxed);
        self.end.store(offset.wrapping_add(len as u64), Relaxed);
        if offset.wrapping_sub(before) <= NEAR * len as u64 {
            apart.set(0);
        }
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
    }

    #[test]
    fn a_read_goes_on_where_the_last_one_ended_on_whatever_thread() {
        let rate = HitRate::new();
        let [one, two] = [(); 2].map(|()| Cell::new(0));
        assert!(!rate.look(&one, 4096, 4096));
        assert!(rate.look(&two, 8192, 100) && rate.look(&one, 8292, 1));
    }

    #[test]
    fn threads_that_read_here_and_there_look_seldom_until_they_go_on() {
        let rate = HitRate::new();
        let threads = [(); 4].map(|()| Cell::new(0));
        let place = |n: u64| (n * 7_919 % 4_096) << 20;
        let looks = |reads: u64| {
            let looked = |n: &u64| {
                let before = rate.end.load(Relaxed);
                assert!(!rate.look(&threads[(n % 4) as usize], place(*n), 4096));
                rate.end.load(Relaxed) != before
            };
            (1..=reads).filter(looked).count() as u64
        };
        looks(1_000);
        assert!((1_900..=2_100).contains(&(looks(16_000))), "one in eight");
        // Then the file is read in turns from one end to the other, and soon each read is checked.
        let seen = |n: u64| rate.look(&threads[(n % 4) as usize], n * 4096, 4096);
        let missed = (0..1_000).filter(|n| !seen(*n)).max();
        assert!(missed.is_some_and(|last| last < 200), "{missed:?}");
    }
}
