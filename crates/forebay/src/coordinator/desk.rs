//! What an I/O thread does.

use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;
use std::{io, mem, thread};

use forebay_core::{Op, Time};
use forebay_driver::{Command, OperationId, QueueClass};
use rustix::io::Errno;
use slab::Slab;

use super::lane::{Lane, Place, Places};
use super::mailbox::{Letter, Mailbox};
use super::slot::{Answer, Message, Promise, Timing};
use crate::engine::Operation;
use crate::messages;
use crate::shard::{Completion, Operations, SubmitError};
use crate::sys::panics::contain;

/// Requests of a class in the I/O queue at once: as few as keep it from
/// running dry between two dispatches, for there they are served in the order
/// in which they came, whoever submitted them.
const FED_MAX: u32 = 8;

/// A turn of a submitter is worth a request of so many bytes.
const TURN_BYTES: u64 = 128 << 10;

/// Pause after the kernel has refused everything.
const REFUSED_PAUSE: Duration = Duration::from_millis(1);

/// An I/O thread's shard, and the orders that it has.
pub(super) struct Desk {
    operations: Operations,
    mailbox: Arc<Mailbox>,
    orders: Orders,
    /// Letters that are being read, the first one last.
    letters: Vec<Letter>,
    wakers: Vec<Waker>,
}

/// Orders that are not answered.
struct Orders {
    taken: Slab<Taken>,
    /// By [`QueueClass::index`].
    lanes: Vec<Lane>,
    /// Keys of orders, by [`OperationId::index`].
    submitted: Vec<usize>,
    /// Orders that were abandoned before they were taken.
    abandoned: usize,
    /// Ended without the disk.
    refused: Vec<(usize, io::Error, Operation)>,
    quantum: u64,
}

struct Taken {
    promise: Promise,
    class: QueueClass,
    since: Time,
    stage: Stage,
}

enum Stage {
    /// In a lane; the place is there once it is pushed.
    Waiting(Option<Place>, Operation),
    Submitted(OperationId),
    /// Between the two.
    Moving,
}

impl Places for Slab<Taken> {
    fn place(&mut self, key: usize) -> Option<&mut Place> {
        match &mut self.get_mut(key)?.stage {
            Stage::Waiting(place, _) => place.as_mut(),
            _ => None,
        }
    }
}

impl Desk {
    pub(super) fn new(operations: Operations, mailbox: Arc<Mailbox>) -> Self {
        let quantum =
            operations.cost(Op::Read, TURN_BYTES).max(operations.cost(Op::Write, TURN_BYTES));
        let orders = Orders {
            taken: Slab::new(),
            lanes: Vec::new(),
            submitted: Vec::new(),
            abandoned: 0,
            refused: Vec::new(),
            quantum,
        };
        Self { operations, mailbox, orders, letters: Vec::new(), wakers: Vec::new() }
    }

    /// Works until the mailbox is closed. What is left then is wanted by
    /// nobody: whoever waits keeps the disk, and with it the mailbox.
    pub(super) fn work(&mut self) {
        let mut answered = 0;
        let mut refused = false;
        loop {
            if !self.mailbox.take(&mut self.letters, answered) {
                return;
            }
            self.letters.reverse();
            let now = self.operations.now();
            while let Some(letter) = self.letters.pop() {
                self.read(now, letter);
            }
            let timeout = self.orders.has_answers().then_some(Duration::ZERO);
            let Self { operations, orders, .. } = self;
            let refill = &mut |operations: &mut Operations, class| {
                orders.feed(operations, class);
            };
            match operations.turn(timeout, refill) {
                Ok(()) => refused = false,
                Err(error) => {
                    // Told once, however often it is tried.
                    if !mem::replace(&mut refused, true) {
                        messages::warn(format!(
                            "an I/O thread cannot reach the kernel, and goes on: {error}"
                        ));
                    }
                    thread::sleep(REFUSED_PAUSE);
                }
            }
            answered = self.answer();
            self.wake();
        }
    }

    fn read(&mut self, now: Time, letter: Letter) {
        match letter {
            Letter::Order(promise) => self.orders.take(&mut self.operations, promise),
            Letter::Cancel(slot) => {
                if let Some(key) = slot.key() {
                    self.orders.cancel(&mut self.operations, now, key);
                }
            }
        }
    }

