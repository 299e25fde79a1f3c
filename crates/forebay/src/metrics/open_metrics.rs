//! A snapshot as OpenMetrics text.
//!
//! Names are Seastar's (group `io_queue`, labels `mountpoint` and `class`)
//! where they mean the same, behind the prefix `forebay_`; OpenMetrics adds
//! `_total` to the name of every counter.

mod devices;
mod discards;
mod page_cache;

use std::fmt;

use forebay_core::{Blocked, ClassCounters, DiskRates, DiskTime, Op};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

use self::devices::Devices;
use self::discards::DiscardMetrics;
use self::page_cache::PageCache;
use super::{ClassSnapshot, DiskSnapshot, Distribution, Engines, Snapshot};

/// The text of a scrape, without the classes that have asked for nothing yet,
/// each on the disk where it has not: content type
/// `application/openmetrics-text; version=1.0.0; charset=utf-8`.
pub fn open_metrics(snapshot: Snapshot) -> String {
    let mut registry = Registry::with_prefix("forebay");
    registry.register_collector(Box::new(Bugs(snapshot.bugs)));
    let page_cache = registry.sub_registry_with_prefix("page_cache");
    page_cache.register_collector(Box::new(PageCache(snapshot.page_cache.clone())));
    let discards = DiscardMetrics(snapshot.discards.clone());
    registry.sub_registry_with_prefix("discards").register_collector(Box::new(discards));
    let devices = snapshot.disks.iter().map(|disk| (disk.name.clone(), disk.traffic.clone()));
    let devices = Devices(devices.collect());
    registry.sub_registry_with_prefix("device").register_collector(Box::new(devices));
    let queues = registry.sub_registry_with_prefix("io_queue");
    queues.register_collector(Box::new(Scrape(snapshot)));
    let mut text = String::new();
    // writing into a string does not fail
    let _ = encode(&mut text, &registry);
    text
}

#[derive(Debug)]
struct Scrape(Snapshot);

/// Of the process, not of its queues.
#[derive(Debug)]
struct Bugs(u64);

impl Collector for Bugs {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let help = "Impossible states of the process that were met: bugs in forebay";
        let metric = encoder.encode_descriptor("bugs", help, None, MetricType::Counter)?;
        ConstCounter::new(self.0).encode(metric)
    }
}

/// One metric: its name, what it says, and its value.
type Metric<T, V> = (&'static str, &'static str, fn(&T) -> V);

const CLASS_COUNTERS: &[Metric<ClassSnapshot, u64>] = &[
    ("total_bytes", "Bytes read and written", |class| {
        bytes(class, Op::Read).wrapping_add(bytes(class, Op::Write))
    }),
    ("total_operations", "Reads and writes done", |class| {
        operations(class, Op::Read) + operations(class, Op::Write)
    }),
    ("total_read_bytes", "Bytes read", |class| bytes(class, Op::Read)),
    ("total_read_ops", "Reads done", |class| operations(class, Op::Read)),
    ("total_write_bytes", "Bytes written", |class| bytes(class, Op::Write)),
    ("total_write_ops", "Writes done", |class| operations(class, Op::Write)),
    ("total_discard_bytes", "Bytes discarded", |class| bytes(class, Op::Discard)),
    ("total_discard_ops", "Discards done", |class| operations(class, Op::Discard)),
    ("total_flush_ops", "Flushes done", |class| operations(class, Op::Flush)),
    ("total_split_ops", "Requests that were split", |class| class.counters.splits),
    ("total_split_bytes", "Bytes of requests that were split", |class| class.counters.split_bytes),
    ("errors", "Requests that the disk failed", |class| class.counters.errors),
    ("cancelled", "Requests cancelled while they waited", |class| class.counters.cancelled),
    ("overdue", "Requests that the window no longer waits for", |class| class.counters.overdue),
    ("activations", "Times the class went from idle to backlogged", |class| {
        class.counters.activations
    }),
];

