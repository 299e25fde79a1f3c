//! Owners that hold what a request was granted until another of theirs is done.

use forebay_core::{Op, Time};

use super::commands::Part;
use super::{Shard, Token};
use crate::disk::Answer;
use crate::simulation::environment::Environment;

impl Shard {
    /// Whether the owner of a part that the disk has finished holds it, for another like it.
    pub(super) fn hold(
        &mut self,
        now: Time,
        token: Token,
        finished: Time,
        around: &mut Environment,
    ) -> bool {
        let Token { seat, lane, index } = token;
        let Some(first) = self.lanes[lane].part_mut(index) else { return false };
        let Part { request: key, at, len, held, .. } = *first;
        let Some(request) = self.requests.get(key) else { return false };
        let job = &self.jobs[request.job];
        if !job.holds || held.is_some() || request.op == Op::Discard {
            return false;
        }
        let (op, class_number) = (request.op, job.class);
        let charged = if op == Op::Flush { 0 } else { len };
        first.finished = Some(finished);
        let class = around.classes[lane][class_number];
        let part = |ticket| Part { held: Some(index), ..Part::new(now, ticket, key, (at, len)) };
        let second = self.lanes[lane].enqueue_for_holder(now, (class, op, charged), part);
        if let (Some(ticket), Some(invariants)) = (second, &mut around.invariants) {
            invariants.kept((lane, seat), index);
            invariants.enqueued(now, (lane, seat), ticket, (class_number, op, charged));
        }
        second.is_some()
    }

    /// The owner of a part does not hold it any more.
    pub(super) fn let_go(&mut self, now: Time, token: Token, around: &mut Environment) {
        let part = self.lanes[token.lane].part_mut(token.index);
        let finished = part.and_then(|part| part.finished).unwrap_or(now);
        if let Some(part) = self.complete(now, (token, Answer::Done, finished), around) {
            self.part_done(now, part.request, (part.at, part.len), Ok(part.len), around);
        }
    }
}
