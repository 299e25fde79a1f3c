//! Operations on their way through an I/O queue and an engine.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use forebay_core::{Blocked, ClassId, GroupFull, IoQueue, Op, Outcome, Ticket, Time};
use rustix::io::Errno;
use slab::Slab;

use super::ending::{Ending, count};
use super::outcome::{Finished, OperationId, ShardCounters};
use super::pieces::Piece;
use super::request::{Part, Request};
use crate::clock::Clock;
use crate::disk::DiskGroup;
use crate::engine::{Completed, Engine, EngineConfig, Retries};

/// After so many completions the disk gets new requests before the next ones
/// are taken: it shall not wait for all of a long turn.
const COMPLETIONS_AT_ONCE: usize = 4;

/// A queue that waits for room in the window and has nothing in the disk looks
/// after so long whether permits that were forgotten hold the room.
const LOOK_AFTER: Duration = Duration::from_millis(100);

/// The queue is asked so often, in nanoseconds, while the engine is full.
const LOOK_WHEN_FULL_NANOS: u64 = 10_000_000;

/// What the engine did not take is offered again after so long.
const TRY_AGAIN_AFTER: Duration = Duration::from_millis(1);

/// What is called after each dispatch, with the class of what went: to queue
/// the next of it.
pub(crate) type Refill<'a> = &'a mut dyn FnMut(&mut Operations, Time, ClassId);

/// An I/O queue, an engine, and the operations in both.
#[derive(Debug)]
pub(crate) struct Operations {
    // The engine goes first: what it has is in the disk.
    engine: Engine,
    pub(super) queue: IoQueue,
    group: Arc<DiskGroup>,
    model_version: u64,
    clock: Clock,
    depth_max: usize,
    pub(super) requests: Slab<Request>,
    pub(super) generation: u32,
    /// By the index of their tickets.
    pub(super) parts: Vec<Option<Part>>,
    /// Indices of dispatched parts that the engine did not take yet.
    unsent: VecDeque<usize>,
    /// When to ask the queue next while the engine is full.
    look_at: Time,
    /// Keys of requests that wait to be popped.
    ended: VecDeque<usize>,
    counters: ShardCounters,
}

impl Operations {
    /// The outer error is the engine's.
    pub(crate) fn new(
        group: Arc<DiskGroup>,
        config: &EngineConfig,
    ) -> io::Result<Result<Self, GroupFull>> {
        let engine = Engine::new(config)?;
        let mut model_version = 0;
        let queue = match group.join(&mut model_version) {
            Ok(queue) => queue,
            Err(full) => return Ok(Err(full)),
        };
        let waker = engine.waker();
        group.wakers.register(queue.shard(), move || waker.wake());
        Ok(Ok(Self {
            engine,
            queue,
            group,
            model_version,
            clock: Clock::of_process(),
            depth_max: config.depth_max as usize,
            requests: Slab::new(),
            generation: 0,
            parts: Vec::new(),
            unsent: VecDeque::new(),
            look_at: Time::ZERO,
            ended: VecDeque::new(),
            counters: ShardCounters::default(),
        }))
    }

    pub(crate) fn turn(&mut self, timeout: Option<Duration>, refill: Refill<'_>) -> io::Result<()> {
        let now = self.now();
        self.dispatch(now, refill);
        self.sleep(now, timeout)?;
        let now = self.now();
        self.collect(now, refill);
        Ok(())
    }

    /// Sends to the disk what may go.
    pub(crate) fn dispatch(&mut self, now: Time, refill: Refill<'_>) {
        if let Some(model) = self.group.newer_model(&mut self.model_version) {
            self.queue.set_model(model);
        }
        self.send_unsent();
        while self.has_room()
            && let Some(class) = self.dispatch_next(now)
        {
            refill(self, now, class);
        }
        if !self.has_room() && now >= self.look_at {
            // The queue has to be asked, or what hangs in the disk would hold
            // the budget of others.
            self.look_at = now.plus_nanos(LOOK_WHEN_FULL_NANOS);
            self.dispatch_next(now);
        }
        while let Some(shard) = self.queue.poll_wake() {
            self.group.wakers.wake(shard);
        }
    }

