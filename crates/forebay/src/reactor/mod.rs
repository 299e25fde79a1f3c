//! A thread's I/O queues, and the engine that executes the dispatched operations.

mod command;
mod completion;
mod error;
mod queues;

use std::io;
use std::time::Duration;

use forebay_core::{GroupFull, IoQueue, Op, Time};
use forebay_driver::{OperationId, PartId, QueueClass};

pub use self::completion::{Completion, ShardCounters};
pub use self::error::{ShardError, SubmitError};

use self::queues::Queues;
use crate::disk_groups::DiskGroups;
use crate::engine::{self, Engine, EngineConfig, Operation, Retries};
use crate::events::Event;
use crate::messages;
use crate::sys::clock::Clock;

/// The number of completions after which waiting requests are dispatched, so that the disk does not
/// wait until all completions are handled.
const COMPLETIONS_AT_ONCE: usize = 4;

/// The time after which a queue that waits for room in the window, and has nothing in the disk,
/// checks for forgotten permits.
const RECHECK_AFTER: Duration = Duration::from_millis(100);

/// The time in nanoseconds after which a thread that was elsewhere collects completions before it
/// checks for overdue requests.
const AWAY_NANOS: u64 = 5_000_000;

/// Called after each dispatch with the class of the request, to queue the next one of that class.
pub(crate) type Refill<'a> = &'a mut dyn FnMut(&mut Reactor, QueueClass);

/// The I/O queues of a shard, their engine, and the operations in all of them.
#[derive(Debug)]
pub(crate) struct Reactor {
    // The engine is dropped first, because its operations are in the disk.
    engine: Engine,
    queues: Queues,
    groups: DiskGroups,
    clock: Clock,
    /// A time at which the completions that are taken next had not come back.
    looked_at: Time,
    /// The number of bugs of the driver that were reported.
    bugs_reported: u64,
}

impl Reactor {
    /// The outer error is that of the engine.
    pub(crate) fn new(
        groups: DiskGroups,
        config: &EngineConfig,
    ) -> io::Result<Result<Self, GroupFull>> {
        let engine = Engine::new(config)?;
        if let Some(reason) = engine.fallback_reason() {
            let group = groups.of(Op::Read);
            let (backend, reason) = (engine.backend().name(), reason.to_owned());
            group.report(Event::Fallback { disk: group.name.clone(), backend, reason });
        }
        let queues = match Queues::join(&groups, &engine, config.depth_max as usize) {
            Ok(queues) => queues,
            Err(full) => return Ok(Err(full)),
        };
        let clock = Clock::of_process();
        Ok(Ok(Self { engine, queues, groups, clock, looked_at: Time::ZERO, bugs_reported: 0 }))
    }

    /// Queues an operation that was made at or before `now`.
    pub(crate) fn submit(
        &mut self,
        now: Time,
        class: QueueClass,
        operation: Operation,
    ) -> Result<OperationId, (SubmitError, Operation)> {
        if let Err(error) = operation.check() {
            return Err((error.into(), operation));
        }
        let submitted = self.queues.driver.submit(now, class, operation);
        submitted.map_err(|(error, operation)| (error.into(), operation))
    }

    pub(crate) fn run_once(
        &mut self,
        timeout: Option<Duration>,
        refill: Refill<'_>,
    ) -> io::Result<()> {
        // Operations that completed while the thread was elsewhere free room, and must not be taken
        // for overdue ones.
        let now = self.now();
        let away = now.nanos_since(self.looked_at);
        if away >= AWAY_NANOS {
            // A ring reports completions only when it is entered.
            self.engine.collect();
        }
        self.reap(now, refill);
        let slept = self.sleep(now, timeout);
        // Completions are taken even if nothing new can be submitted. They ended the sleep, or came
        // while the thread was elsewhere.
        let now = self.now();
        self.looked_at = Time::from_nanos(now.as_nanos().saturating_sub(away));
        self.collect(now, refill);
        slept
    }

    /// Sends the requests that may be dispatched to the disk.
    pub(crate) fn dispatch(&mut self, now: Time, refill: Refill<'_>) {
        while let Some(dispatch) = self.queues.driver.poll_unsent() {
            if !self.send(dispatch.part) {
                break;
            }
        }
        for queue in 0..self.queues.len() {
            self.queues.renew_model(queue);
            while let Some(dispatch) = self.queues.driver.poll_dispatch(now, queue) {
                self.send(dispatch.part);
                refill(self, dispatch.class);
            }
            self.queues.wake_others(queue);
        }
    }

    /// Notes that `count` threads or tasks were woken for requests of the reactor.
    pub(crate) fn note_wake_ups(&mut self, count: u64) {
        self.queues.driver.note_wake_ups(count);
    }

