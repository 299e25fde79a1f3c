//! A disk: its I/O groups, and everything that shares their budget.

use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use forebay_core::{
    DiskModel, DiskRates, GroupConfig, GroupFull, IoGroup, IoQueue, Op, Policy, QueueCounters,
    SHARDS_MAX, ShardId, Time,
};

use crate::admission::{Admission, BATCH_MAX};
use crate::coordinator::{IoThreads, IoThreadsConfig};
use crate::engine::Retries;
use crate::events::{Event, Hook};
use crate::metrics::QueueMetrics;
use crate::scheduler::Shared;
use crate::streams::Streams;
use crate::sys::fork::{OfProcess, Process};
use crate::sys::numa;
use crate::wakers::Wakers;

/// Overdue requests are spoken of so often, however many there are.
const SILENCE_NANOS: u64 = 10_000_000_000;

/// A disk of a [`Scheduler`](crate::Scheduler): one budget, which all requests
/// to it share. Cheap to clone; every clone is the same disk.
#[derive(Clone)]
pub struct Disk {
    pub(crate) scheduler: Arc<Shared>,
    pub(crate) record: Arc<DiskRecord>,
}

impl Disk {
    /// Its name in the configuration: the first mountpoint, unless another was
    /// given; `default` for the disk of unlisted devices.
    pub fn name(&self) -> &str {
        &self.record.name
    }

    /// How much may wait in the disk: the latency goal, or more where the disk
    /// needs more. `None` where nothing is known of the disk and nothing binds.
    pub fn effective_goal(&self) -> Option<Duration> {
        let goal = self.record.here().of(Op::Read).io.effective_goal();
        (goal != forebay_core::DiskTime::MAX).then(|| Duration::from_nanos(goal.as_nanos_ceil()))
    }

    /// How many I/O threads serve this disk's [files](crate::File), per I/O
    /// group: as many as [asked for](crate::SchedulerBuilder::io_queues), or
    /// fewer where each would have too small a part of the disk's window.
    pub fn io_queues(&self) -> usize {
        self.record.node_here().io_threads.count()
    }

    /// What all queues of this disk have counted, all classes together: the
    /// totals of a [snapshot](crate::Scheduler::snapshot), for a small part of
    /// its cost. All zero in a forked child.
    pub fn counters(&self) -> QueueCounters {
        let (mut totals, mut retries) = (QueueCounters::default(), Retries::default());
        if !self.record.process.is_here() {
            return totals;
        }
        for group in self.record.groups() {
            group.all_metrics().for_each(|queue| queue.add_totals_to(&mut totals, &mut retries));
        }
        totals
    }

    /// Disk time of the requests and permits that are unfinished now.
    pub fn in_flight(&self) -> Duration {
        let groups = self.record.groups();
        groups.map(|group| Duration::from_nanos(group.io.in_flight().as_nanos_ceil())).sum()
    }
}

impl fmt::Debug for Disk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Disk").field("name", &self.record.name).finish_non_exhaustive()
    }
}

/// What the scheduler keeps of a disk.
#[derive(Debug)]
pub(crate) struct DiskRecord {
    pub(crate) name: String,
    pub(crate) process: Process,
    /// One, or one per NUMA node, each with its part of the capacity.
    nodes: Box<[Node]>,
    /// What it was last configured with.
    rates: Mutex<Option<DiskRates>>,
    /// The bytes of a sector, if the disk misreports them; otherwise 1.
    sector: AtomicUsize,
}

/// A disk as the threads of one NUMA node use it.
#[derive(Debug)]
struct Node {
    streams: Streams,
    io_threads: IoThreads,
}

impl DiskRecord {
    pub(crate) fn new(
        name: String,
        nodes: impl IntoIterator<Item = Streams>,
        io_threads: &IoThreadsConfig,
    ) -> Self {
        let node = |streams| Node { streams, io_threads: IoThreads::new(io_threads) };
        let nodes = nodes.into_iter().map(node).collect();
        let process = Process::current();
        Self { name, process, nodes, rates: Mutex::default(), sector: AtomicUsize::new(1) }
    }

