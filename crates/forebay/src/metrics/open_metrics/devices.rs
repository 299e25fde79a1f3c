//! What block devices did and how much of it was unscheduled, in a scrape.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

use crate::metrics::{DeviceTraffic, MemberTraffic, Traffic};

/// What is below each disk.
#[derive(Debug)]
pub(super) struct Devices(pub(super) Vec<(String, DeviceTraffic)>);

/// Name, help and value of a counter of one direction.
type Counter = (&'static str, &'static str, fn(&Traffic) -> u64);

const COUNTERS: &[Counter] = &[
    ("done_bytes", "Bytes that the device did, by the count of the kernel", |of| of.done),
    ("admitted_bytes", "Bytes that requests and permits were for", |of| of.admitted),
    (
        "unscheduled_bytes",
        "Bytes of unscheduled I/O that the device did, at least; a small part is healthy, a \
         large one means writeback, flushes or reads without a permit, or permits that end before \
         the disk works",
        |of| of.unscheduled,
    ),
    (
        "unscheduled_own_bytes",
        "Of these, those of this process; the rest is unknown: other processes, journal, metadata",
        |of| of.of_this_process,
    ),
];

impl Collector for Devices {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        for &(name, help, value) in COUNTERS {
            let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
            for (disk, seen) in self.seen() {
                let DeviceTraffic { device, read, written, discarded, .. } = seen;
                let directions = [("read", read), ("write", written), ("discard", discarded)];
                for (direction, traffic) in directions {
                    let labels =
                        [("mountpoint", disk), ("device", device), ("direction", direction)];
                    let metric = metric.encode_family(&labels)?;
                    ConstCounter::new(value(traffic)).encode(metric)?;
                }
            }
        }
        let help = "Bytes written by this process and not yet attributed to a device";
        for (name, help) in [
            ("unattributed_bytes", help),
            ("undecided_bytes", "Old name of unattributed_bytes, for one release"),
        ] {
            let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            for (disk, seen) in self.seen() {
                let labels = [("mountpoint", disk), ("device", seen.device.as_str())];
                ConstGauge::new(seen.unattributed as f64).encode(metric.encode_family(&labels)?)?;
            }
        }
        self.encode_members(&mut encoder)?;
        let help = "Why unscheduled I/O cannot be measured";
        let mut metric = encoder.encode_descriptor("unknown", help, None, MetricType::Gauge)?;
        for (disk, hidden) in &self.0 {
            if let Some(why) = &hidden.unknown_because {
                let labels = [("mountpoint", disk), ("reason", why)];
                ConstGauge::new(1u64).encode(metric.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }
}

impl Devices {
    fn encode_members(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let help = "For how long requests were in flight on a member of a striped array, summed over \
                    requests";
        let name = "member_in_flight_seconds";
        let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
        for (disk, seen) in self.seen() {
            for MemberTraffic { member, in_flight_ms } in &seen.members {
                let labels = [("mountpoint", disk), ("device", &seen.device), ("member", member)];
                let seconds = *in_flight_ms as f64 / 1e3;
                ConstCounter::new(seconds).encode(metric.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }

    fn seen(&self) -> impl Iterator<Item = (&str, &DeviceTraffic)> {
        let seen = self.0.iter().filter(|(_, traffic)| traffic.unknown_because.is_none());
        seen.map(|(disk, traffic)| (disk.as_str(), traffic))
    }
}
