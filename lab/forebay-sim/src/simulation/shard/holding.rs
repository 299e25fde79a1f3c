//! Owners that hold what a request was granted until another of theirs is done.

use forebay_core::{Op, Time};
use forebay_driver::QueueClass;

use super::Shard;
use crate::load_command::LoadCommand;
use crate::simulation::engine::Returned;
use crate::simulation::environment::Environment;

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
