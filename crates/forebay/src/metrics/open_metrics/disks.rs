//! Metrics of each disk.

use forebay_core::DiskRates;

use super::metric::{Metric, disk_nanos, seconds};
use crate::metrics::DiskSnapshot;

pub(super) const DISK_GAUGES: &[Metric<DiskSnapshot, Option<f64>>] = &[
    (
        "flow_ratio",
        "Requests dispatched per request completed; always 1 under a window: see the speed for a \
         slow disk",
        |disk| Some(disk.totals.flow_ratio_permille as f64 / 1000.0),
    ),
    ("in_disk", "Requests in the disk", |disk| Some(f64::from(disk.totals.in_disk))),
    ("bytes_in_disk", "Bytes of the requests in the disk", |disk| {
        Some(disk.classes.iter().fold(0.0, |sum, class| sum + class.counters.bytes_in_disk as f64))
    }),
    ("in_disk_seconds", "Disk time of the requests in the disk", |disk| {
        Some(seconds(disk.in_flight_nanos))
    }),
    ("effective_goal_seconds", "Maximum disk time of requests that wait in the disk", |disk| {
        disk.effective_goal_nanos.map(seconds)
    }),
    ("window_seconds", "Maximum disk time of unfinished requests in the disk", |disk| {
        disk.window_nanos.map(seconds)
    }),
    (
        "speed",
        "Throughput as a part of the disk's figures, when work last waited for it; 0.9 or more is \
         healthy, less means wrong figures for this mix (run forebay explore) or a failing disk",
        |disk| disk.load.speed_permille.map(permille),
    ),
    (
        "latency_target_seconds",
        "Latency that the percentile of the latency target must not exceed",
        |disk| disk.load.target.map(|status| status.target.latency().as_secs_f64()),
    ),
    (
        "latency_target_holds",
        "Whether the latency target held when work last waited; 1 is healthy",
        |disk| disk.load.target.map(|status| f64::from(u8::from(status.holds))),
    ),
    (
        "latency_target_attainable",
        "Whether a smaller window can keep the latency target; 0 means that it is suspended",
        |disk| disk.load.target.map(|status| f64::from(u8::from(status.attainable))),
    ),
    (
        "window_corrected_seconds",
        "The window in force, found by trials or limited by the latency target",
        |disk| disk.load.target.map(|status| seconds(disk_nanos(status.window))),
    ),
    ("base_latency_seconds", "Latency of the idle disk, stated or learnt", |disk| {
        disk.base_latency_nanos.map(seconds)
    }),
    (
        "queues",
        "I/O queues: shards, I/O threads, and one for permits once in use; times summed over \
         queues, such as blocked_seconds, grow by at most this many seconds per second",
        |disk| Some(f64::from(disk.queues)),
    ),
    (
        "turn_overdue_seconds",
        "Delay of the latest of several queues in polling for work; some tenths are healthy, more \
         means a blocked thread or one without a processor",
        |disk| Some(seconds(disk.turn_overdue_nanos)),
    ),
    (
        "stall_max_seconds",
        "Longest stall of the disk: requests were in it, and none completed",
        |disk| Some(seconds(disk.load.counters.stall_nanos_max)),
    ),
    ("read_iops", "Configured rate", |disk| rate(disk, |rates| rates.read_iops)),
    ("write_iops", "Configured rate", |disk| rate(disk, |rates| rates.write_iops)),
    ("read_bandwidth", "Configured rate, bytes per second", |disk| {
        rate(disk, |rates| rates.read_bandwidth)
    }),
    ("write_bandwidth", "Configured rate, bytes per second", |disk| {
        rate(disk, |rates| rates.write_bandwidth)
    }),
];

pub(super) const DISK_COUNTERS: &[Metric<DiskSnapshot, u64>] = &[
    (
        "late_turns",
        "Late polls of a queue, as seen by the other queues; few are healthy, many mean threads \
         that are busy with other work",
        |disk| disk.totals.late_turns,
    ),
    ("window_bypasses", "Requests dispatched beyond a full window for a nested request", |disk| {
        disk.totals.window_bypasses
    }),
    (
        "absence_bypasses",
        "Requests sent beyond a full window, as no thread had polled until the disk ran out of \
         work; many mean a host short of processors",
        |disk| disk.totals.absence_bypasses,
    ),
    (
        "wake_ups",
        "Wake-ups of threads and tasks, timers included; at most 1.5 per request and 20 per \
         second and queue are healthy",
        |disk| disk.totals.wake_ups,
    ),
    (
        "stalls",
        "Stalls of the disk: requests were in it, and none completed for longer than eight \
         windows and 100 ms; 0 is healthy, more means a failing device or controller",
        |disk| disk.load.counters.stalls,
    ),
    ("stall_overdue", "Requests that became overdue in stalls", |disk| {
        disk.load.counters.stall_overdue
    }),
    (
        "target_measured",
        "Requests measured against the latency target: those of its kind on a loaded disk",
        |disk| disk.load.counters.measured,
    ),
    ("target_over", "Of these, requests that took longer than the target", |disk| {
        disk.load.counters.over_target
    }),
];

pub(super) const DISK_SECONDS: &[Metric<DiskSnapshot, u64>] = &[
    ("late_turn_seconds", "Delay of these polls, summed over queues", |disk| {
        disk.totals.late_nanos
    }),
    ("stalled_seconds", "Time in which the disk stalled; part of waited_seconds", |disk| {
        disk.load.counters.stalled_nanos
    }),
    (
        "waited_seconds",
        "Time in which work waited for the disk all along, stalls included",
        |disk| disk.load.counters.waited_nanos,
    ),
    (
        "waited_consumption",
        "Disk time completed in that time, in seconds; divided by that time, it is the speed over \
         any span",
        |disk| disk_nanos(disk.load.counters.waited_consumption),
    ),
];

fn permille(of: u64) -> f64 {
    of as f64 / 1000.0
}

fn rate(disk: &DiskSnapshot, of: fn(&DiskRates) -> u64) -> Option<f64> {
    disk.rates.as_ref().map(|rates| of(rates) as f64)
}