    /// All I/O groups.
    pub(crate) fn groups(&self) -> impl Iterator<Item = &Arc<DiskGroup>> {
        self.nodes.iter().flat_map(|node| node.streams.iter())
    }

    /// Whether reads and writes have a budget each.
    pub(crate) fn is_duplex(&self) -> bool {
        self.nodes.iter().any(|node| node.streams.is_duplex())
    }

    /// Makes all queues look what has changed, and whoever waits at them.
    pub(crate) fn wake_queues(&self) {
        self.groups().for_each(|group| group.wakers.wake_all());
    }

    /// Notes what the disk is configured with.
    pub(crate) fn set_rates(&self, rates: DiskRates) {
        *self.rates.lock().unwrap_or_else(PoisonError::into_inner) = Some(rates);
    }

    /// Notes how many bytes are written at least, if the disk misreports them.
    pub(crate) fn set_sector(&self, bytes: Option<u64>) {
        let bytes = bytes.and_then(|bytes| usize::try_from(bytes).ok());
        self.sector.store(bytes.unwrap_or(1), Ordering::Relaxed);
    }

    /// What was noted by [`DiskRecord::set_sector`]; 1 if nothing was.
    pub(crate) fn sector(&self) -> usize {
        self.sector.load(Ordering::Relaxed)
    }

    /// What the disk is configured with, if anything is known of it.
    pub(crate) fn rates(&self) -> Option<DiskRates> {
        *self.rates.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The I/O groups of the calling thread: those of the NUMA node it runs on.
    pub(crate) fn here(&self) -> &Streams {
        &self.node_here().streams
    }

    /// The I/O groups of the calling thread, with their I/O threads.
    pub(crate) fn io_threads_here(&self) -> (&Streams, &IoThreads) {
        let Node { streams, io_threads } = self.node_here();
        (streams, io_threads)
    }

    fn node_here(&self) -> &Node {
        match self.nodes.len() {
            1 => &self.nodes[0],
            count => &self.nodes[numa::node_of_this_thread() % count],
        }
    }
}

/// An I/O group of a disk, and how to reach the threads whose queues are in it.
#[derive(Debug)]
pub(crate) struct DiskGroup {
    pub(crate) io: IoGroup,
    /// That of its disk.
    pub(crate) name: String,
    /// Whom to tell what happens to it.
    hook: Hook,
    /// Most requests that are granted together.
    pub(crate) batch_max: usize,
    /// Its place in the tables of class numbers.
    pub(crate) slot: usize,
    /// Whoever is in `io` with a queue is registered here.
    pub(crate) wakers: Wakers,
    /// Of the queues in `io`, by their shards.
    metrics: Box<[OnceLock<Box<QueueMetrics>>]>,
    model: Mutex<DiskModel>,
    model_version: AtomicU64,
    /// Joins the group when the first permit is asked for.
    admission: OnceLock<OfProcess<Admission>>,
    joining: Mutex<()>,
    /// Until when, in nanoseconds, nothing more is said of overdue requests.
    silent_until: AtomicU64,
}

impl DiskGroup {
    pub(crate) fn new(name: &str, config: GroupConfig, slot: usize, hook: Hook) -> Self {
        let batch_max = match config.policy {
            Policy::PaceWindow { .. } | Policy::Unlimited => BATCH_MAX,
            // What these have in the disk is not counted in disk time.
            _ => 1,
        };
        Self {
            name: name.to_owned(),
            hook,
            batch_max,
            silent_until: AtomicU64::new(0),
            wakers: Wakers::new(config.shards_max),
            metrics: (0..SHARDS_MAX).map(|_| OnceLock::new()).collect(),
            model: Mutex::new(config.model.clone()),
            model_version: AtomicU64::new(0),
            admission: OnceLock::new(),
            joining: Mutex::new(()),
            io: IoGroup::new(config),
            slot,
        }
    }