    /// Hands everything to the kernel, and sleeps unless there is something to
    /// do already.
    pub(crate) fn sleep(&mut self, now: Time, timeout: Option<Duration>) -> io::Result<()> {
        let needed = self.timeout(now);
        let timeout = match (timeout, needed) {
            (Some(timeout), Some(needed)) => Some(timeout.min(needed)),
            (timeout, needed) => timeout.or(needed),
        };
        let pausing = timeout != Some(Duration::ZERO);
        let metrics = self.group.metrics(self.queue.shard());
        metrics.publish(now, &self.queue, self.retries(), pausing);
        self.engine.submit_and_wait(timeout)
    }

    /// Takes what has completed; the disk gets new requests in between.
    pub(crate) fn collect(&mut self, now: Time, refill: Refill<'_>) {
        if self.is_stopped_by_others() {
            self.group.poll_admission();
        }
        loop {
            let mut taken = 0;
            while taken < COMPLETIONS_AT_ONCE
                && let Some(completed) = self.engine.pop()
            {
                self.settle(now, completed);
                taken += 1;
            }
            self.dispatch(now, refill);
            if taken < COMPLETIONS_AT_ONCE {
                return;
            }
        }
    }

    pub(crate) fn timeout(&self, now: Time) -> Option<Duration> {
        if !self.ended.is_empty() {
            return Some(Duration::ZERO);
        }
        let queue = if self.has_room() { self.queue.poll_timeout(now) } else { Some(self.look_at) };
        let queue = queue.map(|at| Duration::from_nanos(at.nanos_since(now)));
        let look = self.is_stopped_by_others().then_some(LOOK_AFTER);
        let refused = (!self.unsent.is_empty()).then_some(TRY_AGAIN_AFTER);
        [queue, look, refused].into_iter().flatten().min()
    }

    pub(crate) fn cancel(&mut self, now: Time, id: OperationId) -> bool {
        let key = id.index();
        let request = self.requests.get_mut(key);
        let known =
            |request: &&mut Request| request.generation == id.generation && request.ended.is_none();
        let Some(request) = request.filter(known) else { return false };
        request.cancelled = true;
        let mut number = 0;
        while let Some(request) = self.requests.get(key)
            && let Some(ticket) = request.tickets.get(number)
        {
            number += 1;
            self.cancel_part(now, ticket);
        }
        true
    }

    fn cancel_part(&mut self, now: Time, ticket: Ticket) {
        let index = ticket.index();
        let part = self.parts.get(index).and_then(Option::as_ref);
        let Some(part) = part.filter(|part| part.ticket == ticket) else { return };
        if part.operation.is_none() {
            self.engine.cancel(index as u64);
            return;
        }
        self.unsent.retain(|unsent| *unsent != index);
        self.queue.cancel(now, ticket);
        self.part_done(now, index, Err(Errno::CANCELED.into()));
    }

    /// Sends the request that is next; its class.
    fn dispatch_next(&mut self, now: Time) -> Option<ClassId> {
        let index = self.queue.poll_dispatch(now)?.index();
        let part = self.parts.get(index)?.as_ref()?;
        let class = part.class;
        if let Some(request) = self.requests.get_mut(part.request) {
            request.dispatched = now;
        }
        if !self.send(index) {
            self.unsent.push_back(index);
        }
        Some(class)
    }

    fn send_unsent(&mut self) {
        while let Some(index) = self.unsent.front()
            && self.send(*index)
        {
            self.unsent.pop_front();
        }
    }

    /// Gives a part to the engine; false if it takes none now.
    fn send(&mut self, index: usize) -> bool {
        let Some(part) = self.parts.get_mut(index).and_then(Option::as_mut) else { return true };
        let Some(operation) = part.operation.take() else { return true };
        match self.engine.push(index as u64, operation) {
            Ok(()) => true,
            Err((_, operation)) => {
                part.operation = Some(operation);
                false
            }
        }
    }

