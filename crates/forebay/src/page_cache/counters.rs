//! The counters of reads through the page cache, and of bytes that were left to the kernel.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use crossbeam_utils::CachePadded;

/// The number of separate counters, for threads that count at the same time.
const STRIPES: usize = 8;

thread_local! {
    static STRIPE: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// The counters of a class's reads through the page cache ([`Class::read_at`]), and the bytes that
/// its writers left to the kernel.
///
/// [`Class::read_at`]: crate::Class::read_at
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PageCacheCounters {
    /// Reads that found all pages in memory, and needed no permit.
    pub hits: u64,
    /// Reads with a permit: some pages were not in memory, or that was unknown.
    pub misses: u64,
    /// Bytes that the disk read in addition to the bytes of misses, and that were charged
    /// afterwards.
    pub read_ahead: u64,
    /// Dirty bytes that the kernel writes back unscheduled, because their permit was refused, or
    /// was not granted within 0.5 s after their [writer](crate::BufferedWriter) was dropped.
    pub left_to_kernel: u64,
}

/// The counters in a form that many threads can update at once.
#[derive(Debug, Default)]
pub(crate) struct ReadCounts([CachePadded<Stripe>; STRIPES]);

#[derive(Debug, Default)]
struct Stripe {
    hits: AtomicU64,
    misses: AtomicU64,
    read_ahead: AtomicU64,
    left_to_kernel: AtomicU64,
}

impl ReadCounts {
    #[inline]
    pub(crate) fn add_hit(&self) {
        self.here().hits.fetch_add(1, Relaxed);
    }

    pub(crate) fn add_miss(&self) {
        self.here().misses.fetch_add(1, Relaxed);
    }

    pub(crate) fn add_read_ahead(&self, bytes: u64) {
        self.here().read_ahead.fetch_add(bytes, Relaxed);
    }

    pub(crate) fn add_left_to_kernel(&self, bytes: u64) {
        self.here().left_to_kernel.fetch_add(bytes, Relaxed);
    }

    pub(crate) fn sum(&self) -> PageCacheCounters {
        let mut sum = PageCacheCounters::default();
        for stripe in &self.0 {
            sum.hits += stripe.hits.load(Relaxed);
            sum.misses += stripe.misses.load(Relaxed);
            sum.read_ahead += stripe.read_ahead.load(Relaxed);
            sum.left_to_kernel += stripe.left_to_kernel.load(Relaxed);
        }
        sum
    }

    #[inline]
    fn here(&self) -> &Stripe {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let known = STRIPE.get();
        let stripe = if known < STRIPES { known } else { NEXT.fetch_add(1, Relaxed) % STRIPES };
        STRIPE.set(stripe);
        &self.0[stripe]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_many_threads_are_added_up() {
        let counts = ReadCounts::default();
        std::thread::scope(|scope| {
            for _ in 0..20 {
                scope.spawn(|| {
                    (0..100).for_each(|_| counts.add_hit());
                    counts.add_miss();
                    counts.add_read_ahead(4096);
                    counts.add_left_to_kernel(512);
                });
            }
        });
        let sum = PageCacheCounters {
            hits: 2_000,
            misses: 20,
            read_ahead: 20 * 4096,
            left_to_kernel: 20 * 512,
        };
        assert_eq!(counts.sum(), sum);
    }
}
