//! A shard's I/O queue of one stream.

use std::sync::Arc;

use forebay_core::{Blocked, GroupFull, IoQueue, Ticket, Time};

use super::request::PartId;
use crate::disk::DiskGroup;
use crate::engine::{Engine, Retries};
use crate::streams::Streams;

/// A place in an I/O group: the queue there, and whose parts are in it or in
/// the disk.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) queue: IoQueue,
    pub(super) group: Arc<DiskGroup>,
    model_version: u64,
    /// By the index of their tickets.
    parts: Vec<PartId>,
}

impl Stream {
    /// A place in each of `streams`, whose requests `engine` executes.
    pub(super) fn join_all(streams: &Streams, engine: &Engine) -> Result<Box<[Self]>, GroupFull> {
        streams.iter().map(|group| Self::join(Arc::clone(group), engine)).collect()
    }

    fn join(group: Arc<DiskGroup>, engine: &Engine) -> Result<Self, GroupFull> {
        let mut model_version = 0;
        let queue = group.join(&mut model_version)?;
        let waker = engine.waker();
        group.metrics(queue.shard()).set_backend(Some(engine.backend()));
        group.wakers.register(queue.shard(), move || waker.wake());
        Ok(Self { queue, group, model_version, parts: Vec::new() })
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

impl Drop for Stream {
    fn drop(&mut self) {
        self.group.wakers.remove(self.queue.shard());
        self.group.metrics(self.queue.shard()).set_backend(None);
    }
}
