//! The requests under way on a shard, and the commands they are split into.

use forebay_core::{Join, Op, Outcome, Ticket, Time};
use forebay_load::generator::{Action, Work};
use forebay_load::recorder::Completion;

use super::{Busy, Lane, Shard};
use crate::disk::{Answer, Command};
use crate::simulation::environment::Environment;
use crate::simulation::layout;

/// A request of a job, from its enqueueing until all of its parts are done.
#[derive(Debug)]
pub(super) struct Request {
    /// The position of the job among those of the shard.
    pub(super) job: usize,
    fiber: u32,
    pub(super) op: Op,
    /// Where it begins, from the beginning of the job's data; for an unlink the number of the file.
    place: u64,
    len: u64,
    pub(super) intended: Time,
    enqueued: Time,
    /// When its last part was dispatched: what comes after is the disk's time alone.
    dispatched: Time,
    join: Join<()>,
}

/// A part of a request, which the scheduler and the disk take for a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub(super) ticket: Ticket,
    /// The key of its request.
    pub(super) request: usize,
    /// Where in the request it begins.
    pub(super) at: u64,
    pub(super) len: u64,
    pub(super) dispatched: Time,
    /// When the disk finished it, if its owner holds it since.
    pub(super) finished: Option<Time>,
    /// The place of the part that its owner holds until this one is done.
    pub(super) held: Option<usize>,
}

/// Names a part to the disk: its shard, its lane, and its place there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) seat: usize,
    pub(crate) lane: usize,
    pub(crate) index: usize,
}

impl Part {
    /// A part that waits.
    pub(super) fn new(now: Time, ticket: Ticket, request: usize, (at, len): (u64, u64)) -> Self {
        Self { ticket, request, at, len, dispatched: now, finished: None, held: None }
    }
}

impl Token {
    /// Tickets have 32-bit numbers, and there are at most two lanes.
    pub(crate) const fn to_id(self) -> u64 {
        (self.seat as u64) << 33 | (self.lane as u64) << 32 | self.index as u64
    }

    pub(crate) const fn from_id(id: u64) -> Self {
        Self {
            seat: (id >> 33) as usize,
            lane: (id >> 32) as usize & 1,
            index: (id & u32::MAX as u64) as usize,
        }
    }
}

