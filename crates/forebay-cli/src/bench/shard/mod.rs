//! One shard of a run: a thread with an engine, I/O queues, and its part of the load.
//!
//! The thread goes round in turns. A turn takes the completions that have come, lets the
//! generators go on, sends to the disk what the scheduler lets through, and sleeps until there is
//! a completion, a wake-up, or something to do at a known time. The clock is read once a turn.

mod job;
mod lane;
mod outcome;
mod request;

use std::collections::VecDeque;
use std::io;
use std::time::Duration;

use forebay::engine::{Completed, Engine};
use forebay_core::{Join, Op, Outcome, Time, saturating_nanos};
use forebay_load::generator::{Action, Work};
use forebay_load::recorder::{Completion, Measured};
use slab::Slab;

use super::board::Board;
use super::clock::Clock;
use super::progress;
pub(super) use job::{ShardJob, in_flight_max};
pub(super) use lane::Lane;
use outcome::Baseline;
pub(super) use outcome::ShardOutcome;
use request::{Part, Request, Token};

/// What the shard at `seat` works with.
pub(super) struct Shard<'a> {
    pub(super) number: u32,
    pub(super) seat: usize,
    pub(super) engine: Engine,
    /// Requests that the engine takes at once.
    pub(super) depth_max: usize,
    /// The first for all requests, or the first for reads and the second for all others.
    pub(super) lanes: Vec<Lane>,
    pub(super) jobs: Vec<ShardJob>,
    pub(super) measured: Measured,
    pub(super) clock: Clock,
    pub(super) board: &'a Board,
    /// Whether somebody looks at what is recent.
    pub(super) is_watched: bool,
    pub(super) state: State,
}

/// What changes while a shard runs.
pub(super) struct State {
    requests: Slab<Request>,
    /// Processor work that is due: the positions of its jobs, and what is to be done.
    processor: VecDeque<(usize, Action, Time)>,
    baseline: Option<Baseline>,
    report_at: Time,
    publish_at: Time,
    has_nothing_left: bool,
    /// Parts sent to the disk and come back from it in this turn.
    entered: u64,
    left: u64,
}

impl State {
    /// Nothing has happened yet.
    pub(super) fn new() -> Self {
        Self {
            requests: Slab::new(),
            processor: VecDeque::new(),
            baseline: None,
            report_at: Time::from_nanos(saturating_nanos(progress::PERIOD)),
            publish_at: Time::ZERO,
            has_nothing_left: false,
            entered: 0,
            left: 0,
        }
    }
}

/// After so many completions the disk gets new requests before the next completions are taken: it
/// shall not wait for all of a long turn.
const COMPLETIONS_AT_ONCE: usize = 4;

/// Other threads learn of the disk time dispatched after this time at the latest.
const PUBLISH_NANOS: u64 = 1_000_000;