    /// Hands over all answers; how many.
    fn answer(&mut self) -> usize {
        let mut answered = mem::take(&mut self.orders.abandoned);
        while let Some(completion) = self.operations.pop() {
            let Completion { id, result, operation, queue_nanos, disk_nanos } = completion;
            let Some(key) = self.orders.submitted.get(id.index()) else { continue };
            let promise = self.orders.taken.remove(*key).promise;
            let timing = Timing { queue_nanos, disk_nanos };
            self.wakers.extend(promise.keep(Answer { result, operation, timing }));
            answered += 1;
        }
        for (key, error, operation) in self.orders.refused.drain(..) {
            let promise = self.orders.taken.remove(key).promise;
            self.wakers.extend(promise.keep(Answer::refusal(error, operation)));
            answered += 1;
        }
        answered
    }

    fn wake(&mut self) {
        for waker in self.wakers.drain(..) {
            // What others do when they are woken shall not end this thread.
            contain(|| waker.wake());
        }
    }

    /// After a panic, which leaves nothing here to rely on: all orders end,
    /// those in the disk after the engine has given them up.
    pub(super) fn break_down(mut self) {
        contain(|| self.wake());
        let Self { operations, orders, letters, .. } = self;
        contain(|| drop(operations));
        contain(|| drop((orders, letters)));
    }
}

impl Orders {
    /// Whether there is something to tell without the disk.
    fn has_answers(&self) -> bool {
        self.abandoned > 0 || !self.refused.is_empty()
    }

    /// Takes a new order: into the I/O queue, or its lane.
    fn take(&mut self, operations: &mut Operations, promise: Promise) {
        let entry = self.taken.vacant_entry();
        let key = entry.key();
        let Some(Message { class, since, submitter, operation }) = promise.take_order(key) else {
            self.abandoned += 1;
            return;
        };
        let cost = operations.cost(operation.op(), operation.bytes());
        entry.insert(Taken { promise, class, since, stage: Stage::Waiting(None, operation) });
        if self.lanes.len() <= class.index() {
            self.lanes.resize_with(class.index() + 1, Lane::default);
        }
        let lane = &mut self.lanes[class.index()];
        let place = lane.push(&mut self.taken, key, (submitter, cost), class.holder);
        if let Stage::Waiting(none, _) = &mut self.taken[key].stage {
            *none = Some(place);
        }
        self.feed(operations, class);
    }

    /// Moves requests of `class` from its lane into the I/O queue: a few, and
    /// whatever is before one whose submitter holds a permit, for only there
    /// does it get on.
    fn feed(&mut self, operations: &mut Operations, class: QueueClass) {
        let Some(lane) = self.lanes.get_mut(class.index()) else { return };
        while (operations.queued(class) < FED_MAX || lane.has_holders())
            && let Some(key) = lane.pop(&mut self.taken, self.quantum)
        {
            let taken = &mut self.taken[key];
            let Stage::Waiting(_, operation) = mem::replace(&mut taken.stage, Stage::Moving) else {
                continue;
            };
            match operations.submit(taken.since, taken.class, operation) {
                Ok(id) => {
                    taken.stage = Stage::Submitted(id);
                    if self.submitted.len() <= id.index() {
                        self.submitted.resize(id.index() + 1, usize::MAX);
                    }
                    self.submitted[id.index()] = key;
                }
                Err((error, operation)) => {
                    self.refused.push((key, refusal(error), operation));
                }
            }
        }
    }

    fn cancel(&mut self, operations: &mut Operations, now: Time, key: usize) {
        let Some(taken) = self.taken.get_mut(key) else { return };
        let class = taken.class;
        match &taken.stage {
            Stage::Submitted(id) => {
                operations.cancel(now, *id);
                self.feed(operations, class);
            }
            Stage::Waiting(..) => {
                if let Some(lane) = self.lanes.get_mut(class.index()) {
                    lane.remove(&mut self.taken, key);
                }
                let stage = mem::replace(&mut self.taken[key].stage, Stage::Moving);
                if let Stage::Waiting(_, operation) = stage {
                    self.refused.push((key, Errno::CANCELED.into(), operation));
                }
            }
            Stage::Moving => {}
        }
    }
}

/// Why the I/O queue did not take a request.
fn refusal(error: SubmitError) -> io::Error {
    let kind = match error {
        SubmitError::Full => io::ErrorKind::QuotaExceeded,
        _ => io::ErrorKind::InvalidInput,
    };
    io::Error::new(kind, error)
}
