//! The state of a disk's I/O group that its queues share in addition to the budget.

mod class_names;
mod wakers;

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use forebay_core::{
    ClassId, Completion, DiskModel, DiskTime, GroupConfig, GroupFull, IoGroup, IoQueue, Op, Policy,
    SHARDS_MAX, ShardId, Step, StepMax, Time,
};

pub(crate) use self::wakers::Wakers;

use self::class_names::ClassNames;
use crate::engine::Retries;
use crate::events::{Event, Hook};
use crate::metrics::QueueMetrics;
use crate::slow_requests::{SlowRequest, SlowRequests};
use crate::sys::clock::Clock;
use crate::sys::lock::Lock;
use crate::sys::ticker;

/// The most requests that are granted together, so that no thread holds the lock for long.
const BATCH_MAX: usize = 128;

/// The shortest time between two reports of overdue requests, in nanoseconds.
const SILENCE_NANOS: u64 = 10_000_000_000;

/// The costs of requests. The default, for a forked child, is that of an unmeasured disk.
#[derive(Debug)]
struct Model(DiskModel);

impl Default for Model {
    fn default() -> Self {
        Self(DiskModel::unmeasured())
    }
}

/// An I/O group of a disk, with the wakers of the threads whose queues are in it.
#[derive(Debug)]
pub(crate) struct GroupState {
    pub(crate) io: IoGroup,
    /// The name of the disk.
    pub(crate) name: String,
    /// Receives the events of the disk.
    hook: Hook,
    /// The most requests that are granted together.
    pub(crate) batch_max: usize,
    /// Its place in the tables of class numbers.
    pub(crate) slot: usize,
    /// The wakers of the shards with a queue in `io`.
    pub(crate) wakers: Wakers,
    /// The metrics of the queues in `io`, by shard.
    metrics: Box<[OnceLock<Box<QueueMetrics>>]>,
    model: Lock<Model>,
    model_version: AtomicU64,
    /// The time in nanoseconds before which no further overdue requests are reported.
    silent_until: AtomicU64,
    pub(crate) slow: SlowRequests,
    class_names: ClassNames,
}

impl GroupState {
    pub(crate) fn new(name: &str, config: GroupConfig, slot: usize, hook: Hook) -> Self {
        let batch_max = match config.policy {
            Policy::PaceWindow { .. } | Policy::Unlimited => BATCH_MAX,
            // With these policies, requests in the disk are not counted in disk time.
            _ => 1,
        };
        Self {
            name: name.to_owned(),
            slow: SlowRequests::new(hook.slow_from),
            class_names: ClassNames::default(),
            hook,
            batch_max,
            silent_until: AtomicU64::new(0),
            wakers: Wakers::new(config.shards_max),
            metrics: (0..SHARDS_MAX).map(|_| OnceLock::new()).collect(),
            model: Lock::new(Model(config.model.clone())),
            model_version: AtomicU64::new(0),
            io: IoGroup::new(config),
            slot,
        }
    }

    /// Reports overdue requests, if there are any and the last report is old enough. A thread that
    /// polls a queue of the group calls it before it sleeps.
    pub(crate) fn report_overdue(&self, now: Time) {
        if !self.io.hangs(now) {
            return;
        }
        let (until, relaxed) = (self.silent_until.load(Ordering::Relaxed), Ordering::Relaxed);
        let next = now.plus_nanos(SILENCE_NANOS).as_nanos();
        if now.as_nanos() >= until
            && self.silent_until.compare_exchange(until, next, relaxed, relaxed).is_ok()
        {
            self.report(Event::Overdue { disk: self.name.clone() });
        }
    }

    /// Reports an event of the disk to the log and to the program.
    pub(crate) fn report(&self, event: Event) {
        self.hook.report(event);
    }

    /// Joins the group with a queue that uses the present model. `version` is set to that of the
    /// model.
    pub(crate) fn join(&self, version: &mut u64) -> Result<IoQueue, GroupFull> {
        let mut queue = self.io.join()?;
        *version = u64::MAX;
        if let Some(model) = self.newer_model(version) {
            queue.set_model(model);
        }
        self.metrics(queue.shard()).begin();
        ticker::start();
        Ok(queue)
    }

