//! The published metrics of one I/O queue.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use forebay_core::{
    Blocked, CLASSES_MAX, ClassCounters, ClassId, Completion, IoQueue, QueueCounters, Time,
};

use super::histogram::{Histogram, add};
use super::snapshot::ClassSnapshot;
use crate::engine::{Backend, Retries};
use crate::messages;
use crate::sys::lock::Lock;

/// The time between two publications of counters while there is work, in nanoseconds.
const PUBLISH_NANOS: u64 = 1_000_000;
/// With at most this many classes, counters are published before every pause, because copying them
/// takes hardly any time.
const CLASSES_AT_EVERY_PAUSE_MAX: usize = 64;

/// The owner of the queue writes it, one thread at a time. Any thread may read it.
#[derive(Debug)]
pub(crate) struct QueueMetrics {
    classes: Box<[OnceLock<Box<ClassHistograms>>]>,
    published: Lock<Published>,
    publish_at: AtomicU64,
}

#[derive(Debug)]
struct ClassHistograms {
    owner: AtomicU32,
    /// The times in the disk of requests that did not wait. They are also their total times.
    at_once: Histogram,
    /// The times in the queue of requests that waited.
    in_queue: Histogram,
    in_disk: Histogram,
    total: Histogram,
    /// The number of requests that ended after the window had given them up.
    returned: AtomicU64,
    /// Sums of times over all requests.
    queue_nanos: AtomicU64,
    disk_nanos: AtomicU64,
}

/// Copies of counters.
#[derive(Debug, Default)]
struct Published {
    now: Counters,
    /// The counters of earlier queues in this place, which have ended.
    earlier: Counters,
    /// The backend of the queue, while the queue exists.
    backend: Option<Backend>,
    /// The bytes of all classes, and the part of each class in them.
    bytes: [u64; 4],
    added_up: Vec<AddedUp>,
}

/// The added bytes of the class in a place.
#[derive(Clone, Copy, Debug, Default)]
struct AddedUp {
    bytes: [u64; 4],
    /// The removed class whose place another class may have.
    removed: Option<ClassId>,
}

/// The holding times of a class's requests, and the requests that the window of a disk has given
/// up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Held {
    /// The number of requests that were given up.
    pub(crate) given_up: u64,
    /// The number of these that have ended.
    pub(crate) returned: u64,
    /// The number of requests in the disk now, given up or not.
    pub(crate) in_disk: u32,
    /// The number of requests that have ended, and the sum of their times in the disk.
    pub(crate) ended: u64,
    pub(crate) held_nanos: u64,
    /// The cost of these requests and of those in the disk, in nanoseconds.
    pub(crate) cost_nanos: u64,
}

#[derive(Debug, Default)]
struct Counters {
    totals: QueueCounters,
    classes: Vec<ClassCounters>,
    retries: Retries,
}

impl Default for QueueMetrics {
    fn default() -> Self {
        Self {
            classes: (0..CLASSES_MAX).map(|_| OnceLock::new()).collect(),
            published: Lock::default(),
            publish_at: AtomicU64::new(0),
        }
    }
}

impl QueueMetrics {
    /// Begins a new queue in the place of one that has ended.
    pub(crate) fn begin(&self) {
        let mut published = self.published.lock();
        published.add_up();
        published.added_up.clear();
        let Published { now, earlier, .. } = &mut *published;
        // No request of the old queue waits or is in the disk any more.
        earlier.totals.merge(&QueueCounters { in_disk: 0, ..now.totals.clone() });
        for (index, ended) in now.classes.drain(..).enumerate() {
            match earlier.classes.get_mut(index) {
                Some(counters) => counters.succeed(ended),
                None => earlier.classes.push(ended.ended()),
            }
        }
        now.totals = QueueCounters::default();
        earlier.retries += std::mem::take(&mut now.retries);
    }

    /// Counts a completed request. Only for the owner of the queue.
    #[inline]
    pub(crate) fn record(&self, completion: &Completion) {
        let Completion { class, queue_nanos, disk_nanos, overdue, .. } = *completion;
        let histograms = self.histograms(class);
        let histograms = histograms.or_else(|| self.give_place(class));
        if let Some(histograms) = histograms {
            if overdue {
                add(&histograms.returned, 1);
            }
            histograms.record(queue_nanos, disk_nanos);
        }
    }