    /// Says in the log that requests are overdue, if any are, now and then.
    /// For whoever polls a queue of the group and is about to sleep.
    pub(crate) fn tell_overdue(&self, now: Time) {
        if !self.io.hangs(now) {
            return;
        }
        let (until, relaxed) = (self.silent_until.load(Ordering::Relaxed), Ordering::Relaxed);
        let next = now.plus_nanos(SILENCE_NANOS).as_nanos();
        if now.as_nanos() >= until
            && self.silent_until.compare_exchange(until, next, relaxed, relaxed).is_ok()
        {
            self.tell(Event::Overdue { disk: self.name.clone() });
        }
    }

    /// Tells the log and the program what has happened to the disk.
    pub(crate) fn tell(&self, event: Event) {
        self.hook.tell(event);
    }

    /// Where permits are asked for.
    pub(crate) fn admission(self: &Arc<Self>) -> Result<&Admission, GroupFull> {
        if let Some(admission) = self.admission.get() {
            return Ok(admission);
        }
        let _joining = self.joining.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(admission) = self.admission.get() {
            return Ok(admission);
        }
        let mut model_version = 0;
        let queue = self.join(&mut model_version)?;
        let group = Arc::downgrade(self);
        self.wakers.register(queue.shard(), move || {
            if let Some(group) = group.upgrade() {
                group.poll_admission();
            }
        });
        let admission = || OfProcess::new(Admission::new(queue, model_version));
        Ok(self.admission.get_or_init(admission))
    }

    /// Where permits are asked for, if any ever were, in this process.
    pub(crate) fn admission_if_used(&self) -> Option<&Admission> {
        self.admission.get().filter(|admission| admission.process().is_here()).map(|used| &**used)
    }

    /// Makes the queue of permits look for what may go, and give up what is
    /// overdue. For whoever is stopped by the window for longer than
    /// a deadline: permits that were forgotten keep it closed, and if nobody
    /// waits for a permit, nobody else looks.
    pub(crate) fn poll_admission(&self) {
        if let Some(admission) = self.admission_if_used() {
            admission.poll(self);
        }
    }

    /// A queue in the group, at the present model; `version` becomes the
    /// model's.
    pub(crate) fn join(&self, version: &mut u64) -> Result<IoQueue, GroupFull> {
        let mut queue = self.io.join()?;
        *version = u64::MAX;
        if let Some(model) = self.newer_model(version) {
            queue.set_model(model);
        }
        self.metrics(queue.shard()).begin();
        Ok(queue)
    }

    /// Where the queue of that shard tells of itself.
    pub(crate) fn metrics(&self, shard: ShardId) -> &QueueMetrics {
        self.metrics[shard.index()].get_or_init(Box::default)
    }

    /// Every queue that there ever was, with present figures.
    pub(crate) fn all_metrics(&self) -> impl Iterator<Item = &QueueMetrics> {
        if let Some(admission) = self.admission_if_used() {
            admission.with_queue(|queue| {
                self.metrics(queue.shard()).publish_now(queue, Retries::default());
            });
        }
        self.metrics.iter().filter_map(|metrics| metrics.get().map(Box::as_ref))
    }

    /// The model, if it has changed since `version`, which then follows. One
    /// load when it has not. Whoever owns a queue asks when woken, and gives
    /// it to [`IoQueue::set_model`].
    pub(crate) fn newer_model(&self, version: &mut u64) -> Option<DiskModel> {
        let present = self.model_version.load(Ordering::Acquire);
        if present == *version {
            return None;
        }
        *version = present;
        Some(self.model.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }

    /// From now on requests cost this, as soon as the queues are
    /// [woken](Wakers::wake_all) to take it over.
    pub(crate) fn set_model(&self, model: DiskModel) {
        // The budget learns of it from a queue, and there may be none yet.
        if let Ok(mut queue) = self.io.join() {
            queue.set_model(model.clone());
        }
        *self.model.lock().unwrap_or_else(PoisonError::into_inner) = model;
        self.model_version.fetch_add(1, Ordering::Release);
    }
}
