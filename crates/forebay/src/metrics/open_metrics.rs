//! Snapshots as OpenMetrics text.
//!
//! Metrics with the same meaning have Seastar's names (group `io_queue`, labels `mountpoint` and
//! `class`), after the prefix `forebay_`. OpenMetrics adds `_total` to the name of every counter.

mod devices;
mod discards;
mod disks;
mod metric;
mod page_cache;

use std::fmt;

use forebay_core::{Blocked, ClassCounters, Op};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::MetricType::{Counter, Gauge, Histogram};
use prometheus_client::registry::Registry;

use self::discards::{DISCARD_COUNTERS, DISCARD_GAUGES};
use self::disks::{DISK_COUNTERS, DISK_GAUGES, DISK_SECONDS};
use self::metric::{Metric, Section, Value, disk_nanos, seconds};
use self::page_cache::PAGE_CACHE_COUNTERS;
use super::{ClassSnapshot, Discards, Distribution, Engines, PageCacheReads, Snapshot};
use crate::PageCacheCounters;
use crate::engine::Backend;

/// The text of a scrape, with the content type `application/openmetrics-text; version=1.0.0;
/// charset=utf-8`. It leaves out classes without requests on a disk.
pub fn open_metrics(snapshot: Snapshot) -> String {
    open_metrics_of(snapshot, &[])
}

/// [`open_metrics`] with additional labels, pairs of name and value, on every series.
pub fn open_metrics_of(snapshot: Snapshot, labels: &[(&'static str, &'static str)]) -> String {
    let labels = labels.iter().map(|&(name, value)| (name.into(), value.into()));
    let mut registry = Registry::with_prefix_and_labels("forebay", labels);
    registry.register_collector(Box::new(Scrape(snapshot)));
    let mut text = String::new();
    // Writing into a string does not fail.
    let _ = encode(&mut text, &registry);
    text
}

#[derive(Debug)]
struct Scrape(Snapshot);

const CLASS_COUNTERS: &[Metric<ClassSnapshot, u64>] = &[
    ("total_bytes", "Bytes read and written", |class| {
        bytes(class, Op::Read).wrapping_add(bytes(class, Op::Write))
    }),
    ("total_operations", "Reads and writes completed", |class| {
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
        "Reads, or parts of large reads, not aligned to 4 KiB; 0 is healthy",
        |class| misaligned(class, Op::Read),
    ),
    (
        "misaligned_write_ops",
        "Writes, or parts of large writes, not aligned to 4 KiB; 0 is healthy, as each may need a \
         read first",
        |class| misaligned(class, Op::Write),
    ),
    ("errors", "Requests that the disk failed", |class| class.counters.errors),
    ("cancelled", "Requests cancelled while they waited", |class| class.counters.cancelled),
    ("overdue", "Requests that took so long that the window no longer counts them", |class| {
        class.counters.overdue
    }),
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
        "Time for which an upper limit delayed the class, summed over queues; 0 is healthy, \
         except for classes with a limit below the rate of the disk",
        |class| class.counters.limited_nanos,
    ),
    ("consumption", "Disk time dispatched, in seconds", |class| {
        disk_nanos(class.counters.consumption)
    }),
];

const CLASS_GAUGES: &[Metric<ClassSnapshot, f64>] = &[
    ("queue_length", "Requests waiting", |class| f64::from(class.counters.queued)),
    ("disk_queue_length", "Requests in the disk", |class| f64::from(class.counters.in_disk)),
    (
        "stuck_requests",
        "Permits and requests in the disk for far longer than expected; 0 is healthy, more means \
         a disk that hangs, or permits whose holder waits for something else",
        |class| f64::from(class.stuck_requests),
    ),
    ("stuck_seconds", "Minimum age of the oldest of them, to a second", |class| {
        seconds(class.stuck_nanos)
    }),
    ("shares", "Shares", |class| f64::from(class.shares)),
    ("delay", "Time in the queue of the request that was dispatched last, in seconds", |class| {
        seconds(class.counters.queue_nanos_last)
    }),
    (
        "delay_max_seconds",
        "Longest time of a request in a queue, over all queues, since the class was added",
        |class| seconds(class.counters.queue_nanos_max),
    ),
];

/// Selects one of a class's distributions.
type DistributionOf = fn(&ClassSnapshot) -> &Distribution;

const CLASS_HISTOGRAMS: &[(&str, &str, DistributionOf)] = &[
    ("queue_latency_seconds", "Time queued", |class| &class.in_queue),
    ("disk_latency_seconds", "Time in the disk", |class| &class.in_disk),
    ("latency_seconds", "Time queued and in the disk", |class| &class.total),
];

impl Collector for Scrape {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        self.process(&mut Section(&mut encoder, ""))?;
        self.page_cache(&mut Section(&mut encoder, "page_cache_"))?;
        self.discards(&mut Section(&mut encoder, "discards_"))?;
        devices::encode(&mut Section(&mut encoder, "device_"), &self.0.disks)?;
        let queues = &mut Section(&mut encoder, "io_queue_");
        self.classes(queues)?;
        self.disks(queues)?;
        self.parts(queues)
    }
}

