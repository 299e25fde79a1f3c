//! A shard's queues in the I/O groups of its disk.

use std::io;
use std::sync::Arc;

use forebay_core::{Blocked, GroupFull, IoQueue, ShardId, Time};
use forebay_driver::{Cancel, Driver, OperationId, PartEnd, PartId};

use crate::disk_groups::DiskGroups;
use crate::engine::{Engine, Operation, Retries};
use crate::permit::DiskGroup;
use crate::sys::clock::Clock;

/// A shard's queues in the I/O groups of its disk, their driver, and what they publish to each
/// group.
#[derive(Debug)]
pub(super) struct Queues {
    pub(super) driver: Driver<Operation>,
    /// The groups, by the numbers of the queues.
    groups: Box<[JoinedGroup]>,
}

#[derive(Debug)]
struct JoinedGroup {
    group: Arc<DiskGroup>,
    shard: ShardId,
    model_version: u64,
}

impl Queues {
    /// Joins each of `groups` with a queue. `engine` executes at most `depth_max` of their requests
    /// at once.
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

    /// The number of queues.
    pub(super) const fn len(&self) -> usize {
        self.groups.len()
    }

    /// Takes over the disk model if it has changed.
    pub(super) fn renew_model(&mut self, queue: usize) {
        let JoinedGroup { group, model_version, .. } = &mut self.groups[queue];
        if let Some(model) = group.newer_model(model_version) {
            self.driver.set_model(queue, model);
        }
    }

    /// Wakes the shards that wait for room that a queue has freed.
    pub(super) fn wake_others(&mut self, queue: usize) {
        while let Some(shard) = self.driver.poll_wake(queue) {
            self.groups[queue].group.wakers.wake(shard);
        }
    }

    /// [`Driver::handle_completion`], which also counts the part if it has ended.
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

    /// [`Driver::cancel`], which asks `engine` to cancel parts in the disk.
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

    /// The I/O groups whose window stops the shard's queue while the queue has nothing in the disk.
    /// Only others can free that room.
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

/// One value for each queue: the first queue reports all counters, the others none.
fn first_queue_only(retries: Retries) -> impl Iterator<Item = Retries> {
    std::iter::once(retries).chain(std::iter::repeat(Retries::default()))
}

impl Drop for Queues {
    /// Removes the wakers first. Then the queues leave, and wake the shards that wait for their
    /// room.
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
