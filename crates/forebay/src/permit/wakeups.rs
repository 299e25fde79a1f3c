//! Who is to be woken once the lock is released.

use std::sync::Arc;
use std::task::Waker;

use arrayvec::ArrayVec;
use forebay_core::ShardId;

use super::held_permits::as_holder;
use super::parking::Parking;
use crate::group::Wakers;
use crate::sys::panics::contain;

/// Most wake-ups that one hold of the lock leads to.
const WAKEUPS_MAX: usize = 16;

pub(super) enum Wakeup {
    Thread(Arc<Parking>),
    Task(Waker),
    Shard(ShardId),
}

/// Collected under the lock, without allocation, and carried out after it.
pub(super) struct Wakeups(ArrayVec<Wakeup, WAKEUPS_MAX>);

impl Wakeups {
    pub(super) const fn new() -> Self {
        Self(ArrayVec::new_const())
    }

    /// Whether there is room for more, beside the one for the timekeeper.
    pub(super) fn has_room(&self) -> bool {
        self.0.remaining_capacity() > 1
    }

    pub(super) fn push(&mut self, wakeup: Wakeup) {
        self.0.push(wakeup);
    }

    pub(super) fn carry_out(&mut self, shards: &Wakers) {
        if self.0.is_empty() {
            return;
        }
        // A waker may wait for a permit itself, and then for the thread that is
        // to keep time.
        for wakeup in &self.0 {
            if let Wakeup::Thread(parking) = wakeup {
                parking.unpark();
            }
        }
        for wakeup in self.0.drain(..) {
            match wakeup {
                Wakeup::Thread(_) => {}
                Wakeup::Task(waker) => wake(waker),
                Wakeup::Shard(shard) => shards.wake(shard),
            }
        }
    }
}

/// What others do when they are woken shall keep neither the rest of the
/// wake-ups from being carried out, nor this thread from keeping time.
fn wake(waker: Waker) {
    as_holder(|| {
        contain(|| waker.wake());
    });
}