impl Shard<'_> {
    /// Runs until the deadline, or until the run is stopped.
    ///
    /// # Errors
    /// The engine cannot hand requests to the kernel.
    pub(super) fn run(mut self) -> io::Result<ShardOutcome> {
        loop {
            let now = self.clock.now();
            if now >= self.measured.to || self.board.is_stopped() {
                while self.take_completions(now) > 0 {}
                return Ok(self.finish(now));
            }
            self.turn(now);
            let timeout = self.sleep_max(now);
            self.submit_and_wait(timeout)?;
            self.work_processor();
        }
    }

    fn turn(&mut self, now: Time) {
        while self.take_completions(now) == COMPLETIONS_AT_ONCE {
            self.generate(now);
            self.dispatch(now);
        }
        self.generate(now);
        self.dispatch(now);
        self.publish(now);
    }

    /// Takes some of the completions that have come, and says how many.
    fn take_completions(&mut self, now: Time) -> usize {
        for taken in 0..COMPLETIONS_AT_ONCE {
            let Some(Completed { token, result, operation }) = self.engine.pop() else {
                return taken;
            };
            self.state.left += 1;
            let token = Token::from_bits(token);
            let position = self.part_done(now, token, result);
            if let Some(job) = position.and_then(|position| self.jobs.get_mut(position)) {
                job.give_back(operation);
            }
        }
        COMPLETIONS_AT_ONCE
    }

    /// Takes what the generators want done.
    fn generate(&mut self, now: Time) {
        for position in 0..self.jobs.len() {
            while let Some(action) = self.jobs[position].generator.poll(now) {
                self.take_action(now, position, action);
            }
        }
        if !self.state.has_nothing_left && self.jobs.iter().all(|job| job.generator.is_done()) {
            self.state.has_nothing_left = true;
            self.board.nothing_left();
        }
    }

    fn take_action(&mut self, now: Time, position: usize, action: Action) {
        let (op, place, len) = match action.work {
            Work::Io { op, offset, len } => (op, offset, u64::from(len)),
            Work::Unlink(file) => (Op::Discard, file, self.jobs[position].removed_len()),
            Work::Cpu(_) => {
                self.state.processor.push_back((position, action, now));
                return;
            }
        };
        let job = &self.jobs[position];
        let lane = Lane::number_for(op, &self.lanes);
        let Some(class) = self.lanes[lane].class(job.class) else { return };
        let parts = if matches!(op, Op::Read | Op::Write) {
            let part_max = self.lanes[lane].queue.split(class, op, len).next();
            job.parts(len, part_max.map_or(len, |(_, len)| len))
        } else {
            // Goes as one piece, also where it moves no bytes.
            forebay_core::Parts::new(len.max(1), len.max(1))
        };
        let request = self.state.requests.insert(Request {
            job: position,
            fiber: action.fiber,
            op,
            place,
            len,
            intended: action.intended,
            enqueued: now,
            dispatched: now,
            join: Join::new(&parts),
        });
        for (at, part_len) in parts {
            let part = |ticket| Part { ticket, request, at, len: part_len };
            let len = if op == Op::Flush { 0 } else { part_len };
            if !self.lanes[lane].enqueue(now, (class, op, len), part) {
                let error = io::Error::other("the scheduler's queue takes no more requests");
                self.outcome_of_part(now, request, (at, part_len), Err(error));
            }
        }
    }

    /// Sends to the disk what may go.
    fn dispatch(&mut self, now: Time) {
        for lane in 0..self.lanes.len() {
            while self.engine.in_flight() < self.depth_max
                && let Some(ticket) = self.lanes[lane].queue.poll_dispatch(now)
            {
                self.state.entered += 1;
                let token = Token { lane, index: ticket.index() };
                if let Err(error) = self.start(now, token) {
                    self.state.left += 1;
                    self.part_done(now, token, Err(error));
                }
            }
            while let Some(place) = self.lanes[lane].queue.poll_wake() {
                self.board.wake(lane, place);
            }
        }
    }

    fn start(&mut self, now: Time, token: Token) -> io::Result<()> {
        let lost = || io::Error::other("the scheduler named an unknown request");
        let part = self.lanes[token.lane].part(token.index).ok_or_else(lost)?;
        let request = self.state.requests.get_mut(part.request).ok_or_else(lost)?;
        request.dispatched = now;
        let operation = self.jobs[request.job].operation(request, &part)?;
        self.engine
            .push(token.to_bits(), operation)
            .map_err(|(error, _)| io::Error::other(error.to_string()))
    }

    /// A part is done: tells the scheduler. Returns the position of its job.
    fn part_done(&mut self, now: Time, token: Token, result: io::Result<usize>) -> Option<usize> {
        let lane = self.lanes.get_mut(token.lane)?;
        let part = lane.take(token.index)?;
        let request = self.state.requests.get(part.request)?;
        let position = request.job;
        let result = match result {
            Ok(bytes) if matches!(request.op, Op::Read | Op::Write) => whole(bytes as u64, &part),
            Ok(_) => Ok(part.len),
            Err(error) => Err(error),
        };
        let outcome = if result.is_ok() { Outcome::Done } else { Outcome::Failed };
        // Stale tickets do not occur: each part is completed once, after its dispatch.
        let _ = lane.queue.complete(now, part.ticket, outcome);
        self.outcome_of_part(now, part.request, (part.at, part.len), result);
        Some(position)
    }

    /// Adds the outcome of a part to its request, and ends that with its last part.
    fn outcome_of_part(
        &mut self,
        now: Time,
        key: usize,
        (at, len): (u64, u64),
        result: io::Result<u64>,
    ) {
        let Some(request) = self.state.requests.get_mut(key) else { return };
        let job = &mut self.jobs[request.job];
        if let Err(error) = &result {
            job.failed(request, error);
        }
        if !request.join.part_done(at, len, result) {
            return;
        }
        let request = self.state.requests.remove(key);
        let Request { fiber, len, intended, enqueued, dispatched, op, .. } = request;
        let done = request.join.finish();
        let ok = match op {
            Op::Read | Op::Write => done.is_ok_and(|bytes| bytes == len),
            Op::Discard | Op::Flush => done.is_ok(),
        };
        let bytes = if matches!(op, Op::Read | Op::Write) { len } else { 0 };
        let completion = Completion { intended, enqueued, dispatched, completed: now, bytes, ok };
        job.recorder.record(&completion);
        job.generator.completed(now, fiber, ok);
    }

    /// Shows other threads what they want to know.
    fn publish(&mut self, now: Time) {
        let State { entered, left, .. } = &mut self.state;
        self.board.moved(std::mem::take(entered), std::mem::take(left));
        if self.state.baseline.is_none() && now >= self.measured.from {
            self.state.baseline = Some(Baseline::of(&self.lanes));
        }
        if now >= self.state.publish_at {
            self.state.publish_at = now.plus_nanos(PUBLISH_NANOS);
            let lanes = self.lanes.iter().map(|lane| lane.queue.counters().consumption);
            self.board.consumed(self.seat, lanes.fold(Default::default(), |a, b| a.plus(b)));
        }
        if self.is_watched && now >= self.state.report_at {
            self.state.report_at = now.plus_nanos(saturating_nanos(progress::PERIOD));
            for job in &mut self.jobs {
                self.board.add_recent(job.index, &job.recorder.take_recent());
            }
        }
    }

    /// How long the shard may sleep if nothing completes.
    fn sleep_max(&self, now: Time) -> Duration {
        if !self.state.processor.is_empty() {
            return Duration::ZERO;
        }
        let generators = self.jobs.iter().filter_map(|job| job.generator.next_event());
        let queues = self.lanes.iter().filter_map(|lane| lane.queue.poll_timeout(now));
        let baseline = self.state.baseline.is_none().then_some(self.measured.from);
        let report = self.is_watched.then_some(self.state.report_at);
        let next = generators.chain(queues).chain(baseline).chain(report).min();
        next.map_or(self.measured.to, |next| next.min(self.measured.to)).since(now)
    }

    fn submit_and_wait(&mut self, timeout: Duration) -> io::Result<()> {
        match self.engine.submit_and_wait(Some(timeout)) {
            // What is in flight makes room when it completes.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                std::thread::sleep(Duration::from_millis(1));
                Ok(())
            }
            result => result,
        }
    }

    /// Keeps the processor busy for one request of a job that wants that.
    fn work_processor(&mut self) {
        let Some((position, action, enqueued)) = self.state.processor.pop_front() else { return };
        let Work::Cpu(length) = action.work else { return };
        let dispatched = self.clock.now();
        let until = dispatched.plus_nanos(saturating_nanos(length));
        let mut completed = dispatched;
        while completed < until {
            completed = self.clock.now();
        }
        let intended = action.intended;
        let done = Completion { intended, enqueued, dispatched, completed, bytes: 0, ok: true };
        let job = &mut self.jobs[position];
        job.recorder.record(&done);
        job.generator.completed(completed, action.fiber, true);
    }
}

/// The bytes of a part if it is whole.
fn whole(bytes: u64, part: &Part) -> io::Result<u64> {
    if bytes == part.len {
        return Ok(bytes);
    }
    let message = format!("only {bytes} of {} bytes; did the file change?", part.len);
    Err(io::Error::other(message))
}