    /// The histograms of a class, if it has its place.
    fn histograms(&self, class: ClassId) -> Option<&ClassHistograms> {
        let histograms = self.classes.get(class.index())?.get()?;
        (histograms.owner.load(Ordering::Relaxed) == class.to_bits()).then_some(histograms)
    }

    /// Gives the place to `class`. It is not inlined in [`QueueMetrics::record`], so that that
    /// stays small.
    #[cold]
    fn give_place(&self, class: ClassId) -> Option<&ClassHistograms> {
        let Some(place) = self.classes.get(class.index()) else {
            messages::report_invariant("a class has no place for its figures");
            return None;
        };
        let histograms = place.get_or_init(|| Box::new(ClassHistograms::new(class)));
        histograms.clear(class);
        Some(histograms)
    }

    /// Publishes the queue's counters if it is time. Only for the owner of the queue.
    pub(crate) fn publish(&self, now: Time, queue: &IoQueue, retries: Retries, pausing: bool) {
        let at_every_pause = queue.classes().len() <= CLASSES_AT_EVERY_PAUSE_MAX;
        let is_due = now.as_nanos() >= self.publish_at.load(Ordering::Relaxed);
        if is_due || (pausing && at_every_pause) {
            self.publish_at.store(now.plus_nanos(PUBLISH_NANOS).as_nanos(), Ordering::Relaxed);
            self.publish_now(queue, retries);
        }
    }

    /// Publishes the queue's counters. Only for the owner of the queue.
    pub(crate) fn publish_now(&self, queue: &IoQueue, retries: Retries) {
        let Published { now, .. } = &mut *self.published.lock();
        now.totals = queue.counters();
        now.classes.clear();
        now.classes.extend_from_slice(queue.classes());
        now.retries = retries;
    }

    /// Sets the backend of the queue; `None` at its end.
    pub(crate) fn set_backend(&self, backend: Option<Backend>) {
        self.published.lock().backend = backend;
    }

    pub(crate) fn backend(&self) -> Option<Backend> {
        self.published.lock().backend
    }

    pub(crate) fn add_totals_to(&self, totals: &mut QueueCounters, retries: &mut Retries) {
        let Published { now, earlier, .. } = &*self.published.lock();
        for counters in [earlier, now] {
            totals.merge(&counters.totals);
            *retries += counters.retries;
        }
    }

    /// The bytes of all classes, by [`Op::index`](forebay_core::Op::index). They never fall, even
    /// if classes are removed.
    pub(crate) fn bytes(&self) -> [u64; 4] {
        let mut published = self.published.lock();
        published.add_up();
        published.bytes
    }

    /// Notes that a class is removed, whose place another one may get.
    pub(crate) fn note_removed(&self, class: ClassId) {
        let mut published = self.published.lock();
        published.add_up();
        if let Some(counted) = published.added_up.get_mut(class.index()) {
            counted.removed = Some(class);
        }
    }

    /// Whether the window has given up any request.
    pub(crate) fn has_given_up(&self) -> bool {
        let Published { now, earlier, .. } = &*self.published.lock();
        now.totals.overdue > 0 || earlier.totals.overdue > 0
    }

    pub(crate) fn add_held_to(&self, class: ClassId, held: &mut Held) {
        let Published { now, earlier, .. } = &*self.published.lock();
        for counters in [earlier, now] {
            let counters = counters.classes.get(class.index());
            if let Some(counters) = counters.filter(|counters| counters.are_of(class)) {
                held.given_up += counters.overdue;
                held.in_disk += counters.in_disk;
                held.ended += counters.operations.iter().sum::<u64>() + counters.errors;
                held.held_nanos = held.held_nanos.wrapping_add(counters.disk_nanos);
                held.cost_nanos += counters.consumption.as_nanos_ceil();
            }
        }
        if let Some(histograms) = self.histograms(class) {
            held.returned += histograms.returned.load(Ordering::Relaxed);
        }
    }

    /// The nanoseconds for which work waited for the disk, or for shards that were behind.
    pub(crate) fn waited_nanos(&self) -> u64 {
        let blocked = self.published.lock().now.totals.blocked_nanos;
        let counts = |reason: &Blocked| !matches!(reason, Blocked::Empty | Blocked::ClassLimit);
        let reasons = Blocked::ALL.into_iter().filter(counts);
        reasons.fold(0, |sum, reason| sum.wrapping_add(blocked[reason.index()]))
    }

