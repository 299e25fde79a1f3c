//! Metrics of reads through the page cache.

use super::metric::Metric;
use crate::PageCacheCounters;

pub(super) const PAGE_CACHE_COUNTERS: &[Metric<PageCacheCounters, u64>] = &[
    (
        "hits",
        "Reads served from memory; a steady part of hits and misses is healthy, a falling one \
         means too little memory",
        |reads| reads.hits,
    ),
    (
        "misses",
        "Reads with a permit: some pages were not in memory, or this was unknown",
        |reads| reads.misses,
    ),
    (
        "read_ahead_bytes",
        "Bytes that the disk read beyond the misses; healthy for scans, for random reads \
         FADV_RANDOM keeps it at 0",
        |reads| reads.read_ahead,
    ),
    (
        "left_to_kernel_bytes",
        "Dirty bytes that the kernel writes back unscheduled, as their writer was dropped and \
         they had no permit 0.5 s later; 0 is healthy, so flush before you drop a writer",
        |counters| counters.left_to_kernel,
    ),
];