const CLASS_SECONDS: &[Metric<ClassSnapshot, u64>] = &[
    ("total_delay_sec", "Time spent queued", |class| class.counters.queue_nanos),
    ("total_exec_sec", "Time spent in the disk", |class| class.counters.disk_nanos),
    ("starvation_time_sec", "Time with requests queued and none in the disk", |class| {
        class.counters.starved_nanos
    }),
    ("limited_time_sec", "Time for which an upper limit has held requests back", |class| {
        class.counters.limited_nanos
    }),
    ("consumption", "Disk time dispatched, in seconds", |class| {
        disk_nanos(class.counters.consumption)
    }),
];

const CLASS_GAUGES: &[Metric<ClassSnapshot, f64>] = &[
    ("queue_length", "Requests waiting", |class| f64::from(class.counters.queued)),
    ("disk_queue_length", "Requests in the disk", |class| f64::from(class.counters.in_disk)),
    (
        "held_long",
        "Permits and requests in the disk for far longer than they should take; 0 is healthy, more \
         means a disk that hangs, or permits held while their holder waits for something else",
        |class| f64::from(class.held_long),
    ),
    (
        "held_long_seconds",
        "For how long some of them are held, at least; known to a second",
        |class| seconds(class.held_long_nanos),
    ),
    ("shares", "Shares", |class| f64::from(class.shares)),
    ("delay", "Time that the request dispatched last was queued, in seconds", |class| {
        seconds(class.counters.queue_nanos_last)
    }),
];

/// Which of a class's distributions.
type Which = fn(&ClassSnapshot) -> &Distribution;

const CLASS_HISTOGRAMS: &[(&str, &str, Which)] = &[
    ("queue_latency_seconds", "Time queued", |class| &class.in_queue),
    ("disk_latency_seconds", "Time in the disk", |class| &class.in_disk),
    ("latency_seconds", "Time queued and in the disk", |class| &class.total),
];

const DISK_GAUGES: &[Metric<DiskSnapshot, Option<f64>>] = &[
    (
        "flow_ratio",
        "Requests dispatched per request completed; 1 by construction under a window, which \
         therefore shows in the speed whether the disk is slow",
        |disk| Some(disk.totals.flow_ratio_permille as f64 / 1000.0),
    ),
    ("in_disk", "Requests in the disk", |disk| Some(f64::from(disk.totals.in_disk))),
    ("in_disk_seconds", "Disk time of what is in the disk", |disk| {
        Some(seconds(disk.in_flight_nanos))
    }),
    ("effective_goal_seconds", "Disk time that may wait in the disk", |disk| {
        disk.effective_goal_nanos.map(seconds)
    }),
    ("window_seconds", "Disk time that may be unfinished in the disk", |disk| {
        disk.window_nanos.map(seconds)
    }),
    (
        "speed",
        "What the disk did of what its figures say when work last waited for it; 0.9 or more is \
         healthy, less means wrong figures for this mix (run forebay explore) or a disk in trouble",
        |disk| disk.load.speed_permille.map(permille),
    ),
    (
        "pace",
        "Factor on the disk's rate at which requests go; 1 unless the latency target corrects it",
        |disk| disk.rates.map(|_| permille(disk.load.pace_permille)),
    ),
    ("latency_target_seconds", "What the percentile of the latency target may be", |disk| {
        disk.load.target.map(|status| status.latency.as_secs_f64())
    }),
    (
        "latency_target_holds",
        "Whether the latency target held when work last waited; 1 is healthy",
        |disk| disk.load.target.map(|status| f64::from(u8::from(status.holds))),
    ),
    (
        "latency_target_attainable",
        "Whether sending less keeps the latency target; 0 means that it is given up for now",
        |disk| disk.load.target.map(|status| f64::from(u8::from(status.attainable))),
    ),
    (
        "window_corrected_seconds",
        "The window in force, as the latency target corrects it; between the base latency and \
         the window",
        |disk| disk.load.target.map(|status| seconds(disk_nanos(status.window))),
    ),
    ("base_latency_seconds", "Latency of the idle disk, stated or learnt", |disk| {
        disk.base_latency_nanos.map(seconds)
    }),
    ("read_iops", "Configured rate", |disk| rate(disk, |rates| rates.read_iops)),
    ("write_iops", "Configured rate", |disk| rate(disk, |rates| rates.write_iops)),
    ("read_bandwidth", "Configured rate, bytes per second", |disk| {
        rate(disk, |rates| rates.read_bandwidth)
    }),
    ("write_bandwidth", "Configured rate, bytes per second", |disk| {
        rate(disk, |rates| rates.write_bandwidth)
    }),
];

