//! Noticing what other shards hold in the disk and do not attend to: most of
//! that has long been done, and waits to be noticed.

use super::IoQueue;
use super::unattended::StalePeerInflight;
use crate::{DiskTime, Time};

/// So many shards together look once in a tick what others hold unattended.
const SHARDS_PER_LOOK: u64 = 32;
/// Of more shards than this one looks for all what others hold unattended. At 8 a
/// request costs about one look where each shard looks for itself.
const CROWD_ABOVE: u64 = 8;
/// A queue for which another one looks does so too, after this multiple of the time
/// that it has waited.
const LOOK_AGAIN_TIMES: u64 = 3;

impl IoQueue {
    /// By how much later each of many shards looks what others do, so that in
    /// a tick as many look as if they were few.
    pub(super) fn many_shards_nanos(&self) -> u64 {
        let many = self.shared.peers.joined().saturating_sub(1) / SHARDS_PER_LOOK;
        self.shared.tick_nanos.saturating_mul(many)
    }

    /// PollGapTracker what other shards hold unattended, now and then: the more shards
    /// there are, the more of them look.
    pub(super) fn refresh_stale_peers(&mut self, now: Time) {
        if now < self.unattended.look_at {
            return;
        }
        let peers = &self.shared.peers;
        let (late, silent, grows_at) =
            peers.unattended(self.shard, now, self.service_horizon_nanos());
        let held = self.shared.budget.uncounted(late, silent);
        let turns_at = now.plus_nanos(self.many_shards_nanos());
        let grows_at = grows_at.max(turns_at);
        let look_at = grows_at.min(turns_at.plus_nanos(self.shared.tick_nanos));
        self.unattended = StalePeerInflight { held, grows_at, look_at };
    }

    /// When a queue that finds the window full looks again what others hold
    /// unattended. Of many shards one looks in time, which wakes those that are
    /// behind; the others look the less often the longer they have waited, in
    /// case that one is late.
    pub(super) fn looks_at(&mut self, now: Time) -> Time {
        let (peers, grows_at) = (&self.shared.peers, self.unattended.grows_at.max(now));
        if peers.joined() <= CROWD_ABOVE {
            return grows_at;
        }
        if let Some(at) = peers.plan_look(now, grows_at, self.planned_look) {
            self.planned_look = at;
            return at;
        }
        let waited = now.nanos_since(*self.full_since.get_or_insert(now));
        let rests = waited.saturating_mul(LOOK_AGAIN_TIMES).max(self.shared.tick_nanos);
        grows_at.max(now.plus_nanos(rests))
    }

    /// As [`refresh_stale_peers`](Self::refresh_stale_peers), at once.
    pub(super) fn refresh_stale_peers_at_once(&mut self, now: Time) {
        self.unattended.look_at = Time::ZERO;
        self.refresh_stale_peers(now);
    }

    /// How much of that does not count in the window: as much as the disk has
    /// done. By how much longer than a window it keeps what this shard sends,
    /// so much of it is still before that.
    pub(super) fn uncounted(&self, now: Time) -> DiskTime {
        let Some(oldest) = self.in_disk.head() else { return self.unattended.held };
        let oldest = now.nanos_since(self.requests.at(oldest).dispatched_at);
        let kept = self.latest_disk_nanos.max(oldest);
        let window = self.shared.budget.window().as_nanos_ceil();
        let before = DiskTime::from_nanos(kept.saturating_sub(window));
        self.unattended.held.minus(before)
    }
}
