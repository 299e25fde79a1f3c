//! The driver, and its way from the I/O queues to the engine.

use std::collections::VecDeque;

use forebay_core::{DiskModel, IoQueue, Op, ShardId, Ticket, Time};

use crate::class::QueueClass;
use crate::command::Command;
use crate::queue::Queue;
use crate::request::{Completion, OperationId, Part, PartId};
use crate::table::Table;

/// A queue is asked at least so often, in nanoseconds, while the engine is
/// full: what hangs in the disk would hold the budget of others.
const ASK_WHEN_FULL_NANOS: u64 = 10_000_000;

/// What the engine did not take is offered again after so long.
const OFFER_AGAIN_NANOS: u64 = 1_000_000;

/// The I/O queues of a thread, and the requests in them and in an engine.
///
/// The owner calls the verbs. After each [`submit`](Self::submit),
/// [`handle_completion`](Self::handle_completion), [`cancel`](Self::cancel),
/// wake-up, and at the time that [`poll_timeout`](Self::poll_timeout) names, it
/// sends to the engine what [`poll_unsent`](Self::poll_unsent) and then
/// [`poll_dispatch`](Self::poll_dispatch) return, wakes whom
/// [`poll_wake`](Self::poll_wake) names, and takes what has ended from
/// [`poll_completion`](Self::poll_completion).
///
/// Memory is bounded by what the queues hold. Once the tables have grown to
/// that, only requests of several parts allocate.
#[derive(Debug)]
pub struct Driver<C: Command> {
    /// One, or two where reads have a queue of their own.
    pub(crate) queues: Box<[Queue]>,
    pub(crate) table: Table<C>,
    /// Parts that were dispatched and that the engine does not have: it refused
    /// them, or has had them and they go on.
    pub(crate) unsent: VecDeque<PartId>,
    /// Requests that have ended.
    pub(crate) ended: VecDeque<OperationId>,
    /// Parts that the engine has.
    pub(crate) inflight: usize,
    inflight_max: usize,
    pub(crate) counters: DriverCounters,
}

/// A part that goes to the engine now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dispatch {
    /// What the engine is to know it by, and what its command is
    /// [taken](Driver::take) by.
    pub part: PartId,
    /// Its request.
    pub operation: OperationId,
    /// The class of that.
    pub class: QueueClass,
    /// Its name in the I/O queue.
    pub ticket: Ticket,
}

/// What a driver did more than once, and what never should have happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DriverCounters {
    /// The rest sent again after a short transfer.
    pub short_transfers: Resent,
    /// Sent again because it had failed for the moment.
    pub transient_errors: Resent,
    /// How often the driver's own state, or what the engine said, was
    /// impossible: each is a bug, here or in the engine.
    pub bugs: u64,
}

/// Parts that were sent again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Resent {
    /// Reads.
    pub reads: u64,
    /// All others.
    pub writes: u64,
}

impl<C: Command> Driver<C> {
    /// Of these queues, one, or two of which the first is for reads, and an
    /// engine that takes this many commands at once.
    pub fn new(queues: impl IntoIterator<Item = IoQueue>, inflight_max: usize) -> Self {
        Self {
            queues: queues.into_iter().map(Queue::new).collect(),
            table: Table::new(),
            unsent: VecDeque::new(),
            ended: VecDeque::new(),
            inflight: 0,
            inflight_max,
            counters: DriverCounters::default(),
        }
    }

    /// A part of the queue with this number that may go to the disk now; to be
    /// asked until it returns `None`. Its command is to be [taken](Self::take)
    /// to the engine.
    pub fn poll_dispatch(&mut self, now: Time, queue: usize) -> Option<Dispatch> {
        if self.has_room() {
            return self.next_part(now, queue);
        }
        if now >= self.queues[queue].asked_at.plus_nanos(ASK_WHEN_FULL_NANOS)
            && let Some(dispatch) = self.next_part(now, queue)
        {
            self.unsent.push_back(dispatch.part);
        }
        None
    }

    /// A part that goes to the engine without the queue: it was refused, or
    /// has come back and goes on. To be asked before
    /// [`poll_dispatch`](Self::poll_dispatch), until it returns `None` or the
    /// engine takes none.
    pub fn poll_unsent(&mut self) -> Option<Dispatch> {
        while let Some(part) = self.unsent.pop_front() {
            if let Some((operation, request, Part { ticket, .. })) = self.table.part(part) {
                return Some(Dispatch { part, operation, class: request.class, ticket: *ticket });
            }
            self.report_invariant("an unknown part was to be sent");
        }
        None
    }

    /// The command of a part that goes to the engine now. What the engine does
    /// not take is to be [refused](Self::refuse).
    pub fn take(&mut self, part: PartId) -> Option<C> {
        let command = self.table.part(part).and_then(|(_, _, part)| part.command.take());
        match command {
            Some(_) => self.inflight += 1,
            None => self.report_invariant("a part went to the engine that is there already"),
        }
        command
    }

