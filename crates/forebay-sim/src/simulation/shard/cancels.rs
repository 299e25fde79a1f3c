//! Requests that are not wanted any more, some time after they were made.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use forebay_core::Time;
use forebay_driver::OperationId;
use forebay_load::Rng;

use super::Shard;
use crate::simulation::environment::Environment;

/// How a shard cancels single requests.
#[derive(Clone, Debug)]
pub(in crate::simulation) struct ShardCancels {
    one_in: u64,
    within_nanos: u64,
    rng: Rng,
    /// What is to be cancelled, though it may have ended by then.
    due: BinaryHeap<Reverse<(Time, OperationId)>>,
}

impl ShardCancels {
    /// One request in so many, at most so many nanoseconds after it was made.
    pub(in crate::simulation) const fn new(one_in: u64, within_nanos: u64, rng: Rng) -> Self {
        Self { one_in, within_nanos, rng, due: BinaryHeap::new() }
    }

    /// When something is to be cancelled next.
    pub(super) fn next_time(&self) -> Option<Time> {
        self.due.peek().map(|Reverse((at, _))| *at)
    }

    fn pop(&mut self, now: Time) -> Option<OperationId> {
        self.next_time().filter(|&at| at <= now)?;
        self.due.pop().map(|Reverse((_, id))| id)
    }
}

impl Shard {
    /// A request was made, and may be cancelled later on.
    pub(super) fn cancel_later(&mut self, now: Time, id: OperationId) {
        let Some(ShardCancels { one_in, within_nanos, rng, due }) = &mut self.cancels else {
            return;
        };
        if rng.below(*one_in) == 0 {
            let after = rng.below(*within_nanos);
            due.push(Reverse((now.plus_nanos(after), id)));
        }
    }

    /// Cancels what is not wanted any more.
    pub(super) fn cancel_unwanted(&mut self, now: Time, env: &mut Environment) {
        while let Some(id) = self.cancels.as_mut().and_then(|cancels| cancels.pop(now)) {
            self.cancel(now, id, env);
        }
    }
}
