//! A shard's queues in the I/O groups of its disk.

use std::io;
use std::sync::Arc;

use forebay_core::{Blocked, GroupFull, IoQueue, ShardId, Time};
use forebay_driver::{Cancel, Driver, OperationId, PartEnd, PartId};

use crate::disk_groups::DiskGroups;
use crate::engine::{Engine, Operation, Retries};
use crate::permit::DiskGroup;
use crate::sys::clock::Clock;

/// A shard's queues in the I/O groups of its disk, with their driver, and what
/// the others of each group know of them.
#[derive(Debug)]
pub(super) struct Queues {
    pub(super) driver: Driver<Operation>,
    /// By the numbers of the queues.
    groups: Box<[JoinedGroup]>,
}

#[derive(Debug)]
struct JoinedGroup {
    group: Arc<DiskGroup>,
    shard: ShardId,
    model_version: u64,
}

impl Queues {
    /// A queue in each of `groups`. `engine` executes their requests, at most `depth_max` at once.
    pub(super) fn join(
        groups: &DiskGroups,
        engine: &Engine,
        depth_max: usize,
    ) -> Result<Self, GroupFull> {
        let (mut queues, mut joined) = (Vec::new(), Vec::new());
        for group in groups.iter() {
            let mut model_version = 0;
            let queue = group.join(&mut model_version)?;
            let shard = queue.shard();
            queues.push(queue);
            joined.push(JoinedGroup { group: Arc::clone(group), shard, model_version });
        }
        let queues = Self { driver: Driver::new(queues, depth_max), groups: joined.into() };
        for JoinedGroup { group, shard, .. } in &queues.groups {
            let waker = engine.waker();
            group.metrics(*shard).set_backend(Some(engine.backend()));
            group.wakers.register(*shard, move || waker.wake());
        }
        Ok(queues)
    }

    /// How many queues there are.
    pub(super) const fn len(&self) -> usize {
        self.groups.len()
    }

    /// Takes over a model that has changed.
    pub(super) fn renew_model(&mut self, queue: usize) {
        let JoinedGroup { group, model_version, .. } = &mut self.groups[queue];
        if let Some(model) = group.newer_model(model_version) {
            self.driver.set_model(queue, model);
        }
    }

    /// Makes the others poll that wait for what a queue has freed.
    pub(super) fn wake_others(&mut self, queue: usize) {
        while let Some(shard) = self.driver.poll_wake(queue) {
            self.groups[queue].group.wakers.wake(shard);
        }
    }

    /// As [`Driver::handle_completion`]; a part that has ended is counted.
    pub(super) fn handle_completion(
        &mut self,
        now: Time,
        looked_at: Time,
        part: PartId,
        result: io::Result<u64>,
        operation: Operation,
    ) {
        let Self { driver, groups } = self;
        let ended = |end: PartEnd<'_>| groups[end.queue].record(&end);
        driver.handle_completion(now, looked_at, part, result, operation, ended);
    }

    /// As [`Driver::cancel`]; `engine` is asked to cancel what it has.
    pub(super) fn cancel(&mut self, now: Time, id: OperationId, engine: &mut Engine) -> bool {
        let Self { driver, groups } = self;
        driver.cancel(now, id, |part| match part {
            Cancel::Ended(end) => groups[end.queue].record(&end),
            Cancel::Inflight(part) => {
                engine.cancel(part.to_bits());
            }
        })
    }

    pub(super) fn publish(&self, now: Time, retries: Retries, pausing: bool) {
        for ((queue, group), retries) in self.queues().zip(first_queue_only(retries)) {
            group.metrics(queue.shard()).publish(now, queue, retries, pausing);
            if pausing {
                group.report_overdue(now);
            }
        }
    }

    pub(super) fn publish_now(&self, retries: Retries) {
        for ((queue, group), retries) in self.queues().zip(first_queue_only(retries)) {
            group.metrics(queue.shard()).publish_now(queue, retries);
        }
    }

    /// The I/O groups where only others can free the room that the shard's
    /// queue waits for.
    pub(super) fn stopped_by_others(&self) -> impl Iterator<Item = &Arc<DiskGroup>> {
        let is_stopped = |queue: &IoQueue| {
            queue.blocked() == Some(Blocked::Window) && queue.counters().in_disk == 0
        };
        self.queues().filter(move |(queue, _)| is_stopped(queue)).map(|(_, group)| group)
    }

    fn queues(&self) -> impl Iterator<Item = (&IoQueue, &Arc<DiskGroup>)> {
        self.driver.queues().zip(self.groups.iter().map(|joined| &joined.group))
    }
}

impl JoinedGroup {
    fn record(&self, end: &PartEnd<'_>) {
        if let Some(completion) = end.completion {
            self.group.record(self.shard, completion, None);
        }
    }
}

/// For each queue: the first one reports the counters of all.
fn first_queue_only(retries: Retries) -> impl Iterator<Item = Retries> {
    std::iter::once(retries).chain(std::iter::repeat(Retries::default()))
}

impl Drop for Queues {
    /// Nobody wakes it any more; then the queues leave, and make the others
    /// poll that wait for what they held.
    fn drop(&mut self) {
        for JoinedGroup { group, shard, .. } in &self.groups {
            group.wakers.remove(*shard);
            group.metrics(*shard).set_backend(None);
        }
        let Self { driver, groups } = self;
        driver.leave(Clock::of_process().now(), |queue, shard| {
            groups[queue].group.wakers.wake(shard);
        });
    }
}
