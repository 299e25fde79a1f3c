//! The requests under way on a shard, and the parts that its driver makes of them.

use forebay_core::{Access, Op, Time};
use forebay_driver::{
    Cancel, Command as _, Completion, Dispatch, OperationId, PartEnd, QueueClass, queue_for,
};
use forebay_load::generator::{Action, Work};
use forebay_load::recorder;

use super::{Busy, Request, Shard};
use crate::disk::Command;
use crate::invariants::{QueueId, Requests};
use crate::load_command::LoadCommand;
use crate::simulation::engine::{Returned, Sent};
use crate::simulation::environment::Environment;

impl Shard {
    /// Hands a request to the driver.
    pub(super) fn enqueue(
        &mut self,
        now: Time,
        position: usize,
        action: Action,
        env: &mut Environment,
    ) {
        let job = &self.jobs[position];
        let (op, place, len) = match action.work {
            Work::Io { op, offset, len } => (op, offset, u64::from(len)),
            Work::Unlink(file) => {
                let size = job.extent.file_size;
                (Op::Discard, file.saturating_mul(size), size)
            }
            Work::Cpu(_) => return,
        };
        let class = env.class(queue_for(op, env.classes.len()), job.class);
        let len = if op == Op::Flush { 0 } else { len };
        let io = Command { op, offset: job.extent.offset(op, place), len };
        let request = self.requests.insert(Request {
            job: position,
            fiber: action.fiber,
            op,
            len,
            intended: action.intended,
            enqueued: now,
            dispatched: now,
        });
        let commands = if op == Op::Discard { job.extent.commands(place, len) } else { 1 };
        let command = LoadCommand { request, io, commands, held: None };
        let Some(submitters) = &mut self.submitters else {
            return self.begin(now, class, command, env);
        };
        let cost = self.driver.queue(class.queue).cost(op, len).as_nanos_ceil();
        submitters.push(class, u64::from(job.shard), cost, command);
        self.refill(now, class, env);
    }

    /// Submits what has waited for the turn of the shard that sent it.
    fn refill(&mut self, now: Time, class: QueueClass, env: &mut Environment) {
        while let Some(submitters) = &mut self.submitters {
            let queued = self.driver.queue(class.queue).class(class.id);
            let queued = queued.map_or(0, |counters| counters.queued);
            let Some(command) = submitters.pop(class, queued) else { return };
            self.begin(now, class, command, env);
        }
    }

    /// Where requests were cancelled there is room that no dispatch has told of.
    fn feed_all(&mut self, now: Time, queue: usize, env: &mut Environment) {
        if self.submitters.is_some() {
            for class in 0..env.classes[queue].len() {
                self.refill(now, env.class(queue, class), env);
            }
        }
    }

    fn begin(&mut self, now: Time, class: QueueClass, command: LoadCommand, env: &mut Environment) {
        match self.submit(now, class, command, env) {
            Some(id) => self.cancels.iter_mut().for_each(|cancels| cancels.add(now, id)),
            None => self.request_ended(now, command.request, false, env),
        }
    }

    /// What the driver knows a command by; `None` if its queue does not take it.
    pub(super) fn submit(
        &mut self,
        now: Time,
        class: QueueClass,
        command: LoadCommand,
        env: &mut Environment,
    ) -> Option<OperationId> {
        let id = self.driver.submit(now, class, command).ok()?;
        if let Some(invariants) = &mut env.invariants {
            let LoadCommand { request, io, commands, .. } = command;
            let of_class = self.jobs[self.requests[request].job].class;
            let mut parts = 0;
            for (ticket, len) in self.driver.parts(id) {
                let charged = if io.len == 0 { 0 } else { len };
                let queue = self.queue_id(class.queue);
                let access = Access { op: io.op, place: None, commands };
                invariants.enqueued(now, queue, ticket, of_class, (access, charged));
                parts += 1;
            }
            invariants.request(now, self.index, |all| all.submitted(id, io, parts));
        }
        Some(id)
    }

    /// One of its queues as the invariants know it.
    pub(super) fn queue_id(&self, group: usize) -> QueueId {
        QueueId { group, shard: self.index }
    }

