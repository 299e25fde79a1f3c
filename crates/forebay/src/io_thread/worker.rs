//! The loop of an I/O thread.

use std::sync::Arc;
use std::time::Duration;
use std::{io, mem, thread};

use forebay_core::Time;
use forebay_driver::{Command, OperationId, QueueClass, Submitters};
use rustix::io::Errno;
use slab::Slab;

use super::inbox::Inbox;
use super::reply::{Completion, Message, Promise, Submission, Timing};
use crate::engine::Operation;
use crate::messages;
use crate::reactor::{self, Reactor, SubmitError};
use crate::sys::panics::contain;
use crate::sys::waker::KeptWaker;

/// The pause after a system call of the reactor failed.
const REFUSED_PAUSE: Duration = Duration::from_millis(1);

/// An I/O thread's reactor and requests.
pub(super) struct Worker {
    reactor: Reactor,
    inbox: Arc<Inbox<Message>>,
    requests: Requests,
    /// The messages that are being read, in reverse order.
    messages: Vec<Message>,
    wakers: Vec<KeptWaker>,
}

/// The requests without an answer.
struct Requests {
    pending: Slab<Pending>,
    /// The requests that wait before the I/O queue, by their keys in `pending`.
    waiting: Submitters<(usize, Operation)>,
    /// The number of broken invariants of `waiting` that were reported.
    bugs_reported: u64,
    /// The keys of submitted requests, by [`OperationId::index`].
    submitted: Vec<usize>,
    /// The number of requests that were abandoned before they were taken.
    abandoned: usize,
    /// The requests that ended without reaching the disk.
    refused: Vec<(usize, io::Error, Operation)>,
}

struct Pending {
    promise: Promise,
    class: QueueClass,
    since: Time,
    stage: Stage,
}

enum Stage {
    /// The request waits in `waiting`, under this key.
    Waiting(usize),
    Submitted(OperationId),
    /// The request ended without reaching the disk.
    Ended,
}

impl Worker {
    pub(super) fn new(reactor: Reactor, inbox: Arc<Inbox<Message>>) -> Self {
        let requests = Requests {
            pending: Slab::new(),
            waiting: Submitters::new(|op, len| reactor.cost(op, len)),
            bugs_reported: 0,
            submitted: Vec::new(),
            abandoned: 0,
            refused: Vec::new(),
        };
        Self { reactor, inbox, requests, messages: Vec::new(), wakers: Vec::new() }
    }

    /// Works until the inbox is closed. Nobody waits for the requests that are left then, because a
    /// waiting caller keeps the disk, and so the inbox.
    pub(super) fn work(&mut self) {
        let mut answered = 0;
        let mut refused = false;
        loop {
            if !self.inbox.take(&mut self.messages, answered) {
                return;
            }
            if !self.messages.is_empty() {
                // The sender of the first message has woken this thread.
                self.reactor.note_wake_ups(1);
            }
            self.messages.reverse();
            let now = self.reactor.now();
            while let Some(message) = self.messages.pop() {
                self.read(now, message);
            }
            let timeout = self.requests.has_answers().then_some(Duration::ZERO);
            let Self { reactor, requests, .. } = self;
            let refill = &mut |reactor: &mut Reactor, class| {
                requests.refill(reactor, class);
            };
            match reactor.run_once(timeout, refill) {
                Ok(()) => refused = false,
                Err(error) => {
                    // A repeated error is logged only once.
                    if !mem::replace(&mut refused, true) {
                        messages::warn(format!(
                            "a system call of an I/O thread failed; the thread continues: {error}"
                        ));
                    }
                    thread::sleep(REFUSED_PAUSE);
                }
            }
            self.requests.report_bugs();
            answered = self.answer();
            self.wake();
        }
    }

    fn read(&mut self, now: Time, message: Message) {
        match message {
            Message::Request(promise) => self.requests.take(&mut self.reactor, promise),
            Message::Cancel(reply) => {
                if let Some(key) = reply.key() {
                    self.requests.cancel(&mut self.reactor, now, key);
                }
            }
        }
    }

