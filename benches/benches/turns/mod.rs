//! Shards of one group that always have work waiting.

use forebay_core::{Op, Outcome, Time};

use crate::path::{Path, classes, group};

/// Between two turns of shards that one thread drives, in nanoseconds.
const TURN_NANOS: u64 = 1_000;

impl Path {
    /// One request if it may go now: dispatch, complete, queue the next, and
    /// see whom to wake. Returns whether it went.
    pub fn turn(&mut self, now: Time) -> bool {
        let ticket = self.queue.poll_dispatch(now);
        if let Some(ticket) = ticket {
            let _ = self.queue.complete(now, ticket, Outcome::Done);
            let class = self.classes[self.next];
            self.next = (self.next + 1) % self.classes.len();
            let _ = self.queue.enqueue(now, class, Op::Read, 4096);
        }
        while self.queue.poll_wake().is_some() {}
        ticket.is_some()
    }
}

/// Shards that one thread drives in turns.
pub struct Turns {
    shards: Vec<Path>,
    now: u64,
}

impl Turns {
    pub fn new(shards: usize, count: usize) -> Option<Self> {
        let group = group(shards)?;
        let classes = classes(&group, count);
        let shards = (0..shards).map(|_| Path::new(&group, classes.clone())).collect::<Option<_>>();
        Some(Self { shards: shards?, now: 1_000_000 })
    }

    /// `count` requests, about as many on each shard.
    pub fn run(&mut self, count: usize) -> usize {
        let mut done = 0;
        while done < count {
            for shard in &mut self.shards {
                self.now += TURN_NANOS;
                done += usize::from(shard.turn(Time::from_nanos(self.now)));
            }
        }
        done
    }
}