    /// The engine takes nothing now: a part that was to go comes back, and is
    /// the next to go.
    pub fn refuse(&mut self, part: PartId, command: C) {
        match self.table.part(part) {
            Some((_, _, refused)) if refused.command.is_none() => refused.command = Some(command),
            _ => {
                return self.report_invariant(
                    "the engine refused a request other than the one that it was given",
                );
            }
        }
        self.inflight = self.inflight.saturating_sub(1);
        self.unsent.push_front(part);
    }

    /// A request that has ended.
    pub fn poll_completion(&mut self) -> Option<Completion<C>> {
        let id = self.ended.pop_front()?;
        let completion = self.table.complete(id);
        if completion.is_none() {
            self.report_invariant("a request has ended without its command");
        }
        completion
    }

    /// A shard to wake that waits for what this queue has freed; to be asked
    /// until it returns `None`.
    pub fn poll_wake(&mut self, queue: usize) -> Option<ShardId> {
        self.queues[queue].io.poll_wake()
    }

    /// The owner has woken this number of threads or tasks that have to do with its
    /// requests: its first queue [counts](IoQueue::note_wake_ups) them.
    pub fn note_wake_ups(&mut self, count: u64) {
        self.queues.first_mut().into_iter().for_each(|queue| queue.io.note_wake_ups(count));
    }

    /// When to go on if nothing happens before; `None` if only an event can
    /// change anything. Never earlier than `now`.
    pub fn poll_timeout(&self, now: Time) -> Option<Time> {
        if !self.ended.is_empty() {
            return Some(now);
        }
        let queues = self.queues.iter();
        let asked = if self.has_room() {
            queues.filter_map(|queue| queue.io.poll_timeout(now)).min()
        } else {
            let ask = |queue: &Queue| queue.asked_at.plus_nanos(ASK_WHEN_FULL_NANOS).max(now);
            queues.map(ask).min()
        };
        let offered = (!self.unsent.is_empty()).then(|| now.plus_nanos(OFFER_AGAIN_NANOS));
        [asked, offered].into_iter().flatten().min()
    }

    /// What requests of a queue cost from now on.
    pub fn set_model(&mut self, queue: usize, model: DiskModel) {
        self.queues[queue].io.set_model(model);
    }

    /// Ends the queues, and tells whom to wake that waits for what one of them
    /// held. Nothing can be submitted any more.
    pub fn leave(&mut self, now: Time, mut wake: impl FnMut(usize, ShardId)) {
        for (number, queue) in std::mem::take(&mut self.queues).into_iter().enumerate() {
            queue.io.leave(now).for_each(|shard| wake(number, shard));
        }
    }

    /// The part of a queue that is to go to the disk next.
    fn next_part(&mut self, now: Time, queue: usize) -> Option<Dispatch> {
        let part = self.queues[queue].poll_dispatch(now)?;
        let Some((operation, request, Part { ticket, .. })) = self.table.part(part) else {
            self.report_invariant("a ticket in the I/O queue belongs to no part");
            return None;
        };
        request.dispatched = now;
        Some(Dispatch { part, operation, class: request.class, ticket: *ticket })
    }

    /// Whether the engine takes more.
    fn has_room(&self) -> bool {
        self.unsent.is_empty() && self.inflight < self.inflight_max
    }

    /// Counts a violation of an invariant.
    #[cold]
    pub(crate) fn report_invariant(&mut self, violation: &str) {
        self.counters.bugs += 1;
        debug_assert!(false, "{violation}");
    }
}

/// What the owner may look at.
impl<C: Command> Driver<C> {
    /// Requests submitted whose completions have not been taken.
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// These requests, with their classes.
    pub fn requests(&self) -> impl Iterator<Item = (OperationId, QueueClass)> {
        self.table.requests()
    }

    /// Of each part of a request: its name in the queue, void once the part has
    /// ended, and its length in bytes.
    pub fn parts(&self, id: OperationId) -> impl Iterator<Item = (Ticket, u64)> {
        self.table.parts(id).map(|part| (part.ticket, part.len))
    }

    /// The queue with this number.
    pub fn queue(&self, number: usize) -> &IoQueue {
        &self.queues[number].io
    }

    /// All queues.
    pub fn queues(&self) -> impl Iterator<Item = &IoQueue> {
        self.queues.iter().map(|queue| &queue.io)
    }

    /// What it did more than once, and its bugs.
    pub const fn counters(&self) -> DriverCounters {
        self.counters
    }
}

impl Resent {
    /// Counts one more.
    pub(crate) const fn add(&mut self, op: Op) {
        match op {
            Op::Read => self.reads += 1,
            _ => self.writes += 1,
        }
    }
}
