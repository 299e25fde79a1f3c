//! What a queue and the other shards of its group tell each other.

use alloc::sync::Arc;

use super::IoQueue;
use super::attempt::Stop;
use crate::io_group::Shared;
use crate::peers::ShardId;
use crate::{Blocked, Time};

impl IoQueue {
    /// Leaves the group, as when dropped: the shards to wake, which wait for
    /// what this queue held of the budget.
    pub fn leave(mut self, now: Time) -> impl Iterator<Item = ShardId> + Send + use<> {
        let mut wakes = core::mem::take(&mut self.wakes);
        let shared = Arc::clone(&self.shared);
        // who is woken must find that it has left
        drop(self);
        shared.peers.take_marks(now, &mut wakes);
        core::iter::from_fn(move || wakes.pop())
    }

    /// Something is queued where nothing was: the others may count on this
    /// shard to poll, from now on and not for ever.
    pub(super) fn end_rest(&self, now: Time) {
        let peers = &self.shared.peers;
        if !peers.alone() && peers.rests(self.shard) {
            peers.promise(self.shard, now);
        }
    }

    /// When the others may count on this shard to poll again.
    pub(super) fn promised(&self, now: Time, stop: Option<Stop>) -> Time {
        match stop {
            None => now,
            Some(Stop { reason: Blocked::Empty | Blocked::ClassLimit, .. }) => Time::MAX,
            // it sleeps until it is woken, and whoever does that expects it
            Some(Stop { resume_at: Some(at), .. }) if self.silent_from() <= now => at,
            Some(Stop { resume_at, .. }) => {
                let drained = now.plus_nanos(self.shared.budget.window().as_nanos_ceil());
                resume_at.map_or(drained, |at| at.min(drained))
            }
        }
    }

    /// Room was freed: those who wait for it are to be woken.
    pub(super) fn collect_wakes(&mut self, now: Time) {
        let Shared { peers, budget, tree, .. } = &*self.shared;
        if !peers.alone() {
            peers.take_some_marks(tree, (now, budget.wakes_for_room()), &mut self.wakes);
        }
    }

    /// A queue that was woken and does not use the room wakes another.
    pub(super) fn pass_on_room(&mut self, now: Time, reason: Blocked) {
        let wants_none = matches!(reason, Blocked::Empty | Blocked::ClassLimit | Blocked::Ahead);
        if wants_none && self.shared.peers.any_marks() && self.shared.budget.has_room() {
            self.collect_wakes(now);
        }
    }

    /// Whether only others can tell when to look again: who is ahead of others
    /// looks by itself, after about a tick, where it knows what they take.
    pub(super) fn waits_for_room(&self, stop: &Stop) -> bool {
        match stop.reason {
            Blocked::Window => true,
            Blocked::Ahead => self.shared.budget.taken().is_none(),
            _ => false,
        }
    }

    /// After changes of classes others look again too, as does whoever waited
    /// for a queue that has gone.
    pub(super) fn follow_changes(&mut self, now: Time) {
        if self.fair.follow_changes() {
            self.shared.peers.take_marks(now, &mut self.wakes);
        }
    }

    /// Takes part in the search for the window that the disk needs.
    pub(super) fn search_window(&mut self, now: Time) {
        let Shared { peers, budget, .. } = &*self.shared;
        peers.publish_progress(self.shard, self.progress);
        if budget.search_is_due(now) {
            budget.search(now, peers.progress());
        }
    }

    /// Tells the others what this queue leaves in the disk.
    pub(super) fn publish_held(&self, now: Time) {
        let late = self.lateness.is_late();
        self.shared.peers.publish_held(self.shard, now, self.held.units(), late);
    }
}
