//! The counters of the queues of all disks, added up.

use std::sync::Arc;

use forebay_core::{DiskTime, Op};

use super::Scheduler;
use crate::accounting;
use crate::messages;
use crate::metrics::{ClassSnapshot, DiskSnapshot, PageCacheReads, QueueMetrics, Snapshot};
use crate::registry::{ClassRecord, DiskRecord};
use crate::sys::clock::Clock;

impl Scheduler {
    /// All counters of all disks and classes.
    ///
    /// It briefly takes the locks of classes and permits, and reads the kernel's counters of each
    /// disk, the process and the page cache, so do not call it for each request. The counters of a
    /// shard's queue are up to a millisecond old. Empty in a forked child.
    pub fn snapshot(&self) -> Snapshot {
        let Ok(registry) = self.shared.registry() else { return Snapshot::default() };
        let (disks, classes) = (registry.disks.clone(), registry.classes.clone());
        drop(registry);
        let now = Clock::of_process().now();
        let below = accounting::snapshot_of(&disks, &classes);
        let mut snapshots: Vec<_> = disks.iter().map(|disk| of_disk(disk, &classes)).collect();
        for (disk, (traffic, held)) in snapshots.iter_mut().zip(below) {
            disk.traffic = traffic;
            for (class, nanos) in disk.classes.iter_mut().zip(held) {
                class.stuck_nanos = if class.stuck_requests > 0 { nanos } else { 0 };
            }
        }
        Snapshot {
            disks: snapshots,
            page_cache: classes.iter().map(|class| page_cache_reads(class)).collect(),
            discards: classes
                .iter()
                .map(|class| class.discards.snapshot(&class.name, now))
                .collect(),
            unlisted_opens: self.shared.unlisted.opens(),
            messages_lost: messages::lost(),
            bugs: messages::bugs(),
            uptime_nanos: now.as_nanos(),
        }
    }
}

fn of_disk(disk: &DiskRecord, classes: &[Arc<ClassRecord>]) -> DiskSnapshot {
    let io = &disk.here().of(Op::Read).io;
    // With a latency target, the correction of the window has a figure of its own.
    let window = if io.latency_target().is_some() { io.window() } else { io.window_in_force() };
    let known = |time: DiskTime, unknown| (time != unknown).then(|| time.as_nanos_ceil());
    let mut snapshot = DiskSnapshot {
        name: disk.name.clone(),
        rates: disk.rates(),
        effective_goal_nanos: known(io.effective_goal(), DiskTime::MAX),
        window_nanos: known(window, DiskTime::MAX),
        base_latency_nanos: known(io.base_latency(), DiskTime::ZERO),
        load: disk.load(),
        classes: classes.iter().map(|class| named(class)).collect(),
        ..DiskSnapshot::default()
    };
    for group in disk.groups() {
        snapshot.in_flight_nanos += group.io.in_flight().as_nanos_ceil();
        snapshot.queues += u32::try_from(group.io.queues()).unwrap_or(u32::MAX);
        let overdue = group.io.turn_overdue_nanos(Clock::of_process().now());
        snapshot.turn_overdue_nanos = snapshot.turn_overdue_nanos.max(overdue);
        let queues: Vec<&QueueMetrics> = group.all_metrics().collect();
        for queue in &queues {
            queue.backend().into_iter().for_each(|backend| snapshot.engines.add(backend));
            queue.add_totals_to(&mut snapshot.totals, &mut snapshot.retries);
        }
        for (class, of_class) in classes.iter().zip(&mut snapshot.classes) {
            if let Some(id) = class.id(group.slot) {
                queues.iter().for_each(|queue| queue.add_class_to(id, of_class));
            }
        }
    }
    if disk.has_given_up() {
        for (class, of_class) in classes.iter().zip(&mut snapshot.classes) {
            of_class.stuck_requests = disk.held(class).count();
        }
    }
    snapshot
}

fn named(class: &ClassRecord) -> ClassSnapshot {
    let shares = class.settings.lock().shares;
    ClassSnapshot { name: class.name.clone(), shares, ..ClassSnapshot::default() }
}

fn page_cache_reads(class: &ClassRecord) -> PageCacheReads {
    PageCacheReads { class: class.name.clone(), counters: class.reads.sum() }
}
