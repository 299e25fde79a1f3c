//! What a queue and the other shards of its group tell each other.

use alloc::sync::Arc;

use super::IoQueue;
use super::stop::Stop;
use crate::budget::RoomShare;
use crate::shard_id::ShardId;
use crate::shared::Shared;
use crate::{Blocked, Time};

impl IoQueue {
    /// Leaves the group, as when dropped: the shards to wake, which wait for
    /// what this queue held of the budget.
    pub fn leave(mut self, now: Time) -> impl Iterator<Item = ShardId> + Send + use<> {
        let mut wakes = core::mem::take(&mut self.wakes);
        let shared = Arc::clone(&self.shared);
        // who is woken must find that it has left
        drop(self);
        shared.head_run.take_waiting(&shared.peers, now, &mut wakes);
        shared.peers.take_waiting_for_room(now, &mut wakes);
        core::iter::from_fn(move || wakes.pop())
    }

    /// Something is queued where nothing was: the others may count on this
    /// shard to poll, from now on and not for ever.
    pub(super) fn mark_busy(&self, now: Time) {
        let peers = &self.shared.peers;
        if !peers.alone() && peers.is_idle(self.shard) {
            peers.promise(self.shard, now);
        }
    }

    /// When the others may count on this shard to poll again.
    pub(super) fn promised(&self, now: Time, stop: Option<Stop>) -> Time {
        match stop {
            None => now,
            Some(Stop { reason: Blocked::Empty | Blocked::ClassLimit, .. }) => Time::MAX,
            // it sleeps until it is woken, and whoever does that expects it
            Some(Stop { resume_at: Some(at), .. }) if self.self_wake_deadline() <= now => at,
            Some(Stop { resume_at, .. }) => {
                let drained = now.plus_nanos(self.shared.budget.window().as_nanos_ceil());
                resume_at.map_or(drained, |at| at.min(drained))
            }
        }
    }

    /// A request has left the window. Where others of this queue wait, whether
    /// anybody is to be woken for it shows when this queue has had its turn,
    /// which may use the room itself.
    #[inline]
    pub(super) fn free_room(&mut self, now: Time) {
        if self.shared.peers.alone() {
            return;
        }
        let waits = self.requests.len() > self.totals.in_disk;
        if waits && self.shared.budget.counts_disk_time() {
            self.room_freed_at = Some(now);
        } else {
            self.collect_wakes(now);
        }
    }

    /// Those who wait for room look again, as many as there is room for.
    pub(super) fn collect_wakes(&mut self, now: Time) {
        if !self.shared.peers.alone() {
            self.collect_some_wakes(now, self.shared.budget.room_share());
        }
    }

    #[inline]
    fn collect_some_wakes(&mut self, now: Time, share: RoomShare) {
        if self.shared.peers.anyone_waits_for_room() {
            self.shared.peers.pop_most_lagging(&self.shared.tree, now, share, &mut self.wakes);
        }
    }

    /// Room that this queue leaves when nothing more goes is for those who wait
    /// for it, whoever has freed it.
    pub(super) fn wake_window_waiters(&mut self, now: Time, reason: Blocked) {
        let freed = self.take_freed();
        let Shared { peers, budget, .. } = &*self.shared;
        if reason == Blocked::Window || !peers.anyone_waits_for_room() || !budget.has_room() {
            return;
        }
        let share = budget.room_share().at_least(freed);
        // whoever is behind is on its way
        let behind = usize::from(reason == Blocked::FairnessLead);
        let shards = share.shards.saturating_sub(behind);
        self.collect_some_wakes(now, RoomShare { shards, ..share });
    }

    /// Room was freed and nothing was to be dispatched since.
    pub(super) fn collect_freed(&mut self) {
        if let Some(freed_at) = self.room_freed_at {
            let freed = self.take_freed();
            let share = self.shared.budget.room_share().at_least(freed);
            self.collect_some_wakes(freed_at, share);
        }
    }

    /// By how many requests there are less in the disk than when this queue
    /// passed on room before.
    fn take_freed(&mut self) -> usize {
        self.room_freed_at = None;
        let before = core::mem::replace(&mut self.in_disk_before, self.totals.in_disk);
        before.saturating_sub(self.totals.in_disk) as usize
    }

    /// Whether only others can tell when to look again: who is ahead of others
    /// looks by itself, after about a tick, where it knows what they take.
    pub(super) fn waits_for_room(&self, now: Time, stop: &Stop) -> bool {
        match stop.reason {
            Blocked::Window => true,
            Blocked::FairnessLead => {
                self.shared.budget.spent().is_none() && !self.waits_for_a_run(now, stop)
            }
            _ => false,
        }
    }

    /// After changes of classes others look again too, as does whoever waited
    /// for a queue that has gone.
    pub(super) fn follow_changes(&mut self, now: Time) {
        if self.fair.follow_changes() {
            self.shared.peers.take_waiting_for_room(now, &mut self.wakes);
        }
    }

    /// Tells the others what this queue leaves in the disk.
    pub(super) fn publish_held(&self, now: Time) {
        let late = self.lateness.is_late();
        let peers = &self.shared.peers;
        peers.publish_held(self.shard, now, self.held.units(), late);
        peers.publish_dispatched(self.shard, self.totals.consumption.units());
    }
}
