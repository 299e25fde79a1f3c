//! What reads through the page cache found, in a scrape.

use super::metric::Metric;
use crate::PageCacheCounters;

pub(super) const PAGE_CACHE_COUNTERS: &[Metric<PageCacheCounters, u64>] = &[
    (
        "hits",
        "Reads that found all in memory; of hits and misses, a steady part is healthy, one that \
         falls means that memory lacks",
        |reads| reads.hits,
    ),
    ("misses", "Reads with a permit: some was not in memory, or nobody could tell", |reads| {
        reads.misses
    }),
    (
        "read_ahead_bytes",
        "Bytes that the disk read beyond what misses asked for; healthy for scans, for random \
         reads FADV_RANDOM keeps it at 0",
        |reads| reads.read_ahead,
    ),
    (
        "left_to_kernel_bytes",
        "Dirty bytes that the kernel writes back unscheduled, as their writer was dropped and they \
         had no permit 0.5 s later; healthy is 0, so flush before writers are dropped",
        |counters| counters.left_to_kernel,
    ),
];
