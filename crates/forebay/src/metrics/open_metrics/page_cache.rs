//! What reads through the page cache found, in a scrape.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;

use crate::PageCacheCounters;
use crate::metrics::PageCacheReads;

/// What reads through the page cache found, on whatever disk.
#[derive(Debug)]
pub(super) struct PageCache(pub(super) Vec<PageCacheReads>);

/// One counter: its name, what it says, and its value.
type Counter = (&'static str, &'static str, fn(&PageCacheCounters) -> u64);

const COUNTERS: &[Counter] = &[
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

impl Collector for PageCache {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let is_in_use = |of: &&PageCacheReads| of.counters != PageCacheCounters::default();
        for &(name, help, value) in COUNTERS {
            let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
            for PageCacheReads { class, counters } in self.0.iter().filter(is_in_use) {
                let labels = [("class", class)];
                ConstCounter::new(value(counters)).encode(metric.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }
}