impl Shard {
    /// Hands a request to the scheduler, in parts if it is large.
    pub(super) fn enqueue(
        &mut self,
        now: Time,
        position: usize,
        action: Action,
        around: &mut Environment,
    ) {
        let job = &self.jobs[position];
        let (op, place, len) = match action.work {
            Work::Io { op, offset, len } => (op, offset, u64::from(len)),
            Work::Unlink(file) => (Op::Discard, file, job.extent.file_size()),
            Work::Cpu(_) => return,
        };
        let lane_number = Lane::number_for(op, self.lanes.len());
        let class_number = job.class;
        let class = around.classes[lane_number][class_number];
        let lane = &mut self.lanes[lane_number];
        let part_max = lane.queue.split(class, op, len).next().map_or(len, |(_, len)| len);
        let parts = layout::parts(op, len, part_max);
        let request = self.requests.insert(Request {
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
            let charged = if op == Op::Flush { 0 } else { part_len };
            let part = |ticket| Part::new(now, ticket, request, (at, part_len));
            match self.lanes[lane_number].enqueue(now, (class, op, charged), part) {
                Some(ticket) => {
                    if let Some(invariants) = &mut around.invariants {
                        let lane = (lane_number, self.seat);
                        invariants.enqueued(now, lane, ticket, (class_number, op, charged));
                    }
                }
                None => self.part_done(now, request, (at, part_len), Err(()), around),
            }
        }
    }

    /// Sends to the disk what may go, and what the shard has time for.
    pub(super) fn dispatch(&mut self, now: Time, around: &mut Environment) {
        for lane in 0..self.lanes.len() {
            while self.is_free(now)
                && let Some(ticket) = self.lanes[lane].queue.poll_dispatch(now)
            {
                if let Some(invariants) = &mut around.invariants {
                    invariants.dispatched(now, (lane, self.seat), ticket);
                }
                self.start(now, lane, ticket.index(), around);
                if self.work_nanos > 0 {
                    self.busy = Busy::Coordinating;
                    self.busy_until = now.plus_nanos(self.work_nanos);
                }
            }
            while let Some(other) = self.lanes[lane].queue.poll_wake() {
                around.wake(now, other.index());
            }
            if let Some(invariants) = &mut around.invariants {
                let overdue = self.lanes[lane].queue.counters().overdue;
                invariants.polled(now, (lane, self.seat), overdue);
            }
        }
    }

    /// Takes back what waits of a class; its requests fail.
    pub(in crate::simulation) fn cancel_class(
        &mut self,
        now: Time,
        class: usize,
        around: &mut Environment,
    ) {
        for lane in 0..self.lanes.len() {
            for index in 0..self.lanes[lane].parts.len() {
                let Some(part) = self.lanes[lane].parts[index] else { continue };
                let of_class = self.requests.get(part.request).map(|of| self.jobs[of.job].class);
                if of_class != Some(class) || !self.lanes[lane].queue.cancel(now, part.ticket) {
                    continue;
                }
                self.lanes[lane].take(index);
                if let Some(invariants) = &mut around.invariants {
                    invariants.cancelled(now, (lane, self.seat), part.ticket);
                }
                self.part_gone(now, (lane, part), around);
            }
        }
    }

    /// A part was taken back.
    fn part_gone(&mut self, now: Time, (lane, part): (usize, Part), around: &mut Environment) {
        match part.held {
            Some(held) => self.let_go(now, Token { seat: self.seat, lane, index: held }, around),
            None => self.part_done(now, part.request, (part.at, part.len), Err(()), around),
        }
    }

    fn start(&mut self, now: Time, lane: usize, index: usize, around: &mut Environment) {
        let Some(part) = self.lanes[lane].part_mut(index) else { return };
        part.dispatched = now;
        let part = *part;
        let Some(request) = self.requests.get_mut(part.request) else { return };
        request.dispatched = now;
        let job = &self.jobs[request.job];
        let op = request.op;
        let place = if op == Op::Discard { request.place } else { request.place + part.at };
        let len = if op == Op::Flush { 0 } else { part.len };
        if let Some(tracer) = &mut around.tracer {
            let cost = around.model.cost(op, len);
            tracer.dispatched(now, job.class, now.nanos_since(request.enqueued), cost);
        }
        let command = Command { op, offset: job.extent.offset(op, place), len };
        around.submit(now, Token { seat: self.seat, lane, index }.to_id(), command);
    }

    /// A command was finished some time ago: tells the scheduler, unless its owner holds it.
    pub(super) fn command_done(
        &mut self,
        now: Time,
        (token, answer, finished): (Token, Answer, Time),
        around: &mut Environment,
    ) {
        if answer == Answer::Done && self.hold(now, token, finished, around) {
            return;
        }
        let Some(part) = self.complete(now, (token, answer, finished), around) else { return };
        match part.held {
            Some(held) => self.let_go(now, Token { index: held, ..token }, around),
            None => {
                let result = if answer == Answer::Done { Ok(part.len) } else { Err(()) };
                self.part_done(now, part.request, (part.at, part.len), result, around);
            }
        }
    }

    /// Tells the scheduler that a part is done.
    pub(super) fn complete(
        &mut self,
        now: Time,
        (token, answer, finished): (Token, Answer, Time),
        around: &mut Environment,
    ) -> Option<Part> {
        let part = self.lanes[token.lane].take(token.index)?;
        let request = self.requests.get(part.request)?;
        let ok = answer == Answer::Done;
        let outcome = if ok { Outcome::Done } else { Outcome::Failed };
        let completion = self.lanes[token.lane].queue.complete(now, part.ticket, outcome);
        if let Some(invariants) = &mut around.invariants {
            let done = completion.map(|done| (done, finished.nanos_since(part.dispatched)));
            invariants.completed(now, (token.lane, self.seat), part.ticket, done.ok());
        }
        let len = if request.op == Op::Flush { 0 } else { part.len };
        if let Some(tracer) = &mut around.tracer {
            let class = self.jobs[request.job].class;
            tracer.completed(now, class, now.nanos_since(part.dispatched), ok.then_some(len));
        }
        around.came_back(now, request.op, len, ok);
        Some(part)
    }

    /// Adds the outcome of a part to its request, and ends that with its last part.
    pub(super) fn part_done(
        &mut self,
        now: Time,
        key: usize,
        (at, len): (u64, u64),
        result: Result<u64, ()>,
        around: &mut Environment,
    ) {
        let Some(request) = self.requests.get_mut(key) else { return };
        if !request.join.part_done(at, len, result) {
            return;
        }
        let mut request = self.requests.remove(key);
        let Request { fiber, len, intended, enqueued, dispatched, op, .. } = request;
        let done = request.join.finish();
        let (ok, bytes) = match op {
            Op::Read | Op::Write => (done.is_ok_and(|bytes| bytes == len), len),
            Op::Discard | Op::Flush => (done.is_ok(), 0),
        };
        let completion = Completion { intended, enqueued, dispatched, completed: now, bytes, ok };
        let job = &mut self.jobs[request.job];
        job.recorder.record(&completion);
        if let Some(generator) = &mut job.generator {
            generator.completed(now, fiber, ok);
        }
        around.requests += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_survives_the_disk() {
        let token = Token { seat: 255, lane: 1, index: u32::MAX as usize };
        assert_eq!(Token::from_id(token.to_id()), token);
    }
}