    /// Sends to the disk what may go, and what the shard has time for.
    pub(super) fn dispatch(&mut self, now: Time, env: &mut Environment) {
        while self.is_free(now)
            && let Some(dispatch) = self.driver.poll_unsent()
        {
            self.send(now, dispatch, true, env);
        }
        for queue in 0..env.classes.len() {
            self.feed_all(now, queue, env);
            while self.is_free(now)
                && let Some(dispatch) = self.driver.poll_dispatch(now, queue)
            {
                if let Some(invariants) = &mut env.invariants {
                    let price = self.driver.queue(queue).cost_of(dispatch.ticket);
                    let id = self.queue_id(queue);
                    invariants.dispatched(now, id, dispatch.ticket, price.unwrap_or_default());
                }
                self.send(now, dispatch, false, env);
                self.refill(now, dispatch.class, env);
            }
            while let Some(other) = self.driver.poll_wake(queue) {
                env.wake_named(now, other.index());
            }
            if let Some(invariants) = &mut env.invariants {
                let overdue = self.driver.queue(queue).counters().overdue;
                invariants.polled(now, self.queue_id(queue), overdue);
            }
        }
    }

    /// Takes back what waits of a class; its requests fail.
    pub(in crate::simulation) fn cancel_class(
        &mut self,
        now: Time,
        class: usize,
        env: &mut Environment,
    ) {
        let of_class = |of: QueueClass| env.class(of.queue, class).id == of.id;
        let requests = self.driver.requests().filter(|(_, class)| of_class(*class));
        let ids: Vec<OperationId> = requests.map(|(id, _)| id).collect();
        for id in ids {
            self.cancel(now, id, env);
        }
    }

    /// Cancels what is not wanted any more.
    pub(super) fn cancel_unwanted(&mut self, now: Time, env: &mut Environment) {
        while let Some(id) = self.cancels.as_mut().and_then(|cancels| cancels.pop(now)) {
            self.cancel(now, id, env);
        }
    }

    /// Takes back what waits of a request, and asks the engine to cancel the rest.
    pub(super) fn cancel(&mut self, now: Time, id: OperationId, env: &mut Environment) {
        let (mut ended, mut inflight) = (Vec::new(), Vec::new());
        let is_there = self.driver.cancel(now, id, |part| match part {
            Cancel::Ended(end) => ended.push((end.queue, end.ticket, end.completion.copied())),
            Cancel::Inflight(part) => inflight.push(part),
        });
        for part in inflight {
            env.engine.cancel(self.index, part);
        }
        let waited = ended.iter().filter(|(.., completion)| completion.is_none()).count();
        let unsent = ended.len() - waited;
        for (queue, ticket, completion) in ended {
            if completion.is_some() {
                env.counts.parts_in_flight -= 1;
            }
            let Some(invariants) = &mut env.invariants else { continue };
            match completion {
                None => invariants.cancelled(now, self.queue_id(queue), ticket),
                Some(done) => {
                    invariants.completed(
                        now,
                        self.queue_id(queue),
                        ticket,
                        Some((done, done.disk_nanos)),
                    );
                }
            }
        }
        if let Some(invariants) = &mut env.invariants {
            invariants.request(now, self.index, |all| all.cancelled(id, is_there, waited, unsent));
        }
        self.take_completions(now, env);
    }

    /// A part goes to the disk: for the first time, or again.
    fn send(&mut self, now: Time, dispatch: Dispatch, again: bool, env: &mut Environment) {
        let Some(command) = self.driver.take(dispatch.part) else { return };
        let LoadCommand { request: key, .. } = command;
        let request = &mut self.requests[key];
        if !again {
            request.dispatched = now;
            env.counts.parts_in_flight += 1;
            env.counts.parts_in_flight_max =
                env.counts.parts_in_flight_max.max(env.counts.parts_in_flight);
            let class = self.jobs[request.job].class;
            if let Some(tracer) = &mut env.tracer {
                let queue = self.driver.queue(dispatch.class.queue);
                let cost = queue.cost_of(dispatch.ticket).unwrap_or_default();
                tracer.dispatched(now, class, now.nanos_since(request.enqueued), cost);
            }
        }
        if let Some(invariants) = &mut env.invariants {
            if again {
                let queue = self.queue_id(dispatch.class.queue);
                invariants.resumed(queue, dispatch.ticket.index());
            }
            invariants.request(now, self.index, |all| all.sent(dispatch.operation, again));
        }
        env.counts.commands_in_disk += 1;
        env.engine.push(now, self.index, dispatch, command);
        if self.work_nanos > 0 {
            self.busy = Busy::Coordinating;
            self.busy_until = now.plus_nanos(self.work_nanos);
        }
    }

