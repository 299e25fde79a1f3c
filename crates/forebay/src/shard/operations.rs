//! Operations on their way through an I/O queue and an engine.

use std::collections::VecDeque;
use std::io;
use std::time::Duration;

use forebay_core::{GroupFull, IoQueue, Op, Outcome, Time};
use rustix::io::Errno;
use slab::Slab;

use super::ending::{Ending, count};
use super::outcome::{Finished, OperationId, ShardCounters};
use super::pieces::Piece;
use super::request::{PartId, Request};
use super::stream::{Places, Stream};
use crate::clock::Clock;
use crate::engine::{Completed, Engine, EngineConfig, Retries};
use crate::events::Event;
use crate::streams::{StreamClass, Streams};

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
pub(crate) type Refill<'a> = &'a mut dyn FnMut(&mut Operations, StreamClass);

/// The I/O queues of a shard, their engine, and the operations in all of them.
#[derive(Debug)]
pub(crate) struct Operations {
    // The engine goes first: what it has is in the disk.
    engine: Engine,
    /// By their numbers; one, or two on a duplex disk.
    pub(super) streams: Places,
    groups: Streams,
    clock: Clock,
    depth_max: usize,
    pub(super) requests: Slab<Request>,
    pub(super) generation: u32,
    /// Dispatched parts that the engine did not take yet.
    unsent: VecDeque<PartId>,
    /// When what comes back now was not back yet.
    looked_at: Time,
    /// When to ask the queues next while the engine is full.
    look_at: Time,
    /// Keys of requests that wait to be popped.
    ended: VecDeque<usize>,
    counters: ShardCounters,
}

impl Operations {
    /// The outer error is the engine's.
    pub(crate) fn new(
        groups: Streams,
        config: &EngineConfig,
    ) -> io::Result<Result<Self, GroupFull>> {
        let engine = Engine::new(config)?;
        if let Some(reason) = engine.fallback_reason() {
            let group = groups.of(Op::Read);
            group.tell(Event::Fallback { disk: group.name.clone(), reason: reason.to_owned() });
        }
        let streams = match Places::join(&groups, &engine) {
            Ok(streams) => streams,
            Err(full) => return Ok(Err(full)),
        };
        Ok(Ok(Self {
            engine,
            streams,
            groups,
            clock: Clock::of_process(),
            depth_max: config.depth_max as usize,
            requests: Slab::new(),
            generation: 0,
            unsent: VecDeque::new(),
            looked_at: Time::ZERO,
            look_at: Time::ZERO,
            ended: VecDeque::new(),
            counters: ShardCounters::default(),
        }))
    }

    pub(crate) fn turn(&mut self, timeout: Option<Duration>, refill: Refill<'_>) -> io::Result<()> {
        // What has come back while the thread was elsewhere makes room, and must
        // not be taken for what the disk keeps.
        let now = self.now();
        let away = now.nanos_since(self.looked_at);
        self.reap(now, refill);
        let slept = self.sleep(now, timeout);
        // What has completed is taken even where nothing new can be submitted.
        // It has ended the sleep, or came while the thread was elsewhere.
        let now = self.now();
        self.looked_at = Time::from_nanos(now.as_nanos().saturating_sub(away));
        self.collect(now, refill);
        slept
    }