const DISK_COUNTERS: &[Metric<DiskSnapshot, u64>] = &[
    ("late_turns", "Turns that came late: their threads were elsewhere; rare is healthy", |disk| {
        disk.totals.late_turns
    }),
    ("past_window", "Requests that went while the window was full, for a holder's sake", |disk| {
        disk.totals.window_bypasses
    }),
    (
        "target_measured",
        "Requests measured against the latency target: those of its kind that met a loaded disk",
        |disk| disk.load.counters.measured,
    ),
    ("target_over", "Of these, those that took longer in the disk", |disk| {
        disk.load.counters.over_target
    }),
];

const DISK_SECONDS: &[Metric<DiskSnapshot, u64>] = &[
    ("late_turn_sec", "For how long no turn had ended before the late ones", |disk| {
        disk.totals.late_nanos
    }),
    ("waited_sec", "Time in which work waited for the disk throughout", |disk| {
        disk.load.counters.waited_nanos
    }),
    (
        "waited_consumption",
        "Disk time completed in that time, in seconds: divided by it, the speed over any span",
        |disk| disk_nanos(disk.load.counters.served_meanwhile),
    ),
];

impl Collector for Scrape {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        for &(name, help, value) in CLASS_COUNTERS {
            self.classes(&mut encoder, (name, help, MetricType::Counter), |class, metric| {
                ConstCounter::new(value(class)).encode(metric)
            })?;
        }
        for &(name, help, nanos) in CLASS_SECONDS {
            self.classes(&mut encoder, (name, help, MetricType::Counter), |class, metric| {
                ConstCounter::new(seconds(nanos(class))).encode(metric)
            })?;
        }
        for &(name, help, value) in CLASS_GAUGES {
            self.classes(&mut encoder, (name, help, MetricType::Gauge), |class, metric| {
                ConstGauge::new(value(class)).encode(metric)
            })?;
        }
        for &(name, help, distribution) in CLASS_HISTOGRAMS {
            self.classes(&mut encoder, (name, help, MetricType::Histogram), |class, metric| {
                histogram(distribution(class), metric)
            })?;
        }
        self.disks(&mut encoder)?;
        self.engines(&mut encoder)?;
        self.unlisted(&mut encoder)?;
        self.messages(&mut encoder)?;
        self.reasons(&mut encoder)?;
        self.retries(&mut encoder)
    }
}