    /// Answers all completed requests. Returns their number.
    fn answer(&mut self) -> usize {
        let mut answered = mem::take(&mut self.requests.abandoned);
        while let Some(completion) = self.reactor.pop() {
            let reactor::Completion { id, result, operation, queue_nanos, disk_nanos } = completion;
            let key = self.requests.submitted.get(id.index());
            let pending = key.and_then(|key| self.requests.pending.try_remove(*key));
            let Some(Pending { promise, .. }) = pending else {
                messages::report_invariant(
                    "a request ended in the reactor that its I/O thread does not know",
                );
                continue;
            };
            let timing = Timing { queue_nanos, disk_nanos };
            self.wakers.extend(promise.fulfil(Completion { result, operation, timing }));
            answered += 1;
        }
        for (key, error, operation) in self.requests.refused.drain(..) {
            let promise = self.requests.pending.remove(key).promise;
            self.wakers.extend(promise.fulfil(Completion::refusal(error, operation)));
            answered += 1;
        }
        answered
    }

    fn wake(&mut self) {
        self.reactor.note_wake_ups(self.wakers.len() as u64);
        // Parked threads are woken first, because a task's waker may wait for one of them.
        for own in [true, false] {
            let wakers = self.wakers.extract_if(.., |waker| waker.is_own() == own);
            wakers.for_each(KeptWaker::wake);
        }
    }

    /// Ends all requests after a panic, when this state is no longer reliable. Requests in the disk
    /// end after the engine has given them up.
    pub(super) fn fail_all(mut self) {
        contain(|| self.wake());
        let Self { reactor, requests, messages, .. } = self;
        contain(|| drop(reactor));
        contain(|| drop((requests, messages)));
    }
}

impl Requests {
    /// Whether there are answers that do not depend on the disk.
    fn has_answers(&self) -> bool {
        self.abandoned > 0 || !self.refused.is_empty()
    }

    /// Takes a new request into `waiting`, and moves requests on into the I/O queue.
    fn take(&mut self, reactor: &mut Reactor, promise: Promise) {
        let entry = self.pending.vacant_entry();
        let key = entry.key();
        let Some(Submission { class, since, submitter, operation }) = promise.take_request(key)
        else {
            self.abandoned += 1;
            return;
        };
        let cost = reactor.cost(operation.op(), operation.bytes());
        let waiting = self.waiting.push(class, submitter, cost, (key, operation));
        entry.insert(Pending { promise, class, since, stage: Stage::Waiting(waiting) });
        self.refill(reactor, class);
    }

    /// Moves waiting requests of `class` into the I/O queue.
    fn refill(&mut self, reactor: &mut Reactor, class: QueueClass) {
        while let Some((key, operation)) = self.waiting.pop(class, reactor.queued(class)) {
            let Some(pending) = self.pending.get_mut(key) else {
                messages::report_invariant("a waiting request is unknown to its I/O thread");
                continue;
            };
            match reactor.submit(pending.since, pending.class, operation) {
                Ok(id) => {
                    pending.stage = Stage::Submitted(id);
                    if self.submitted.len() <= id.index() {
                        self.submitted.resize(id.index() + 1, usize::MAX);
                    }
                    self.submitted[id.index()] = key;
                }
                Err((error, operation)) => {
                    pending.stage = Stage::Ended;
                    self.refused.push((key, refusal(error), operation));
                }
            }
        }
    }

    /// Reports new broken invariants of `waiting`.
    fn report_bugs(&mut self) {
        if self.waiting.bugs() > self.bugs_reported {
            self.bugs_reported = self.waiting.bugs();
            messages::report_invariant(
                "a waiting request is missing in the queue of its submitter",
            );
        }
    }

    fn cancel(&mut self, reactor: &mut Reactor, now: Time, key: usize) {
        let Some(pending) = self.pending.get_mut(key) else {
            return messages::report_invariant("a request has lost its key");
        };
        let class = pending.class;
        match &pending.stage {
            Stage::Submitted(id) => {
                reactor.cancel(now, *id);
                self.refill(reactor, class);
            }
            Stage::Waiting(waiting) => {
                let Some((_, operation)) = self.waiting.remove(*waiting) else {
                    return messages::report_invariant("a waiting request has no operation");
                };
                pending.stage = Stage::Ended;
                self.refused.push((key, Errno::CANCELED.into(), operation));
            }
            // It was refused, and is answered next.
            Stage::Ended => {}
        }
    }
}

/// The error for a request that the I/O queue refused.
fn refusal(error: SubmitError) -> io::Error {
    let kind = match error {
        SubmitError::Full => io::ErrorKind::QuotaExceeded,
        _ => io::ErrorKind::InvalidInput,
    };
    io::Error::new(kind, error)
}
