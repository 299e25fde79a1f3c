//! The wake-ups that follow the release of the lock.

use std::mem::ManuallyDrop;
use std::sync::Arc;

use arrayvec::ArrayVec;
use forebay_core::ShardId;

use super::parking::Parking;
use crate::group::Wakers;
use crate::sys::waker::{KeptWaker, as_holder};

/// The most wake-ups for one hold of the lock.
const WAKEUPS_MAX: usize = 16;

pub(super) enum Wakeup {
    Thread(Arc<Parking>),
    Task(KeptWaker),
    Shard(ShardId),
}

/// Wake-ups that are collected under the lock, without allocation, and carried out after its
/// release.
pub(super) struct Wakeups(ArrayVec<Wakeup, WAKEUPS_MAX>);

impl Wakeups {
    pub(super) const fn new() -> Self {
        Self(ArrayVec::new_const())
    }

    /// Whether there is room for one more, besides the place reserved for the owner of the
    /// deadline.
    pub(super) fn has_room(&self) -> bool {
        self.0.remaining_capacity() > 1
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether any of them runs a waker of others.
    pub(super) fn any_of_others(&self) -> bool {
        self.0.iter().any(|wakeup| matches!(wakeup, Wakeup::Task(waker) if !waker.is_own()))
    }

    pub(super) fn push(&mut self, wakeup: Wakeup) {
        self.0.push(wakeup);
    }

    /// Wake-ups that are not dropped, because their drop would cost single permits 30 instructions.
    /// They are empty at the end of each path.
    pub(super) const fn of_single() -> ManuallyDrop<Self> {
        ManuallyDrop::new(Self::new())
    }

    pub(super) fn carry_out(&mut self, shards: &Wakers) {
        // A waker of others may wait for a permit, for a thread that waits for one, or for the
        // owner of the deadline. So it runs last.
        let mut others = ArrayVec::<KeptWaker, WAKEUPS_MAX>::new();
        let mut woken_shards = ArrayVec::<ShardId, WAKEUPS_MAX>::new();
        for wakeup in self.0.drain(..) {
            match wakeup {
                Wakeup::Thread(parking) => parking.unpark(),
                Wakeup::Task(waker) if waker.is_own() => waker.wake(),
                Wakeup::Task(waker) => others.push(waker),
                Wakeup::Shard(shard) => woken_shards.push(shard),
            }
        }
        woken_shards.into_iter().for_each(|shard| shards.wake(shard));
        others.into_iter().for_each(|waker| as_holder(|| waker.wake()));
    }
}
