//! Completes all requests in the queues.

use forebay_core::{DiskTime, Outcome, Time};

use super::model::Model;
use super::shard::{Shard, Stage};

/// The most steps of the clock, which are enough for any program.
const MOMENTS_MAX: usize = 100_000;

impl Model {
    /// Lifts the limits, completes requests at once, and polls each shard when it asks for that. Then
    /// every request must complete.
    pub(super) fn drain(mut self) {
        self.now = self.latest;
        self.classes.lift_limits(&self.group);
        for _ in 0..MOMENTS_MAX {
            for place in 0..self.shards.len() {
                self.turn(place);
            }
            let Some(next) = self.next_moment() else { break };
            self.now = next.as_nanos().max(self.now + 1);
            self.latest = self.now;
        }
        self.check();
        for shard in self.shards.iter().flatten() {
            assert!(shard.queue.is_empty(), "{} requests are left", shard.len());
            assert_eq!(shard.overdue(), 0);
        }
        assert_eq!(self.group.in_flight(), DiskTime::ZERO);
        self.classes.remove_all(&self.group);
    }

    fn turn(&mut self, place: usize) {
        let now = self.time();
        let Some(shard) = self.shard(place) else { return };
        while let Some(ticket) = shard.pick(0, Stage::Parked) {
            shard.resume(now, ticket);
        }
        self.poll(place);
        let Some(shard) = self.shard(place) else { return };
        while let Some(ticket) = shard.pick(0, Stage::InDisk) {
            shard.complete(now, ticket, Outcome::Done, now);
        }
    }

    /// When the first shard is due to poll; `None` if no request is left.
    fn next_moment(&self) -> Option<Time> {
        let left = |shard: &&Shard| !shard.queue.is_empty();
        let shards = self.shards.iter().flatten().filter(left);
        shards.map(|shard| shard.queue.poll_timeout(self.time()).unwrap()).min()
    }
}
