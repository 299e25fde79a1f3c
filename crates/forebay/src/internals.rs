//! Parts of the library on their own, for its benchmarks. Not an interface.

use forebay_core::Completion;

use crate::metrics::QueueMetrics;

/// The latency histograms of one I/O queue.
#[derive(Debug, Default)]
pub struct Recorder(QueueMetrics);

impl Recorder {
    /// Counts a completed request, as a shard or a queue of permits does.
    pub fn record(&self, completion: &Completion) {
        self.0.record(completion);
    }
}
