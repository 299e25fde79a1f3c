//! A shard's I/O queue of one stream.

use std::sync::Arc;

use forebay_core::{Blocked, GroupFull, IoQueue, Time};

use super::request::Part;
use crate::disk::DiskGroup;
use crate::engine::{EngineWaker, Retries};
use crate::streams::Streams;

/// A place in an I/O group: the queue there, and the parts that are in it or
/// in the disk.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) queue: IoQueue,
    pub(super) group: Arc<DiskGroup>,
    model_version: u64,
    /// By the index of their tickets.
    parts: Vec<Option<Part>>,
}

/// Names a part to the engine: its stream, and its place there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) stream: usize,
    pub(super) index: usize,
}

impl Token {
    /// Tickets have 32-bit numbers.
    pub(super) const fn to_bits(self) -> u64 {
        (self.stream as u64) << 32 | self.index as u64
    }

    pub(super) const fn from_bits(bits: u64) -> Self {
        Self { stream: (bits >> 32) as usize, index: (bits & u32::MAX as u64) as usize }
    }
}

impl Stream {
    /// A place in each of `streams`; `waker` is for others to make it poll.
    pub(super) fn join_all(
        streams: &Streams,
        waker: &EngineWaker,
    ) -> Result<Box<[Self]>, GroupFull> {
        streams.iter().map(|group| Self::join(Arc::clone(group), waker.clone())).collect()
    }

    fn join(group: Arc<DiskGroup>, waker: EngineWaker) -> Result<Self, GroupFull> {
        let mut model_version = 0;
        let queue = group.join(&mut model_version)?;
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
    }

    pub(super) fn publish_now(&self, retries: Retries) {
        self.group.metrics(self.queue.shard()).publish_now(&self.queue, retries);
    }

    /// Whether only others can free the room that the queue waits for.
    pub(super) fn is_stopped_by_others(&self) -> bool {
        self.queue.blocked() == Some(Blocked::Window) && self.queue.counters().in_disk == 0
    }

    pub(super) fn keep(&mut self, part: Part) {
        let index = part.ticket.index();
        if self.parts.len() <= index {
            self.parts.resize_with(index + 1, || None);
        }
        self.parts[index] = Some(part);
    }

    pub(super) fn part(&self, index: usize) -> Option<&Part> {
        self.parts.get(index)?.as_ref()
    }

    pub(super) fn part_mut(&mut self, index: usize) -> Option<&mut Part> {
        self.parts.get_mut(index)?.as_mut()
    }

    pub(super) fn take_part(&mut self, index: usize) -> Option<Part> {
        self.parts.get_mut(index)?.take()
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.group.wakers.remove(self.queue.shard());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_survives_the_engine() {
        let token = Token { stream: 1, index: u32::MAX as usize };
        assert_eq!(Token::from_bits(token.to_bits()), token);
    }
}
