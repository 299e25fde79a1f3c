//! One shard of a run: its I/O queues and its part of the load.
//!
//! A turn takes the completions that have come, lets the generators go on, sends to the disk what
//! the scheduler lets through, and may then keep the processor busy for a while, in which there
//! are no turns. A coordinator is a shard that has the load of others as well.

mod cancels;
mod requests;

use std::collections::VecDeque;

use forebay_core::{IoQueue, Op, Time, saturating_nanos};
use forebay_driver::{Driver, OperationId, Submitters, queue_for};
use forebay_load::Rng;
use forebay_load::generator::{Action, Generator, Work};
use forebay_load::recorder::{Completion, Recorder};
use slab::Slab;

use super::engine::Returned;
use super::environment::Environment;
use super::layout::Extent;
use crate::config::Polling;
use crate::load_command::LoadCommand;
pub(super) use cancels::ShardCancels;

/// A job on a shard.
pub(super) struct ShardJob {
    /// The index of the job in its file.
    pub(super) index: usize,
    /// The index of its class there.
    pub(super) class: usize,
    /// The number of the shard whose load it is.
    pub(super) shard: u32,
    /// `None` until the job begins.
    pub(super) generator: Option<Generator>,
    pub(super) recorder: Recorder,
    pub(super) extent: Extent,
    /// Whether the job was stopped on schedule.
    pub(super) is_stopped: bool,
    /// Whether each of its requests is held until another like it is done.
    pub(super) holds: bool,
}

impl ShardJob {
    /// Whether a request of the job is a flush that follows others.
    fn is_flush_between(&self, op: Op) -> bool {
        self.generator.as_ref().is_some_and(|generator| generator.is_flush_between(op))
    }
}

/// How a shard stalls.
#[derive(Clone, Debug)]
pub(super) struct ShardStalls {
    pub(super) one_in: u64,
    pub(super) nanos: u64,
    pub(super) rng: Rng,
}

/// How a shard is busy with something else after its turns.
#[derive(Clone, Debug)]
pub(super) struct ShardLongTurns {
    pub(super) one_in: u64,
    /// From and to.
    pub(super) nanos: (u64, u64),
    pub(super) rng: Rng,
}

/// What a shard does besides its load.
pub(super) struct ShardHabits {
    pub(super) stalls: Option<ShardStalls>,
    pub(super) long_turns: Option<ShardLongTurns>,
    pub(super) cancels: Option<ShardCancels>,
    /// It has the load of others; for how long each request that goes to the disk keeps it busy, in
    /// nanoseconds.
    pub(super) coordinates: Option<u64>,
    pub(super) first_tick: Time,
}

/// A request of a job, from its enqueueing until all of its parts are done.
#[derive(Debug)]
struct Request {
    /// The position of the job among those of the shard.
    job: usize,
    fiber: u32,
    op: Op,
    len: u64,
    intended: Time,
    enqueued: Time,
    /// When the last of its parts was dispatched, or of what is held for it: what comes after is
    /// the disk's time alone.
    dispatched: Time,
}

/// One shard.
pub(super) struct Shard {
    /// Its position among the shards.
    pub(super) index: usize,
    pub(super) driver: Driver<LoadCommand>,
    pub(super) jobs: Vec<ShardJob>,
    pub(super) stalls: Option<ShardStalls>,
    long_turns: Option<ShardLongTurns>,
    /// For how long each request that goes to the disk keeps the shard busy, in nanoseconds.
    work_nanos: u64,
    requests: Slab<Request>,
    /// Where it has the load of other shards: what waits before its I/O queues.
    submitters: Option<Submitters<LoadCommand>>,
    /// What the engine has done and its owner holds, and since when.
    held: Slab<(Time, Returned)>,
    /// Completions that came while there was no turn, and when.
    returned: Vec<(Time, Returned)>,
    cancels: Option<ShardCancels>,
    /// Processor work that is due: the positions of its jobs, and what is to be done.
    processor: VecDeque<(usize, Action, Time)>,
    busy: Busy,
    busy_until: Time,
    next_tick: Time,
    last_turn: Time,
    /// When its queues want to be polled if nothing happens before.
    timer: Time,
}

/// What keeps a shard from having turns.
#[derive(Clone, Copy, Debug)]
enum Busy {
    No,
    /// It stands still.
    Stalled,
    /// It handles a request for another shard.
    Coordinating,
    /// Its turn is a long one.
    Elsewhere,
    /// It runs a job's processor work: the position of the job, and when the work was handed over
    /// and begun.
    Processor {
        position: usize,
        action: Action,
        enqueued: Time,
        dispatched: Time,
    },
}

