//! What all shards have told of in the present period.

use super::sample::Sample;
use crate::sync::{AtomicU64, Ordering, add};

/// Samples of all shards since the period began.
#[derive(Debug, Default)]
pub(super) struct Sums {
    pub(super) counted: AtomicU64,
    over: AtomicU64,
    nanos: AtomicU64,
    /// At the price of its mix.
    served: AtomicU64,
    emptied: AtomicU64,
    at_pace: AtomicU64,
    at_window: AtomicU64,
    waited: AtomicU64,
}

impl Sums {
    pub(super) fn add(&self, sample: &Sample) {
        add(&self.counted, sample.counted);
        add(&self.over, sample.over);
        add(&self.nanos, sample.nanos);
        add(&self.served, sample.served);
        add(&self.emptied, sample.emptied);
        add(&self.at_pace, sample.at_pace);
        add(&self.at_window, sample.at_window);
        add(&self.waited, sample.waited);
    }

    pub(super) fn take(&self) -> Sample {
        let take = |sum: &AtomicU64| sum.swap(0, Ordering::Relaxed);
        Sample {
            counted: take(&self.counted),
            over: take(&self.over),
            nanos: take(&self.nanos),
            served: take(&self.served),
            emptied: take(&self.emptied),
            at_pace: take(&self.at_pace),
            at_window: take(&self.at_window),
            waited: take(&self.waited),
            ..Sample::default()
        }
    }
}
