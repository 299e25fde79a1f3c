//! What a scrape says of the process, and not of its queues.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

use super::metric::seconds;
use crate::metrics::Snapshot;

#[derive(Debug)]
pub(super) struct Process {
    bugs: u64,
    uptime_nanos: u64,
}

impl Process {
    pub(super) const fn of(snapshot: &Snapshot) -> Self {
        Self { bugs: snapshot.bugs, uptime_nanos: snapshot.uptime_nanos }
    }
}

impl Collector for Process {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let help = "Impossible states of the process that were met: bugs in forebay";
        let metric = encoder.encode_descriptor("bugs", help, None, MetricType::Counter)?;
        ConstCounter::new(self.bugs).encode(metric)?;
        let help = "For how long the process had used forebay when this was counted";
        let metric = encoder.encode_descriptor("uptime_seconds", help, None, MetricType::Gauge)?;
        if self.uptime_nanos > 0 {
            ConstGauge::new(seconds(self.uptime_nanos)).encode(metric)?;
        }
        Ok(())
    }
}
