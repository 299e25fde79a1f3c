//! What discarders deleted and what waits for them, in a scrape.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

use crate::metrics::Discards;

/// What the discarders of each class did, on whatever disk.
#[derive(Debug)]
pub(super) struct DiscardMetrics(pub(super) Vec<Discards>);

/// One metric: its name, what it says, and its value.
type Metric<V> = (&'static str, &'static str, fn(&Discards) -> V);

const COUNTERS: &[Metric<u64>] = &[
    ("files", "Files that were deleted", |discards| discards.files),
    ("unlinked_files", "Of these, those that were unlinked at once: nothing to pace", |discards| {
        discards.unlinked
    }),
    ("errors", "Files that could not be deleted", |discards| discards.errors),
    ("bytes", "Bytes that were freed in steps", |discards| discards.bytes),
    ("commands", "Extents that were freed in steps", |discards| discards.commands),
    ("steps", "Steps, each with a flush", |discards| discards.steps),
];

const GAUGES: &[Metric<f64>] = &[
    ("backlog_files", "Files that wait to be freed", |discards| discards.backlog_files as f64),
    (
        "backlog_bytes",
        "Bytes that wait to be freed; healthy below half of the ceiling, from there on the rate and \
         the shares rise",
        |discards| discards.backlog_bytes as f64,
    ),
    ("oldest_seconds", "How long the oldest of them waits", |discards| {
        discards.oldest_nanos as f64 / 1e9
    }),
    ("rate", "Bytes per second that were freed last", |discards| discards.rate as f64),
    ("rate_limit", "The rate in force in bytes per second; 0 if there is none", |discards| {
        discards.rate_limit as f64
    }),
];

impl Collector for DiscardMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let is_in_use = |of: &&Discards| of.files + of.errors + of.backlog_files > 0;
        let used: Vec<&Discards> = self.0.iter().filter(is_in_use).collect();
        for &(name, help, value) in COUNTERS {
            let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
            for discards in &used {
                let labels = [("class", &discards.class)];
                ConstCounter::new(value(discards)).encode(metric.encode_family(&labels)?)?;
            }
        }
        for &(name, help, value) in GAUGES {
            let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            for discards in &used {
                let labels = [("class", &discards.class)];
                ConstGauge::new(value(discards)).encode(metric.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }
}
