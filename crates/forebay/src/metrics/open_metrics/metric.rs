//! What each metric of a scrape is made of.

use forebay_core::DiskTime;

/// One metric: its name, what it says, and its value.
pub(super) type Metric<T, V> = (&'static str, &'static str, fn(&T) -> V);

pub(super) fn disk_nanos(time: DiskTime) -> u64 {
    time.as_nanos_ceil()
}

pub(super) fn seconds(nanos: u64) -> f64 {
    nanos as f64 / 1e9
}