impl Scrape {
    fn process(&self, process: &mut Section<'_, '_>) -> fmt::Result {
        let help = "Violated invariants: bugs in forebay";
        process.one(Counter, "bugs", help, Value::Count(self.0.bugs))?;
        let help = "Time since the process began to use forebay";
        let uptime = match self.0.uptime_nanos {
            0 => Value::Unknown,
            nanos => Value::Gauge(seconds(nanos)),
        };
        process.one(Gauge, "uptime_seconds", help, uptime)
    }

    fn page_cache(&self, page_cache: &mut Section<'_, '_>) -> fmt::Result {
        let is_in_use = |of: &&PageCacheReads| of.counters != PageCacheCounters::default();
        let reads = self.0.page_cache.iter().filter(is_in_use);
        let reads = reads.map(|of| ([("class", of.class.as_str())], &of.counters));
        page_cache.table(Counter, PAGE_CACHE_COUNTERS, &reads, Value::Count)
    }

    fn discards(&self, discards: &mut Section<'_, '_>) -> fmt::Result {
        let is_in_use = |of: &&Discards| of.files + of.errors + of.backlog_files > 0;
        let used = self.0.discards.iter().filter(is_in_use);
        let used = used.map(|of| ([("class", of.class.as_str())], of));
        discards.table(Counter, DISCARD_COUNTERS, &used, Value::Count)?;
        discards.table(Gauge, DISCARD_GAUGES, &used, Value::Gauge)
    }

    /// The metrics of every class of every disk.
    fn classes(&self, queues: &mut Section<'_, '_>) -> fmt::Result {
        let classes = self.0.disks.iter().flat_map(|disk| {
            let used = disk.classes.iter().filter(|class| is_in_use(class));
            used.map(move |class| {
                ([("mountpoint", disk.name.as_str()), ("class", class.name.as_str())], class)
            })
        });
        queues.table(Counter, CLASS_COUNTERS, &classes, Value::Count)?;
        queues.table(Counter, CLASS_SECONDS, &classes, Value::Nanos)?;
        queues.table(Gauge, CLASS_GAUGES, &classes, Value::Gauge)?;
        CLASS_HISTOGRAMS.iter().try_for_each(|&(name, help, of)| {
            let classes = classes.clone().map(|(labels, class)| (labels, Value::Times(of(class))));
            queues.family(Histogram, (name, help), &classes)
        })
    }

    fn disks(&self, queues: &mut Section<'_, '_>) -> fmt::Result {
        let disks = self.0.disks.iter().map(|disk| ([("mountpoint", disk.name.as_str())], disk));
        let known = |value: Option<f64>| value.map_or(Value::Unknown, Value::Gauge);
        queues.table(Gauge, DISK_GAUGES, &disks, known)?;
        queues.table(Counter, DISK_COUNTERS, &disks, Value::Count)?;
        queues.table(Counter, DISK_SECONDS, &disks, Value::Nanos)
    }

    /// Metrics of disks by engine, reason or direction, and metrics of no disk.
    fn parts(&self, queues: &mut Section<'_, '_>) -> fmt::Result {
        let disks = || self.0.disks.iter().map(|disk| (("mountpoint", disk.name.as_str()), disk));
        let help = "Queues of shards and I/O threads, by what executes their requests";
        let engines = disks().flat_map(|(mountpoint, disk)| {
            let Engines { io_uring, linux_aio, threads, null } = disk.engines;
            [
                (Backend::IoUring, io_uring),
                (Backend::LinuxAio, linux_aio),
                (Backend::Threads, threads),
                (Backend::Null, null),
            ]
            .map(|(of, count)| ([mountpoint, ("backend", of.name())], Value::Number(count.into())))
        });
        queues.family(Gauge, ("engines", help), &engines)?;
        let help = "Files on disks without an entry in the I/O properties";
        queues.one(Counter, "unlisted_opens", help, Value::Count(self.0.unlisted_opens))?;
        let help =
            "Log messages and events of the process that were dropped: the logger is too slow";
        queues.one(Counter, "messages_lost", help, Value::Count(self.0.messages_lost))?;
        let help = "Time in which nothing was dispatched, summed over queues";
        let blocked = disks().flat_map(|(mountpoint, disk)| {
            Blocked::ALL.map(|reason| {
                let nanos = Value::Nanos(disk.blocked_nanos(reason));
                ([mountpoint, ("reason", reason.name())], nanos)
            })
        });
        queues.family(Counter, ("blocked_seconds", help), &blocked)?;
        let help = "Requests first tried without blocking, and repeated because they would have \
                    blocked";
        let retries = disks().flat_map(|(mountpoint, disk)| {
            [("read", disk.retries.reads), ("write", disk.retries.writes)]
                .map(|(of, count)| ([mountpoint, ("direction", of)], Value::Count(count)))
        });
        queues.family(Counter, ("retries", help), &retries)
    }
}

/// Whether the class has made any request on the disk.
fn is_in_use(class: &ClassSnapshot) -> bool {
    class.counters != ClassCounters::default()
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