    /// Adds the published numbers of requests in the disk of each of these classes.
    pub(crate) fn add_in_disk_to(&self, classes: &[(ClassId, String)], counts: &mut [u32]) {
        let Published { now, .. } = &*self.published.lock();
        for ((class, _), count) in classes.iter().zip(counts) {
            let counters = now.classes.get(class.index());
            let counters = counters.filter(|counters| counters.are_of(*class));
            *count += counters.map_or(0, |counters| counters.in_disk);
        }
    }

    pub(crate) fn add_class_to(&self, class: ClassId, snapshot: &mut ClassSnapshot) {
        let Published { now, earlier, .. } = &*self.published.lock();
        for counters in [earlier, now] {
            let counters = counters.classes.get(class.index());
            if let Some(counters) = counters.filter(|counters| counters.are_of(class)) {
                snapshot.counters.merge(counters);
            }
        }
        if let Some(histograms) = self.histograms(class) {
            histograms.add_to(snapshot);
        }
    }
}

impl Published {
    /// Adds the bytes that each class has published since the last call to the bytes of all
    /// classes.
    fn add_up(&mut self) {
        let places = self.now.classes.len().max(self.added_up.len());
        self.added_up.resize(places, AddedUp::default());
        for (class, before) in self.now.classes.iter().zip(&mut self.added_up) {
            if before.removed.is_some_and(|removed| !class.are_of(removed)) {
                *before = AddedUp::default();
            }
            for ((sum, now), then) in self.bytes.iter_mut().zip(class.bytes).zip(&mut before.bytes)
            {
                *sum = sum.wrapping_add(now.wrapping_sub(*then));
                *then = now;
            }
        }
    }
}

impl Held {
    /// The number of held requests that the window has given up.
    pub(crate) fn count(&self) -> u32 {
        let held = self.given_up.saturating_sub(self.returned);
        u32::try_from(held).unwrap_or(u32::MAX).min(self.in_disk)
    }

    /// The mean cost of a request of the class, in nanoseconds.
    pub(crate) fn mean_cost_nanos(&self) -> Option<u64> {
        self.cost_nanos.checked_div(self.ended + u64::from(self.in_disk))
    }
}

impl ClassHistograms {
    const fn new(class: ClassId) -> Self {
        Self {
            owner: AtomicU32::new(class.to_bits()),
            at_once: Histogram::new(),
            in_queue: Histogram::new(),
            in_disk: Histogram::new(),
            total: Histogram::new(),
            returned: AtomicU64::new(0),
            queue_nanos: AtomicU64::new(0),
            disk_nanos: AtomicU64::new(0),
        }
    }

    #[inline]
    fn record(&self, queue_nanos: u64, disk_nanos: u64) {
        add(&self.disk_nanos, disk_nanos);
        if queue_nanos == 0 {
            self.at_once.record(disk_nanos);
            return;
        }
        add(&self.queue_nanos, queue_nanos);
        self.in_queue.record(queue_nanos);
        self.in_disk.record(disk_nanos);
        self.total.record(queue_nanos.saturating_add(disk_nanos));
    }

    fn add_to(&self, snapshot: &mut ClassSnapshot) {
        let at_once = self.at_once.add_to(&mut snapshot.in_disk);
        self.at_once.add_to(&mut snapshot.total);
        snapshot.in_queue.add_instants(at_once);
        self.in_queue.add_to(&mut snapshot.in_queue);
        self.in_disk.add_to(&mut snapshot.in_disk);
        self.total.add_to(&mut snapshot.total);
        let (queue, disk) = (&self.queue_nanos, &self.disk_nanos);
        let [queue, disk] = [queue, disk].map(|sum| sum.load(Ordering::Relaxed));
        snapshot.in_queue.add_nanos(queue);
        snapshot.in_disk.add_nanos(disk);
        snapshot.total.add_nanos(queue.saturating_add(disk));
    }

    /// Clears the histograms for another class.
    fn clear(&self, class: ClassId) {
        for histogram in [&self.at_once, &self.in_queue, &self.in_disk, &self.total] {
            histogram.clear();
        }
        for sum in [&self.returned, &self.queue_nanos, &self.disk_nanos] {
            sum.store(0, Ordering::Relaxed);
        }
        self.owner.store(class.to_bits(), Ordering::Relaxed);
    }
}