    /// Passes a part to the engine. Returns false if the engine is full.
    fn send(&mut self, part: PartId) -> bool {
        let Some(command) = self.queues.driver.take(part) else { return true };
        match self.engine.push(part.to_bits(), command) {
            Ok(()) => true,
            Err((_, command)) => {
                self.queues.driver.refuse(part, command);
                false
            }
        }
    }

    /// Passes all pushed operations to the kernel, and sleeps unless there is a completion already.
    pub(crate) fn sleep(&mut self, now: Time, timeout: Option<Duration>) -> io::Result<()> {
        let needed = self.timeout(now);
        let timeout = match (timeout, needed) {
            (Some(timeout), Some(needed)) => Some(timeout.min(needed)),
            (timeout, needed) => timeout.or(needed),
        };
        self.queues.publish(now, self.retries(), timeout != Some(Duration::ZERO));
        let bugs = self.queues.driver.counters().bugs;
        if bugs > self.bugs_reported {
            self.report_bugs(bugs);
        }
        self.engine.submit_and_wait(timeout)
    }

    /// Counts all new bugs, and logs the first one.
    #[cold]
    fn report_bugs(&mut self, bugs: u64) {
        let before = std::mem::replace(&mut self.bugs_reported, bugs);
        messages::count_bugs(bugs - before);
        if before > 0 {
            return;
        }
        let disk = &self.groups.of(Op::Read).name;
        messages::warn(format!(
            "a bug in forebay: requests of the disk `{disk}` were in an impossible state, and \
             some may be lost; please report it"
        ));
    }

    /// Handles completions, and dispatches requests in between.
    pub(crate) fn collect(&mut self, now: Time, refill: Refill<'_>) {
        self.queues.stopped_by_others().for_each(|group| group.poll_permits());
        self.reap(now, refill);
    }

    fn reap(&mut self, now: Time, refill: Refill<'_>) {
        loop {
            let mut taken = 0;
            while taken < COMPLETIONS_AT_ONCE
                && let Some(completion) = self.engine.pop()
            {
                self.on_completion(now, completion);
                taken += 1;
            }
            self.dispatch(now, refill);
            if taken < COMPLETIONS_AT_ONCE {
                self.looked_at = now;
                return;
            }
        }
    }

    fn on_completion(&mut self, now: Time, completion: engine::Completion) {
        let engine::Completion { token, result, operation } = completion;
        let (part, result) = (PartId::from_bits(token), result.map(|bytes| bytes as u64));
        self.queues.handle_completion(now, self.looked_at, part, result, operation);
    }

    pub(crate) fn timeout(&self, now: Time) -> Option<Duration> {
        let driver = self.queues.driver.poll_timeout(now);
        let driver = driver.map(|at| Duration::from_nanos(at.nanos_since(now)));
        let look = self.queues.stopped_by_others().next().map(|_| RECHECK_AFTER);
        [driver, look].into_iter().flatten().min()
    }

    pub(crate) fn cancel(&mut self, now: Time, id: OperationId) -> bool {
        self.queues.cancel(now, id, &mut self.engine)
    }
}

/// What the shard's owner can read or do.
impl Reactor {
    pub(crate) fn now(&self) -> Time {
        self.clock.now()
    }

    pub(crate) fn pop(&mut self) -> Option<Completion> {
        self.queues.driver.poll_completion().map(Completion::of)
    }

    pub(crate) fn watch(&mut self) {
        self.engine.watch();
    }

    pub(crate) fn len(&self) -> usize {
        self.queues.driver.len()
    }

    /// The I/O groups of its queues.
    pub(crate) fn groups(&self) -> &DiskGroups {
        &self.groups
    }

    /// The queue for requests with this operation.
    pub(crate) fn queue(&self, op: Op) -> &IoQueue {
        self.queues.driver.queue(self.groups.number_of(op))
    }

    /// The number of requests of `class` that wait in its queue.
    pub(crate) fn queued(&self, class: QueueClass) -> u32 {
        let counters = self.queues.driver.queue(class.queue).class(class.id);
        counters.map_or(0, |counters| counters.queued)
    }

    /// The disk time of a request, in nanoseconds.
    pub(crate) fn cost(&self, op: Op, len: u64) -> u64 {
        self.queue(op).cost(op, len).as_nanos_ceil()
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The counters of all operations that were repeated and may then block.
    fn retries(&self) -> Retries {
        let mut retries = self.engine.retries();
        retries += self.queues.driver.counters().transient_errors.into();
        retries
    }

    pub(crate) fn counters(&self) -> ShardCounters {
        let counters = self.queues.driver.counters();
        let short_transfers = counters.short_transfers.into();
        let transient_errors = counters.transient_errors.into();
        ShardCounters {
            would_block: self.engine.retries(),
            short_transfers,
            transient_errors,
            bugs: counters.bugs,
        }
    }
}

impl Drop for Reactor {
    fn drop(&mut self) {
        self.queues.publish_now(self.retries());
    }
}
