//! A snapshot as OpenMetrics text.
//!
//! Names are Seastar's (group `io_queue`, labels `mountpoint` and `class`)
//! where they mean the same, behind the prefix `forebay_`; OpenMetrics adds
//! `_total` to the name of every counter.

mod devices;
mod discards;
mod disks;
mod metric;
mod page_cache;
mod process;

use std::fmt;

use forebay_core::{Blocked, ClassCounters, Op};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

use self::devices::Devices;
use self::discards::DiscardMetrics;
use self::disks::{DISK_COUNTERS, DISK_GAUGES, DISK_SECONDS};
use self::metric::{Metric, disk_nanos, seconds};
use self::page_cache::PageCache;
use self::process::Process;
use super::{ClassSnapshot, Distribution, Engines, Snapshot};
use crate::engine::Backend;

/// The text of a scrape, without the classes that have asked for nothing yet,
/// each on the disk where it has not: content type
/// `application/openmetrics-text; version=1.0.0; charset=utf-8`.
pub fn open_metrics(snapshot: Snapshot) -> String {
    open_metrics_of(snapshot, &[])
}

/// [`open_metrics`] with these labels, names and values, on every series.
pub fn open_metrics_of(snapshot: Snapshot, labels: &[(&'static str, &'static str)]) -> String {
    let labels = labels.iter().map(|&(name, value)| (name.into(), value.into()));
    let mut registry = Registry::with_prefix_and_labels("forebay", labels);
    registry.register_collector(Box::new(Process::of(&snapshot)));
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
    (
        "misaligned_read_ops",
        "Reads, and parts of large ones, that begin or end at no multiple of 4 KiB; 0 is healthy",
        |class| misaligned(class, Op::Read),
    ),
    (
        "misaligned_write_ops",
        "Writes of that kind; 0 is healthy, each may cost the disk or the file system a read before",
        |class| misaligned(class, Op::Write),
    ),
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
    (
        "limited_seconds",
        "Time for which an upper limit kept the class back, summed over queues; 0 is healthy but \
         for classes that are meant to have less than the disk could give",
        |class| class.counters.limited_nanos,
    ),
    ("limited_time_sec", "Old name of limited_seconds, for one release", |class| {
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
    (
        "delay_max_seconds",
        "Longest time that a request was queued before it was dispatched, over all queues, since the \
         class was added",
        |class| seconds(class.counters.queue_nanos_max),
    ),
];

/// Which of a class's distributions.
type Which = fn(&ClassSnapshot) -> &Distribution;

const CLASS_HISTOGRAMS: &[(&str, &str, Which)] = &[
    ("queue_latency_seconds", "Time queued", |class| &class.in_queue),
    ("disk_latency_seconds", "Time in the disk", |class| &class.in_disk),
    ("latency_seconds", "Time queued and in the disk", |class| &class.total),
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
            let Engines { io_uring, linux_aio, threads, null } = disk.engines;
            for (backend, count) in [
                (Backend::IoUring, io_uring),
                (Backend::LinuxAio, linux_aio),
                (Backend::Threads, threads),
                (Backend::Null, null),
            ] {
                let labels = [("mountpoint", disk.name.as_str()), ("backend", backend.name())];
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
        let help =
            "Log messages and events of the process that were dropped: the logger is too slow";
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

fn misaligned(class: &ClassSnapshot, op: Op) -> u64 {
    class.counters.misaligned[op.index()]
}

fn bytes(class: &ClassSnapshot, op: Op) -> u64 {
    class.counters.bytes[op.index()]
}

#[cfg(test)]
mod tests;