impl Shard {
    pub(super) fn new(
        index: usize,
        queues: Vec<IoQueue>,
        jobs: Vec<ShardJob>,
        habits: ShardHabits,
    ) -> Self {
        let ShardHabits { stalls, long_turns, cancels, coordinates, first_tick } = habits;
        let driver = Driver::new(queues, usize::MAX);
        let cost = |op, len| {
            driver.queue(queue_for(op, driver.queues().count())).cost(op, len).as_nanos_ceil()
        };
        let submitters = coordinates.map(|_| Submitters::new(cost));
        Self {
            index,
            driver,
            jobs,
            stalls,
            long_turns,
            work_nanos: coordinates.unwrap_or(0),
            requests: Slab::new(),
            submitters,
            held: Slab::new(),
            returned: Vec::new(),
            cancels,
            processor: VecDeque::new(),
            busy: Busy::No,
            busy_until: Time::ZERO,
            next_tick: first_tick,
            last_turn: Time::ZERO,
            timer: Time::MAX,
        }
    }

    /// The engine is done with a command; the shard's next turn takes it.
    pub(super) fn returned(&mut self, now: Time, returned: Returned) {
        self.returned.push((now, returned));
    }

    /// There are no turns until then.
    pub(super) fn pause(&mut self, until: Time) {
        if matches!(self.busy, Busy::No | Busy::Coordinating | Busy::Elsewhere) {
            self.busy = Busy::Stalled;
        }
        self.busy_until = self.busy_until.max(until);
    }

    /// Gives the shard its turn, and sets its alarm for the next.
    pub(super) fn turn(&mut self, now: Time, env: &mut Environment) {
        if now < self.busy_until {
            env.alarms.set(self.index, self.busy_until);
            return;
        }
        let polls = env.polling == Polling::Events || now >= self.next_tick;
        let was_stalled = self.end_busy(now);
        if polls && !was_stalled && self.stalls() {
            let nanos = self.stalls.as_ref().map_or(0, |stalls| stalls.nanos);
            self.busy = Busy::Stalled;
            self.busy_until = now.plus_nanos(nanos);
            env.alarms.set(self.index, self.busy_until);
            return;
        }
        let slept = self.last_turn < self.timer && self.timer <= now;
        let (is_due, requests) = (polls && slept && self.returned.is_empty(), self.driver.len());
        if polls && env.takes_last {
            self.dispatch(now, env);
        }
        self.take_returned(now, env);
        self.last_turn = now;
        self.cancel_unwanted(now, env);
        self.generate(now, env);
        env.counts.wake_ups += u64::from(is_due && self.driver.len() == requests);
        if polls {
            self.dispatch(now, env);
            self.next_tick = self.tick_after(now, env.polling);
        }
        if let Some(invariants) = &mut env.invariants {
            let has_sent = polls && now >= self.busy_until;
            invariants.after_turn(now, self.index, &self.driver, has_sent);
        }
        self.work_processor(now);
        self.go_elsewhere(now);
        let next = self.next_turn(now, env);
        env.alarms.set(self.index, next);
    }

    /// Whether the shard neither stalls nor works at `now`.
    pub(super) fn is_free(&self, now: Time) -> bool {
        now >= self.busy_until
    }

    /// Whether nothing is left to do, and never will be.
    pub(super) fn has_nothing_left(&self) -> bool {
        self.requests.is_empty()
            && self.processor.is_empty()
            && !matches!(self.busy, Busy::Processor { .. })
            && self.jobs.iter().all(|job| job.generator.as_ref().is_some_and(Generator::is_done))
    }

    /// Ends the run at `to`: what is not done is recorded as such.
    pub(super) fn finish(&mut self, to: Time) {
        for job in &mut self.jobs {
            job.recorder.measured.to = to;
            if job.is_stopped {
                continue;
            }
            for intended in job.generator.iter().flat_map(|generator| generator.overdue(to)) {
                job.recorder.record_unfinished(intended, false);
            }
        }
        for (_, request) in &self.requests {
            let job = &mut self.jobs[request.job];
            let flush = job.is_flush_between(request.op);
            job.recorder.record_unfinished(request.intended, flush);
        }
        if let Busy::Processor { position, action, .. } = self.busy {
            self.jobs[position].recorder.record_unfinished(action.intended, false);
        }
        for (position, action, _) in &self.processor {
            self.jobs[*position].recorder.record_unfinished(action.intended, false);
        }
        let ids: Vec<OperationId> = self.driver.requests().map(|(id, _)| id).collect();
        for id in ids {
            self.driver.cancel(to, id, |_| ());
        }
        for queue in 0..self.driver.queues().count() {
            // Books the time since it was last asked.
            let _ = self.driver.poll_dispatch(to, queue);
        }
    }

