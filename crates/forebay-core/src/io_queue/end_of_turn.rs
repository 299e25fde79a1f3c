//! What is told and counted when nothing more goes.

use super::IoQueue;
use super::stop::Stop;
use crate::{DiskTime, Time};

impl IoQueue {
    /// Books the time since the last stop on its reason.
    pub(super) fn note_stop(&mut self, now: Time, stop: Option<Stop>) {
        if let Some((last, since)) = self.stopped.take() {
            let nanos = now.nanos_since(since);
            let blocked = &mut self.totals.blocked_nanos[last.reason.index()];
            *blocked = blocked.wrapping_add(nanos);
            self.sampler.waited(last.reason, nanos);
        }
        if !self.shared.peers.alone() {
            self.shared.peers.promise(self.shard, self.promised(now, stop));
            if let Some(stop) = stop {
                self.fair.publish_owed();
                self.wake_window_waiters(now, stop.reason);
                self.publish_held(now);
            }
        }
        if let Some(stop) = stop {
            self.lateness.end_turn(self.held > DiskTime::ZERO, stop.waits_for_time());
            self.sample_stop(now, stop.reason);
            self.update_flow(now);
            self.stopped = Some((stop, now));
        }
    }
}