    /// The engine was done with a command some time ago: tells the driver, unless the owner of
    /// the part holds it.
    pub(super) fn take_back(
        &mut self,
        now: Time,
        returned: Returned,
        finished: Time,
        env: &mut Environment,
    ) {
        if !self.hold(now, returned, finished, env) {
            self.settle(now, returned, finished, env);
        }
    }

    /// Tells the driver that the engine is done with a command.
    pub(super) fn settle(
        &mut self,
        now: Time,
        returned: Returned,
        finished: Time,
        env: &mut Environment,
    ) {
        let Returned { sent: Sent { dispatch, command, .. }, result } = returned;
        let queue = self.driver.queue(dispatch.class.queue);
        let charged = queue.cost_of(dispatch.ticket).unwrap_or_default();
        let mut end = None;
        let ended =
            |part: PartEnd<'_>| end = Some((part.queue, part.ticket, part.completion.copied()));
        // the engine looks as soon as something is there, but for a shard that is away
        self.driver.handle_completion(now, finished, dispatch.part, result, command, ended);
        if let Ok(bytes) = result {
            env.done(now, command.io.op, bytes, charged);
        }
        if let Some((queue, ticket, completion)) = end {
            env.counts.parts_in_flight -= 1;
            let disk_nanos = completion.map_or(0, |done| done.disk_nanos);
            if let Some(invariants) = &mut env.invariants {
                let late = now.nanos_since(finished);
                let done = completion.map(|done| (done, disk_nanos.saturating_sub(late)));
                invariants.completed(now, self.queue_id(queue), ticket, done);
            }
            if let Some(tracer) = &mut env.tracer {
                let class = self.jobs[self.requests[command.request].job].class;
                tracer.completed(now, class, (command.io.op, disk_nanos), result.ok());
            }
        }
        if let Some(invariants) = &mut env.invariants {
            let (id, has_ended) = (dispatch.operation, end.is_some());
            let event = |all: &mut Requests| all.returned(id, command.io, result, has_ended);
            invariants.request(now, self.index, event);
        }
        self.take_completions(now, env);
    }

    /// Takes from the driver the requests that have ended.
    fn take_completions(&mut self, now: Time, env: &mut Environment) {
        while let Some(Completion { id, result, command, .. }) = self.driver.poll_completion() {
            if let Some(invariants) = &mut env.invariants {
                invariants.request(now, self.index, |all| all.ended(id, result));
            }
            match command.held {
                Some(held) => self.let_go(now, held, env),
                None => {
                    let is_whole = !command.transfers() || result == Ok(command.io.len);
                    self.request_ended(now, command.request, result.is_ok() && is_whole, env);
                }
            }
        }
    }

    fn request_ended(&mut self, now: Time, key: usize, ok: bool, env: &mut Environment) {
        let Request { job, fiber, op, len, intended, enqueued, dispatched } =
            self.requests.remove(key);
        let bytes = if matches!(op, Op::Read | Op::Write) { len } else { 0 };
        let job = &mut self.jobs[job];
        let flush = job.is_flush_between(op);
        let completed = now;
        let done =
            recorder::Completion { intended, enqueued, dispatched, completed, bytes, ok, flush };
        job.recorder.record(&done);
        if let Some(generator) = &mut job.generator {
            generator.completed(now, fiber, ok);
        }
        env.counts.requests += 1;
    }
}

impl Shard {
    /// Whether the owner of a part that the disk has done holds it, for another like it.
    pub(super) fn hold(
        &mut self,
        now: Time,
        returned: Returned,
        finished: Time,
        env: &mut Environment,
    ) -> bool {
        let command = returned.sent.command;
        let job = &self.jobs[self.requests[command.request].job];
        let is_done = returned.result == Ok(command.io.len);
        if !is_done || !job.holds || command.held.is_some() || command.io.op == Op::Discard {
            return false;
        }
        let dispatch = returned.sent.dispatch;
        let class = env.class(dispatch.class.queue, job.class);
        let class = QueueClass { holder: true, ..class };
        let held = self.held.insert((finished, returned));
        let second = LoadCommand { held: Some(held), ..command };
        let is_queued = self.submit(now, class, second, env).is_some();
        if !is_queued {
            self.held.remove(held);
        } else if let Some(invariants) = &mut env.invariants {
            invariants.resumed(self.queue_id(class.queue), dispatch.ticket.index());
        }
        is_queued
    }

    /// The owner of a part does not hold it any more.
    pub(super) fn let_go(&mut self, now: Time, held: usize, env: &mut Environment) {
        let (finished, returned) = self.held.remove(held);
        self.settle(now, returned, finished, env);
    }
}