    /// The metrics of the queue of a shard.
    pub(crate) fn metrics(&self, shard: ShardId) -> &QueueMetrics {
        self.metrics[shard.index()].get_or_init(Box::default)
    }

    /// Counts a completed request of a shard. `queue` is the shard's queue, if the caller has it.
    #[inline]
    pub(crate) fn record(&self, shard: ShardId, completion: &Completion, queue: Option<&IoQueue>) {
        self.metrics(shard).record(completion);
        if self.slow.is_slow(completion.disk_nanos) {
            self.report_slow(shard, completion, queue);
        }
    }

    /// Reports a slow request if a report is due. It may be called under a lock.
    #[cold]
    fn report_slow(&self, shard: ShardId, completion: &Completion, queue: Option<&IoQueue>) {
        let now = Clock::of_process().now();
        let Some((unreported, next_from)) = self.slow.take_turn(now) else { return };
        if let Some(queue) = queue {
            self.metrics(shard).publish_now(queue, Retries::default());
        }
        let names = self.class_names.all();
        let mut counts = vec![0; names.len()];
        for queue in self.published_metrics() {
            queue.add_in_disk_to(&names, &mut counts);
        }
        let is_own = |(id, _): &&(ClassId, String)| *id == completion.class;
        let class = names.iter().find(is_own).map(|(_, name)| name.clone()).unwrap_or_default();
        let concurrent = names.into_iter().zip(counts).filter(|(_, count)| *count > 0);
        self.report(Event::Slow(SlowRequest {
            disk: self.name.clone(),
            class,
            op: completion.op,
            len: completion.len,
            in_queue: Duration::from_nanos(completion.queue_nanos),
            in_disk: Duration::from_nanos(completion.disk_nanos),
            concurrent: concurrent.map(|((_, name), count)| (name, count)).collect(),
            inflight_disk_time: Duration::from_nanos(self.io.in_flight().as_nanos_ceil()),
            unreported,
            next_from,
        }));
    }

    /// Sets the name of a class in the group.
    pub(crate) fn name_class(&self, class: ClassId, name: &str) {
        self.class_names.set(class, name);
    }

    /// The published metrics of all present and former queues.
    pub(crate) fn published_metrics(&self) -> impl Iterator<Item = &QueueMetrics> {
        self.metrics.iter().filter_map(|metrics| metrics.get().map(Box::as_ref))
    }

    /// The model, if it has changed since `version`, which is then updated. If it has not changed,
    /// this costs one load. The owner of a queue calls it when woken, and passes the model to
    /// [`IoQueue::set_model`].
    pub(crate) fn newer_model(&self, version: &mut u64) -> Option<DiskModel> {
        let present = self.model_version.load(Ordering::Acquire);
        if present == *version {
            return None;
        }
        *version = present;
        Some(self.model.lock().0.clone())
    }

    /// The cost of a request.
    pub(crate) fn cost(&self, op: Op, len: u64) -> DiskTime {
        self.model.lock().0.cost(op, len)
    }

    /// The largest power of two in bytes, up to 16 MiB, that costs no more than the effective goal.
    pub(crate) fn largest_request(&self, op: Op) -> u64 {
        let model = self.model.lock();
        model.0.largest_request(op, self.io.effective_goal())
    }

    /// The part of a file that may be discarded at once. `extents` are the lengths of its extents
    /// in bytes, the last one first.
    pub(crate) fn discard_step(
        &self,
        most: StepMax,
        extents: impl IntoIterator<Item = u64>,
    ) -> Step {
        let model = self.model.lock();
        most.step(&model.0, extents)
    }

    /// Sets the model. It applies as soon as the queues are [woken](Wakers::wake_all) and take it
    /// over.
    pub(crate) fn set_model(&self, model: DiskModel) {
        // The budget gets the model from a queue, and the group may have none yet.
        if let Ok(mut queue) = self.io.join() {
            queue.set_model(model.clone());
        }
        *self.model.lock() = Model(model);
        self.model_version.fetch_add(1, Ordering::Release);
    }
}