    /// Sends to the disk what may go.
    pub(crate) fn dispatch(&mut self, now: Time, refill: Refill<'_>) {
        self.send_unsent();
        let look = !self.has_room() && now >= self.look_at;
        if look {
            self.look_at = now.plus_nanos(LOOK_WHEN_FULL_NANOS);
        }
        for stream in 0..self.streams.len() {
            self.streams[stream].renew_model();
            while self.has_room()
                && let Some(class) = self.dispatch_next(now, stream)
            {
                refill(self, class);
            }
            if look {
                // The queue has to be asked, or what hangs in the disk would
                // hold the budget of others.
                self.dispatch_next(now, stream);
            }
            self.streams[stream].wake_others();
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
        for (number, stream) in self.streams.iter().enumerate() {
            stream.publish(now, self.retries_in(number), pausing);
        }
        self.engine.submit_and_wait(timeout)
    }

    /// Takes what has completed; the disk gets new requests in between.
    pub(crate) fn collect(&mut self, now: Time, refill: Refill<'_>) {
        for stream in self.streams.iter().filter(|stream| stream.is_stopped_by_others()) {
            stream.group.poll_admission();
        }
        self.reap(now, refill);
    }

    fn reap(&mut self, now: Time, refill: Refill<'_>) {
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
                self.looked_at = now;
                return;
            }
        }
    }

    pub(crate) fn timeout(&self, now: Time) -> Option<Duration> {
        if !self.ended.is_empty() {
            return Some(Duration::ZERO);
        }
        let queues = self.streams.iter().filter_map(|stream| stream.queue.poll_timeout(now));
        let queue = if self.has_room() { queues.min() } else { Some(self.look_at) };
        let queue = queue.map(|at| Duration::from_nanos(at.nanos_since(now)));
        let stopped = self.streams.iter().any(Stream::is_stopped_by_others);
        let look = stopped.then_some(LOOK_AFTER);
        let refused = (!self.unsent.is_empty()).then_some(TRY_AGAIN_AFTER);
        [queue, look, refused].into_iter().flatten().min()
    }

    pub(crate) fn cancel(&mut self, now: Time, id: OperationId) -> bool {
        let known =
            |request: &&mut Request| request.generation == id.generation && request.ended.is_none();
        let Some(request) = self.requests.get_mut(id.index()).filter(known) else { return false };
        request.cancelled = true;
        let mut part = PartId { request: id.index, number: 0 };
        while self.cancel_part(now, part) {
            part.number += 1;
        }
        true
    }

    /// False if there is no such part.
    fn cancel_part(&mut self, now: Time, id: PartId) -> bool {
        let Some(request) = self.requests.get_mut(id.request as usize) else { return false };
        let stream = request.class.stream;
        let Some(part) = request.part_mut(id.number) else { return false };
        if part.is_over {
            return true;
        }
        if part.operation.is_none() {
            self.engine.cancel(id.to_bits());
            return true;
        }
        let ticket = part.ticket;
        self.unsent.retain(|unsent| *unsent != id);
        self.streams[stream].queue.cancel(now, ticket);
        self.part_done(now, id, Err(Errno::CANCELED.into()));
        true
    }

    /// Sends the part of a stream that is next; its class.
    fn dispatch_next(&mut self, now: Time, stream: usize) -> Option<StreamClass> {
        let id = self.streams[stream].poll_dispatch(now)?;
        let request = self.requests.get_mut(id.request as usize)?;
        request.dispatched = now;
        let class = request.class;
        self.send_or_keep(id);
        Some(class)
    }

    fn send_unsent(&mut self) {
        while let Some(id) = self.unsent.front()
            && self.send(*id)
        {
            self.unsent.pop_front();
        }
    }

    fn send_or_keep(&mut self, id: PartId) {
        if !self.send(id) {
            self.unsent.push_back(id);
        }
    }

    /// Gives a part to the engine; false if it takes none now.
    fn send(&mut self, id: PartId) -> bool {
        let request = self.requests.get_mut(id.request as usize);
        let Some(part) = request.and_then(|request| request.part_mut(id.number)) else {
            return true;
        };
        let Some(operation) = part.operation.take() else { return true };
        match self.engine.push(id.to_bits(), operation) {
            Ok(()) => true,
            Err((_, operation)) => {
                part.operation = Some(operation);
                false
            }
        }
    }

    fn settle(&mut self, now: Time, completed: Completed) {
        let Completed { token, result, operation } = completed;
        let id = PartId::from_bits(token);
        let Some(request) = self.requests.get_mut(id.request as usize) else { return };
        let cancelled = request.cancelled;
        let Some(part) = request.part_mut(id.number) else { return };
        match Ending::of(part, cancelled, &operation, result) {
            Ending::Done(outcome) => {
                part.operation = Some(operation);
                self.part_done(now, id, outcome);
                return;
            }
            Ending::Again => {
                count(&mut self.counters.again, &operation);
                part.tries += 1;
                part.operation = Some(operation);
            }
            Ending::Rest(bytes) => {
                count(&mut self.counters.short, &operation);
                let mut piece = Piece { operation, continues: part.continues };
                if let Some(rest) = piece.split_off(bytes) {
                    (part.operation, part.continues) = (Some(rest.operation), rest.continues);
                }
                let at = part.at + part.done;
                part.done += bytes;
                request.keep(at, piece);
            }
        }
        self.send_or_keep(id);
    }

    /// A part has ended; what is left of it is where it belongs.
    fn part_done(&mut self, now: Time, id: PartId, outcome: io::Result<u64>) {
        let Some(request) = self.requests.get_mut(id.request as usize) else { return };
        let stream = &mut self.streams[request.class.stream];
        let Some(part) = request.part_mut(id.number) else { return };
        part.is_over = true;
        let answer = if outcome.is_ok() { Outcome::Done } else { Outcome::Failed };
        let (ticket, at, len) = (part.ticket, part.at, part.len);
        // Stale if it never left the queue.
        let reaped = stream.queue.complete_reaped(now, ticket, answer, self.looked_at);
        if let Ok(completion) = reaped {
            stream.group.metrics(stream.queue.shard()).record(&completion);
        }
        if request.part_done(at, len, outcome) {
            request.ended = Some(now);
            self.ended.push_back(id.request as usize);
        }
    }

    /// Whether the engine takes more.
    fn has_room(&self) -> bool {
        self.unsent.is_empty() && self.engine.in_flight() < self.depth_max
    }
}

/// What the shard's owner may look at.
impl Operations {
    pub(crate) fn now(&self) -> Time {
        self.clock.now()
    }

    pub(crate) fn pop(&mut self) -> Option<Finished> {
        let key = self.ended.pop_front()?;
        let finished = self.requests.get_mut(key)?.finish(key);
        self.requests.remove(key);
        finished
    }

    pub(crate) fn watch(&mut self) {
        self.engine.watch();
    }

    pub(crate) fn len(&self) -> usize {
        self.requests.len()
    }

    /// The I/O groups that it has queues in.
    pub(crate) fn groups(&self) -> &Streams {
        &self.groups
    }

    /// The queue that such requests are in.
    pub(crate) fn queue(&self, op: Op) -> &IoQueue {
        &self.streams[self.groups.number_of(op)].queue
    }

    /// Requests of `class` that wait in its queue.
    pub(crate) fn queued(&self, class: StreamClass) -> u32 {
        self.streams[class.stream].queue.class(class.id).map_or(0, |counters| counters.queued)
    }

    /// Disk time of a request, in nanoseconds.
    pub(crate) fn cost(&self, op: Op, len: u64) -> u64 {
        self.queue(op).cost(op, len).as_nanos_ceil()
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Everything that was requested again where it may block; told once, by
    /// the first stream.
    fn retries_in(&self, stream: usize) -> Retries {
        if stream > 0 {
            return Retries::default();
        }
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
        for (number, stream) in self.streams.iter().enumerate() {
            stream.publish_now(self.retries_in(number));
        }
    }
}
