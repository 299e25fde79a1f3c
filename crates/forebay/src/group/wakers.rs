//! The wakers of the threads whose queues share a disk's budget.

use std::fmt;
use std::mem;
use std::sync::Arc;

use forebay_core::ShardId;

use crate::messages;
use crate::sys::lock::Lock;

type Wake = Arc<dyn Fn() + Send + Sync>;

/// For each shard of an I/O group, the function that makes its thread poll its queue.
pub(crate) struct Wakers {
    shards: Box<[Lock<Option<Wake>>]>,
}

impl Wakers {
    /// Wakers for up to `shards_max` shards, none of them registered.
    pub(crate) fn new(shards_max: usize) -> Self {
        Self { shards: (0..shards_max).map(|_| Lock::default()).collect() }
    }

    /// Registers `wake`, which is called from any thread when another queue has freed room that
    /// `shard` waits for. It must not block. It is called without a lock of the scheduler.
    pub(crate) fn register(&self, shard: ShardId, wake: impl Fn() + Send + Sync + 'static) {
        self.put(shard, Some(Arc::new(wake)));
    }

    /// Removes the waker of `shard`. Call it before the shard's queue leaves the group.
    pub(crate) fn remove(&self, shard: ShardId) {
        self.put(shard, None);
    }

    /// Makes `shard` poll. It has no effect if the shard is not registered.
    pub(crate) fn wake(&self, shard: ShardId) {
        if let Some(place) = self.place(shard) {
            Self::call(place);
        }
    }

    /// Makes every shard poll.
    pub(crate) fn wake_all(&self) {
        self.shards.iter().for_each(Self::call);
    }

    fn call(place: &Lock<Option<Wake>>) {
        // Called without the lock, because `wake` may take others.
        let wake = place.lock().clone();
        if let Some(wake) = wake {
            wake();
        }
    }

    fn put(&self, shard: ShardId, wake: Option<Wake>) {
        if let Some(place) = self.place(shard) {
            let before = mem::replace(&mut *place.lock(), wake);
            drop(before);
        }
    }

    fn place(&self, shard: ShardId) -> Option<&Lock<Option<Wake>>> {
        let place = self.shards.get(shard.index());
        if place.is_none() {
            messages::report_invariant("a shard of a group has no place for its waker");
        }
        place
    }
}

impl fmt::Debug for Wakers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wakers").field("shards_max", &self.shards.len()).finish()
    }
}

#[cfg(test)]
mod tests {
    use forebay_core::{DiskModel, GroupConfig, IoGroup, Policy};

    use super::*;

    #[test]
    fn a_shard_without_a_place_is_told() {
        let group = IoGroup::new(GroupConfig::new(DiskModel::unmeasured(), Policy::Unlimited));
        let shard = group.join().unwrap().shard();
        let wakers = Wakers::new(0);
        assert!(messages::meets_a_bug(|| wakers.register(shard, || ())));
        assert!(messages::meets_a_bug(|| wakers.wake(shard)));
    }
}
