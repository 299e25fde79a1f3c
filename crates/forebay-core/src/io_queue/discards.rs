//! Few discards are in the disk at once; the others wait out of the order, and keep
//! no reads and writes of other classes waiting.

use super::IoQueue;
use crate::discards::RETRY_NANOS;
use crate::{Op, Time};

impl IoQueue {
    /// Takes a place for the first discard of `class`. Else until when to leave the
    /// class out of the order, if no other goes before: then it looks again, or sooner
    /// if a discard of this queue is done, or another queue wakes this one.
    #[cold]
    pub(super) fn enter_discards(&mut self, now: Time, class: u16) -> Result<(), Time> {
        let discards = &self.shared.discards;
        if self.fair.nested_waits_in(class) {
            // it may hold those that are in the disk
            discards.enter_anyway();
            return Ok(());
        }
        if discards.enter(self.shard, now) {
            return Ok(());
        }
        Err(now.plus_nanos(RETRY_NANOS.saturating_add(self.many_shards_nanos())))
    }

    /// A request goes to the disk that has been there before.
    pub(super) fn enter_discards_anyway(&self, op: Op) {
        if op == Op::Discard {
            self.shared.discards.enter_anyway();
        }
    }

    /// A request has left the window. If it was a discard, the next may go: the shard
    /// that has waited for longest is woken.
    #[inline]
    pub(super) fn pass_on_discards(&mut self, now: Time, index: u32) {
        if self.requests.at(index).op == Op::Discard {
            self.wake_next_discard(now);
        }
    }

    #[cold]
    fn wake_next_discard(&mut self, now: Time) {
        self.fair.recheck_throttled();
        if let Some(next) = self.shared.discards.next(self.shard, now) {
            self.wakes.push(next);
        }
    }
}
