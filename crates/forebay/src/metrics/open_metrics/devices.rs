//! Metrics of block devices, and of their unscheduled part.

use std::fmt;

use prometheus_client::metrics::MetricType::{Counter, Gauge};

use super::metric::{Metric, Section, Value};
use crate::metrics::{DiskSnapshot, Traffic};

const COUNTERS: &[Metric<Traffic, u64>] = &[
    (
        "done_bytes",
        "Bytes that the device transferred or discarded, as counted by the kernel",
        |of| of.done,
    ),
    ("admitted_bytes", "Bytes of requests and permits", |of| of.admitted),
    (
        "unscheduled_bytes",
        "Bytes of unscheduled I/O of the device, at least; a small part is healthy, a large one \
         means writeback, flushes or reads without a permit, or permits dropped before the I/O \
         ends",
        |of| of.unscheduled,
    ),
    (
        "unscheduled_own_bytes",
        "Of these, the bytes of this process; the rest is unknown: other processes, journal, \
         metadata",
        |of| of.of_this_process,
    ),
];

/// Encodes the device below each disk.
pub(super) fn encode(devices: &mut Section<'_, '_>, disks: &[DiskSnapshot]) -> fmt::Result {
    let all = disks.iter().map(|disk| (("mountpoint", disk.name.as_str()), &disk.traffic));
    let seen = all.clone().filter(|(_, traffic)| traffic.unknown_because.is_none());
    let seen = seen.map(|(disk, traffic)| (disk, ("device", traffic.device.as_str()), traffic));
    let directions = seen.clone().flat_map(|(disk, device, of)| {
        [("read", &of.read), ("write", &of.written), ("discard", &of.discarded)]
            .map(|(direction, traffic)| ([disk, device, ("direction", direction)], traffic))
    });
    devices.table(Counter, COUNTERS, &directions, Value::Count)?;
    let help = "Bytes written by this process and not yet attributed to a device";
    let unattributed = seen
        .clone()
        .map(|(disk, device, of)| ([disk, device], Value::Gauge(of.unattributed as f64)));
    devices.family(Gauge, ("unattributed_bytes", help), &unattributed)?;
    let help = "Time of requests in flight on a member of a striped array, summed over requests";
    let members = seen.flat_map(|(disk, device, of)| {
        of.members.iter().map(move |of| {
            let nanos = Value::Nanos(of.in_flight_ms.saturating_mul(1_000_000));
            ([disk, device, ("member", of.member.as_str())], nanos)
        })
    });
    devices.family(Counter, ("member_in_flight_seconds", help), &members)?;
    let help = "Why unscheduled I/O cannot be measured";
    let unknown = all.filter_map(|(disk, traffic)| {
        let why = traffic.unknown_because.as_deref()?;
        Some(([disk, ("reason", why)], Value::Number(1)))
    });
    devices.family(Gauge, ("unknown", help), &unknown)
}
