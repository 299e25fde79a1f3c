//! A shard's I/O queue of one stream.

use std::mem;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use forebay_core::{Blocked, GroupFull, IoQueue, ShardId, Ticket, Time};

use super::request::PartId;
use crate::clock::Clock;
use crate::disk::DiskGroup;
use crate::engine::{Engine, Retries};
use crate::streams::Streams;

/// Among those whom others of the I/O group can wake.
#[derive(Debug)]
struct Registration {
    group: Arc<DiskGroup>,
    shard: ShardId,
}

/// A place in an I/O group: the queue there, and whose parts are in it or in
/// the disk.
#[derive(Debug)]
pub(super) struct Stream {
    /// Ends before the queue leaves.
    registration: Registration,
    pub(super) queue: IoQueue,
    pub(super) group: Arc<DiskGroup>,
    model_version: u64,
    /// By the index of their tickets.
    parts: Vec<PartId>,
}

impl Stream {
    fn join(group: Arc<DiskGroup>, engine: &Engine) -> Result<Self, GroupFull> {
        let mut model_version = 0;
        let queue = group.join(&mut model_version)?;
        let waker = engine.waker();
        group.metrics(queue.shard()).set_backend(Some(engine.backend()));
        group.wakers.register(queue.shard(), move || waker.wake());
        let registration = Registration { group: Arc::clone(&group), shard: queue.shard() };
        Ok(Self { registration, queue, group, model_version, parts: Vec::new() })
    }

    /// Takes over a model that has changed.
    pub(super) fn renew_model(&mut self) {
        if let Some(model) = self.group.newer_model(&mut self.model_version) {
            self.queue.set_model(model);
        }
    }

    /// Makes the others poll that wait for what this queue has freed.
    pub(super) fn wake_others(&mut self) {
        while let Some(shard) = self.queue.poll_wake() {
            self.group.wakers.wake(shard);
        }
    }

    /// Ends, and makes the others poll that wait for what it held.
    fn leave(self, now: Time) {
        let Self { registration, queue, group, .. } = self;
        drop(registration);
        queue.leave(now).for_each(|shard| group.wakers.wake(shard));
    }

    pub(super) fn publish(&self, now: Time, retries: Retries, pausing: bool) {
        self.group.metrics(self.queue.shard()).publish(now, &self.queue, retries, pausing);
        if pausing {
            self.group.tell_overdue(now);
        }
    }

    pub(super) fn publish_now(&self, retries: Retries) {
        self.group.metrics(self.queue.shard()).publish_now(&self.queue, retries);
    }

    /// Whether only others can free the room that the queue waits for.
    pub(super) fn is_stopped_by_others(&self) -> bool {
        self.queue.blocked() == Some(Blocked::Window) && self.queue.counters().in_disk == 0
    }

    /// Notes whose part a ticket of the queue is for.
    pub(super) fn keep(&mut self, ticket: Ticket, part: PartId) {
        let index = ticket.index();
        if self.parts.len() <= index {
            self.parts.resize(index + 1, PartId::default());
        }
        self.parts[index] = part;
    }

    /// The part that is to go to the disk next.
    pub(super) fn poll_dispatch(&mut self, now: Time) -> Option<PartId> {
        let ticket = self.queue.poll_dispatch(now)?;
        self.parts.get(ticket.index()).copied()
    }
}

/// A shard's places, by the numbers of the streams.
#[derive(Debug)]
pub(super) struct Places(Box<[Stream]>);

impl Places {
    /// A place in each of `streams`, whose requests `engine` executes.
    pub(super) fn join(streams: &Streams, engine: &Engine) -> Result<Self, GroupFull> {
        let join = |group: &Arc<DiskGroup>| Stream::join(Arc::clone(group), engine);
        streams.iter().map(join).collect::<Result<_, _>>().map(Self)
    }
}

impl Deref for Places {
    type Target = [Stream];

    fn deref(&self) -> &[Stream] {
        &self.0
    }
}

impl DerefMut for Places {
    fn deref_mut(&mut self) -> &mut [Stream] {
        &mut self.0
    }
}

impl Drop for Places {
    fn drop(&mut self) {
        let now = Clock::of_process().now();
        mem::take(&mut self.0).into_iter().for_each(|stream| stream.leave(now));
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.group.wakers.remove(self.shard);
        self.group.metrics(self.shard).set_backend(None);
    }
}