    fn settle(&mut self, now: Time, completed: Completed) {
        let Completed { token, result, operation } = completed;
        let index = token as usize;
        let Some(part) = self.parts.get_mut(index).and_then(Option::as_mut) else { return };
        let Some(request) = self.requests.get_mut(part.request) else { return };
        let ending = Ending::of(part, request.cancelled, &operation, result);
        let mut piece = Piece { operation, continues: part.continues };
        match ending {
            Ending::Again => {
                count(&mut self.counters.again, &piece.operation);
                part.tries += 1;
                part.operation = Some(piece.operation);
            }
            Ending::Rest(bytes) => {
                count(&mut self.counters.short, &piece.operation);
                let rest = piece.split_off(bytes);
                request.keep(part.at + part.done, piece);
                part.done += bytes;
                if let Some(Piece { operation, continues }) = rest {
                    (part.operation, part.continues) = (Some(operation), continues);
                }
            }
            Ending::Done(outcome) => {
                part.operation = Some(piece.operation);
                self.part_done(now, index, outcome);
                return;
            }
        }
        if !self.send(index) {
            self.unsent.push_back(index);
        }
    }

    /// A part has ended; what is left of it is where it belongs.
    fn part_done(&mut self, now: Time, index: usize, outcome: io::Result<u64>) {
        let Some(part) = self.parts.get_mut(index).and_then(Option::take) else { return };
        let answer = if outcome.is_ok() { Outcome::Done } else { Outcome::Failed };
        // Stale if it never left the queue.
        if let Ok(completion) = self.queue.complete(now, part.ticket, answer) {
            self.group.metrics(self.queue.shard()).record(&completion);
        }
        let Some(request) = self.requests.get_mut(part.request) else { return };
        if let Some(operation) = part.operation {
            request.keep(part.at + part.done, Piece { operation, continues: part.continues });
        }
        if !request.part_done(part.at, part.len, outcome) {
            return;
        }
        request.ended = Some(now);
        self.ended.push_back(part.request);
    }

    /// Whether the engine takes more.
    fn has_room(&self) -> bool {
        self.unsent.is_empty() && self.engine.in_flight() < self.depth_max
    }

    /// Whether only others can free the room that the queue waits for.
    fn is_stopped_by_others(&self) -> bool {
        self.engine.in_flight() == 0 && self.queue.blocked() == Some(Blocked::Window)
    }
}

/// What the shard's owner may look at.
impl Operations {
    pub(crate) fn now(&self) -> Time {
        self.clock.now()
    }

    pub(crate) fn pop(&mut self) -> Option<Finished> {
        let key = self.ended.pop_front()?;
        self.requests.try_remove(key)?.finish(key)
    }

    pub(crate) fn watch(&mut self) {
        self.engine.watch();
    }

    pub(crate) fn len(&self) -> usize {
        self.requests.len()
    }

    pub(crate) fn group(&self) -> &DiskGroup {
        &self.group
    }

    pub(crate) fn queue(&self) -> &IoQueue {
        &self.queue
    }

    /// Requests of `class` that wait in the queue.
    pub(crate) fn queued(&self, class: ClassId) -> u32 {
        self.queue.class(class).map_or(0, |counters| counters.queued)
    }

    /// Disk time of a request, in nanoseconds.
    pub(crate) fn cost(&self, op: Op, len: u64) -> u64 {
        self.queue.cost(op, len).as_nanos_ceil()
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Everything that was requested again where it may block.
    fn retries(&self) -> Retries {
        let mut retries = self.engine.retries();
        retries += self.counters.again;
        retries
    }

    pub(crate) fn counters(&self) -> ShardCounters {
        ShardCounters { blocked: self.engine.retries(), ..self.counters }
    }
}

impl Drop for Operations {
    fn drop(&mut self) {
        self.group.metrics(self.queue.shard()).publish_now(&self.queue, self.retries());
        self.group.wakers.remove(self.queue.shard());
    }
}
