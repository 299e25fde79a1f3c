//! Requests that are not wanted any more, some time after they were made.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use forebay_core::Time;
use forebay_driver::OperationId;
use forebay_load::Rng;

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
    /// One request in this many, at most this many nanoseconds after it was made.
    pub(in crate::simulation) const fn new(one_in: u64, within_nanos: u64, rng: Rng) -> Self {
        Self { one_in, within_nanos, rng, due: BinaryHeap::new() }
    }

    /// When something is to be cancelled next.
    pub(super) fn next_time(&self) -> Option<Time> {
        self.due.peek().map(|Reverse((at, _))| *at)
    }

    /// A request was made, and may be due to be cancelled later on.
    pub(super) fn add(&mut self, now: Time, id: OperationId) {
        if self.rng.below(self.one_in) == 0 {
            let after = self.rng.below(self.within_nanos);
            self.due.push(Reverse((now.plus_nanos(after), id)));
        }
    }

    /// A request that is to be cancelled by `now`; to be asked until it returns `None`.
    pub(super) fn pop(&mut self, now: Time) -> Option<OperationId> {
        self.next_time().filter(|&at| at <= now)?;
        self.due.pop().map(|Reverse((_, id))| id)
    }
}