    /// Takes the completions that have come.
    pub(super) fn take_returned(&mut self, now: Time, env: &mut Environment) {
        let mut all = std::mem::take(&mut self.returned);
        for (finished, returned) in all.drain(..) {
            // who was not there knows only that it was not back at the last turn
            let looked_at = if finished < now { self.last_turn } else { finished };
            self.take_back(now, returned, looked_at, env);
        }
        self.returned = all;
    }

    /// Ends what kept the shard busy; whether that was a stall.
    fn end_busy(&mut self, now: Time) -> bool {
        match std::mem::replace(&mut self.busy, Busy::No) {
            Busy::No | Busy::Coordinating | Busy::Elsewhere => false,
            Busy::Stalled => true,
            Busy::Processor { position, action, enqueued, dispatched } => {
                let completed = self.busy_until;
                let intended = action.intended;
                let done = Completion {
                    intended,
                    enqueued,
                    dispatched,
                    completed,
                    bytes: 0,
                    ok: true,
                    flush: false,
                };
                let job = &mut self.jobs[position];
                job.recorder.record(&done);
                if let Some(generator) = &mut job.generator {
                    generator.completed(now, action.fiber, true);
                }
                false
            }
        }
    }

    /// What comes after a turn, now and then, in a thread that does more than disk requests.
    fn go_elsewhere(&mut self, now: Time) {
        if !self.is_free(now) {
            return;
        }
        let Some(turns) = &mut self.long_turns else { return };
        if turns.rng.below(turns.one_in) == 0 {
            let (shortest, longest) = turns.nanos;
            let nanos = shortest + turns.rng.below(longest.saturating_sub(shortest) + 1);
            self.busy = Busy::Elsewhere;
            self.busy_until = now.plus_nanos(nanos);
        }
    }

    fn stalls(&mut self) -> bool {
        self.stalls.as_mut().is_some_and(|stalls| stalls.rng.below(stalls.one_in) == 0)
    }

    /// Takes what the generators want done.
    fn generate(&mut self, now: Time, env: &mut Environment) {
        for position in 0..self.jobs.len() {
            while let Some(action) =
                self.jobs[position].generator.as_mut().and_then(|generator| generator.poll(now))
            {
                match action.work {
                    Work::Cpu(_) => self.processor.push_back((position, action, now)),
                    _ => self.enqueue(now, position, action, env),
                }
            }
        }
    }

    /// Begins one request of a job that wants to keep the processor busy.
    fn work_processor(&mut self, now: Time) {
        if !self.is_free(now) {
            return;
        }
        let Some((position, action, enqueued)) = self.processor.pop_front() else { return };
        let Work::Cpu(length) = action.work else { return };
        let nanos = saturating_nanos(length);
        self.busy = Busy::Processor { position, action, enqueued, dispatched: now };
        self.busy_until = now.plus_nanos(nanos);
    }

    fn tick_after(&self, now: Time, polling: Polling) -> Time {
        let Polling::Tick(tick) = polling else { return Time::MAX };
        let missed = now.nanos_since(self.next_tick) / tick;
        self.next_tick.plus_nanos((missed + 1).saturating_mul(tick))
    }

    /// When the shard has its next turn if nothing happens.
    fn next_turn(&mut self, now: Time, env: &Environment) -> Time {
        let waits_for_events = env.polling == Polling::Events;
        let timer = waits_for_events.then(|| self.driver.poll_timeout(now)).flatten();
        self.timer = timer.unwrap_or(Time::MAX);
        if now < self.busy_until {
            return self.busy_until;
        }
        let generators = self.jobs.iter().filter_map(|job| job.generator.as_ref()?.next_event());
        let cancels = self.cancels.as_ref().and_then(ShardCancels::next_time);
        let next = generators.chain(cancels).min().unwrap_or(Time::MAX);
        if !waits_for_events {
            return next.min(self.next_tick).max(now);
        }
        next.min(self.timer).max(now).plus_nanos(env.wake_up_nanos)
    }
}