impl Scrape {
    /// One metric of every class of every disk.
    fn classes(
        &self,
        encoder: &mut DescriptorEncoder<'_>,
        (name, help, kind): (&str, &str, MetricType),
        put: impl Fn(&ClassSnapshot, MetricEncoder<'_>) -> fmt::Result,
    ) -> fmt::Result {
        let mut metric = encoder.encode_descriptor(name, help, None, kind)?;
        for disk in &self.0.disks {
            for class in disk.classes.iter().filter(|class| is_in_use(class)) {
                let labels = [("mountpoint", &disk.name), ("class", &class.name)];
                put(class, metric.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }

    fn disks(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        for &(name, help, value) in DISK_GAUGES {
            let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            for disk in &self.0.disks {
                if let Some(value) = value(disk) {
                    let labels = [("mountpoint", &disk.name)];
                    ConstGauge::new(value).encode(metric.encode_family(&labels)?)?;
                }
            }
        }
        for &(name, help, value) in DISK_COUNTERS {
            let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
            for disk in &self.0.disks {
                let labels = [("mountpoint", &disk.name)];
                ConstCounter::new(value(disk)).encode(metric.encode_family(&labels)?)?;
            }
        }
        for &(name, help, nanos) in DISK_SECONDS {
            let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
            for disk in &self.0.disks {
                let labels = [("mountpoint", &disk.name)];
                ConstCounter::new(seconds(nanos(disk))).encode(metric.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }

    fn engines(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let help = "Queues of shards and I/O threads, by what executes their requests";
        let mut metric = encoder.encode_descriptor("engines", help, None, MetricType::Gauge)?;
        for disk in &self.0.disks {
            let Engines { io_uring, threads, null } = disk.engines;
            for (backend, count) in [("io_uring", io_uring), ("threads", threads), ("null", null)] {
                let labels = [("mountpoint", disk.name.as_str()), ("backend", backend)];
                ConstGauge::new(u64::from(count)).encode(metric.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }

    fn unlisted(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let help = "Files opened or looked up on disks that no entry covers";
        let metric =
            encoder.encode_descriptor("unlisted_opens", help, None, MetricType::Counter)?;
        ConstCounter::new(self.0.unlisted_opens).encode(metric)
    }

    fn messages(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let help = "Messages and events of the process that were lost: the log is too slow";
        let metric = encoder.encode_descriptor("messages_lost", help, None, MetricType::Counter)?;
        ConstCounter::new(self.0.messages_lost).encode(metric)
    }

    /// How long queues let nothing through, by reason.
    fn reasons(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let help = "Time in which nothing was dispatched, summed over queues";
        let kind = MetricType::Counter;
        let mut metric = encoder.encode_descriptor("blocked_seconds", help, None, kind)?;
        for disk in &self.0.disks {
            for reason in Blocked::ALL {
                let labels = [("mountpoint", disk.name.as_str()), ("reason", reason.name())];
                let value = seconds(disk.blocked_nanos(reason));
                ConstCounter::new(value).encode(metric.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }

    fn retries(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let help = "Requests tried without blocking that had to be repeated";
        let mut metric = encoder.encode_descriptor("retries", help, None, MetricType::Counter)?;
        for disk in &self.0.disks {
            for (direction, count) in [("read", disk.retries.reads), ("write", disk.retries.writes)]
            {
                let labels = [("mountpoint", disk.name.as_str()), ("direction", direction)];
                ConstCounter::new(count).encode(metric.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }
}

/// Whether the class has ever asked for anything on the disk.
fn is_in_use(class: &ClassSnapshot) -> bool {
    class.counters != ClassCounters::default()
}

fn histogram(distribution: &Distribution, mut metric: MetricEncoder<'_>) -> fmt::Result {
    let mut buckets: Vec<_> =
        distribution.doublings().map(|(end, count)| (seconds(end), count)).collect();
    if let Some(last) = buckets.last_mut() {
        last.0 = f64::INFINITY;
    }
    let sum = seconds(distribution.sum_nanos());
    metric.encode_histogram::<NoLabelSet>(sum, distribution.count(), &buckets, None)
}

fn operations(class: &ClassSnapshot, op: Op) -> u64 {
    class.counters.operations[op.index()]
}

fn bytes(class: &ClassSnapshot, op: Op) -> u64 {
    class.counters.bytes[op.index()]
}

fn permille(of: u64) -> f64 {
    of as f64 / 1000.0
}

fn rate(disk: &DiskSnapshot, of: fn(&DiskRates) -> u64) -> Option<f64> {
    disk.rates.as_ref().map(|rates| of(rates) as f64)
}

fn disk_nanos(time: DiskTime) -> u64 {
    time.as_nanos_ceil()
}

fn seconds(nanos: u64) -> f64 {
    nanos as f64 / 1e9
}

#[cfg(test)]
mod tests;
