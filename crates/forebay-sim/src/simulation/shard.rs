//! One shard of a run: its I/O queues and its part of the load.
//!
//! A turn takes the completions that have come, lets the generators go on, sends to the disk what
//! the scheduler lets through, and may then keep the processor busy for a while, in which there
//! are no turns. A coordinator is a shard that has the load of others as well.

mod commands;
mod holding;
mod lane;

use std::collections::VecDeque;

use forebay_core::{Blocked, DiskTime, IoQueue, QueueCounters, Time, saturating_nanos};
use forebay_load::Rng;
use forebay_load::generator::{Action, Generator, Work};
use forebay_load::recorder::{Completion, Recorder};
use slab::Slab;

use super::config::Polling;
use super::environment::Environment;
use super::layout::Extent;
use crate::disk::Answer;
use commands::Request;
pub(crate) use commands::Token;
pub(crate) use lane::Lane;

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

/// One shard.
pub(crate) struct Shard {
    /// Its position among the shards.
    pub(super) seat: usize,
    /// The first for all requests, or the first for reads and the second for all others.
    pub(crate) lanes: Vec<Lane>,
    pub(super) jobs: Vec<ShardJob>,
    pub(super) stalls: Option<ShardStalls>,
    long_turns: Option<ShardLongTurns>,
    /// For how long each request that goes to the disk keeps the shard busy, in nanoseconds.
    work_nanos: u64,
    requests: Slab<Request>,
    /// Completions that came while there was no turn, and when.
    finished: Vec<(Time, Token, Answer)>,
    /// Processor work that is due: the positions of its jobs, and what is to be done.
    processor: VecDeque<(usize, Action, Time)>,
    busy: Busy,
    busy_until: Time,
    next_tick: Time,
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
        seat: usize,
        queues: Vec<IoQueue>,
        jobs: Vec<ShardJob>,
        (stalls, long_turns): (Option<ShardStalls>, Option<ShardLongTurns>),
        (work_nanos, first_tick): (u64, Time),
    ) -> Self {
        Self {
            seat,
            lanes: queues.into_iter().map(Lane::new).collect(),
            jobs,
            stalls,
            long_turns,
            work_nanos,
            requests: Slab::new(),
            finished: Vec::new(),
            processor: VecDeque::new(),
            busy: Busy::No,
            busy_until: Time::ZERO,
            next_tick: first_tick,
        }
    }

    /// A command has finished; the shard's next turn takes it.
    pub(super) fn finished(&mut self, now: Time, token: Token, answer: Answer) {
        self.finished.push((now, token, answer));
    }

    /// There are no turns until then.
    pub(super) fn pause(&mut self, until: Time) {
        if matches!(self.busy, Busy::No | Busy::Coordinating | Busy::Elsewhere) {
            self.busy = Busy::Stalled;
        }
        self.busy_until = self.busy_until.max(until);
    }

    /// Gives the shard its turn, and sets its alarm for the next.
    pub(super) fn turn(&mut self, now: Time, around: &mut Environment) {
        if now < self.busy_until {
            around.alarms.set(self.seat, self.busy_until);
            return;
        }
        let polls = around.polling == Polling::Events || now >= self.next_tick;
        let was_stalled = self.end_busy(now);
        if polls && !was_stalled && self.stalls() {
            let nanos = self.stalls.as_ref().map_or(0, |stalls| stalls.nanos);
            self.busy = Busy::Stalled;
            self.busy_until = now.plus_nanos(nanos);
            around.alarms.set(self.seat, self.busy_until);
            return;
        }
        if polls && around.takes_last {
            self.dispatch(now, around);
        }
        self.take_finished(now, around);
        self.generate(now, around);
        if polls {
            self.dispatch(now, around);
            self.next_tick = self.tick_after(now, around.polling);
        }
        self.work_processor(now);
        self.go_elsewhere(now);
        let next = self.next_turn(now, around);
        around.alarms.set(self.seat, next);
    }

    /// Whether a command of this name is under way.
    pub(super) fn has(&self, token: Token) -> bool {
        self.lanes.get(token.lane).is_some_and(|lane| lane.has(token.index))
    }

    /// Whether the shard neither stalls nor works at `now`.
    pub(crate) fn is_free(&self, now: Time) -> bool {
        now >= self.busy_until
    }

    /// Whether nothing is left to do, and never will be.
    pub(super) fn has_nothing_left(&self) -> bool {
        self.requests.is_empty()
            && self.processor.is_empty()
            && !matches!(self.busy, Busy::Processor { .. })
            && self.jobs.iter().all(|job| job.generator.as_ref().is_some_and(Generator::is_done))
    }

    /// What the queues have counted.
    pub(super) fn counters(&self) -> (DiskTime, [u64; Blocked::ALL.len()]) {
        let mut sum = (DiskTime::ZERO, [0; Blocked::ALL.len()]);
        for lane in &self.lanes {
            let QueueCounters { consumption, blocked_nanos, .. } = lane.queue.counters();
            sum.0 = sum.0.plus(consumption);
            for (sum, nanos) in sum.1.iter_mut().zip(blocked_nanos) {
                *sum += nanos;
            }
        }
        sum
    }

    /// Ends the run at `to`: what is not done is recorded as such.
    pub(super) fn finish(&mut self, to: Time) {
        for job in &mut self.jobs {
            job.recorder.measured.to = to;
            if job.is_stopped {
                continue;
            }
            for intended in job.generator.iter().flat_map(|generator| generator.overdue(to)) {
                job.recorder.record_unfinished(intended);
            }
        }
        for (_, request) in &self.requests {
            self.jobs[request.job].recorder.record_unfinished(request.intended);
        }
        if let Busy::Processor { position, action, .. } = self.busy {
            self.jobs[position].recorder.record_unfinished(action.intended);
        }
        for (position, action, _) in &self.processor {
            self.jobs[*position].recorder.record_unfinished(action.intended);
        }
        for lane in &mut self.lanes {
            lane.cancel_all(to);
            // Books the time since it was last asked.
            let _ = lane.queue.poll_dispatch(to);
        }
    }

    /// Takes the completions that have come.
    pub(super) fn take_finished(&mut self, now: Time, around: &mut Environment) {
        let mut finished = std::mem::take(&mut self.finished);
        for (finished, token, answer) in finished.drain(..) {
            self.command_done(now, (token, answer, finished), around);
        }
        self.finished = finished;
    }

    /// Ends what kept the shard busy; whether that was a stall.
    fn end_busy(&mut self, now: Time) -> bool {
        match std::mem::replace(&mut self.busy, Busy::No) {
            Busy::No | Busy::Coordinating | Busy::Elsewhere => false,
            Busy::Stalled => true,
            Busy::Processor { position, action, enqueued, dispatched } => {
                let completed = self.busy_until;
                let intended = action.intended;
                let done =
                    Completion { intended, enqueued, dispatched, completed, bytes: 0, ok: true };
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
    fn generate(&mut self, now: Time, around: &mut Environment) {
        for position in 0..self.jobs.len() {
            while let Some(action) =
                self.jobs[position].generator.as_mut().and_then(|generator| generator.poll(now))
            {
                match action.work {
                    Work::Cpu(_) => self.processor.push_back((position, action, now)),
                    _ => self.enqueue(now, position, action, around),
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
    fn next_turn(&self, now: Time, around: &Environment) -> Time {
        if now < self.busy_until {
            return self.busy_until;
        }
        let generators = self.jobs.iter().filter_map(|job| job.generator.as_ref()?.next_event());
        let next = generators.min().unwrap_or(Time::MAX);
        if around.polling != Polling::Events {
            return next.min(self.next_tick).max(now);
        }
        let queues = self.lanes.iter().filter_map(|lane| lane.queue.poll_timeout(now));
        let next = queues.min().map_or(next, |at| at.min(next));
        next.max(now).plus_nanos(around.wake_up_nanos)
    }
}
