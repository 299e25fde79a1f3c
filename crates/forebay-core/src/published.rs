//! The state that one shard publishes for the others of its group, and what they conclude from it.
//!
//! Decision: `docs/decisions/0013-promise-to-poll.md`.
//! Decision: `docs/decisions/0018-stale-in-flight-work.md`.

use alloc::vec::Vec;

use crate::class_tree::{ClassTree, NodeId, ROOT};
use crate::sync::{AtomicU32, AtomicU64, Ordering, Padded};
use crate::{DiskTime, Time};

/// A shard is woken if it has not polled within a tick divided by this after the disk must have
/// answered. Threads wake up 50 us late.
const OVERSLEEP_PART: u64 = 4;
/// A shard is late if it has not polled within a tick divided by this after it was woken. Others wait
/// as long for a late shard that is behind, from its last poll on.
pub(crate) const ANSWER_PART: u64 = 2;
/// Encoding: No request of a node is queued on a shard.
pub(crate) const IDLE: u64 = u64::MAX;
/// A value instead of a promise: no other shard waits for this one before it polls.
pub(crate) const NOT_WAITED_FOR: Time = Time::from_nanos(u64::MAX - 1);

/// The shards against which a lead is measured.
#[derive(Clone, Copy, Debug)]
pub(crate) enum PeerFilter {
    /// Shards that poll by their promise, or within `patience` ns after it: see [`Published::promise`].
    Live { now: Time, patience: u64 },
    /// Shards that polled within the last `nanos` ns, and were not late then. Late shards with turns
    /// one after another would otherwise wait for each other without end.
    PromptWithin { now: Time, nanos: u64 },
}

/// The state of a shard at the end of a poll.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PollRecord {
    /// Disk time of all requests that it has dispatched, and of those in the disk.
    pub(crate) dispatched: DiskTime,
    pub(crate) held: DiskTime,
    /// When a disk that keeps up has answered those in the disk; `None` if there are none.
    pub(crate) due_at: Option<Time>,
    /// Whether the shard was late to poll.
    pub(crate) is_late: bool,
}

/// What a shard needs to know to check what others hold in the disk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PeerCheck {
    pub(crate) now: Time,
    pub(crate) tick_nanos: u64,
    /// How much later than one that keeps up the disk answers, in nanoseconds; negative if earlier.
    pub(crate) lag_nanos: i64,
    /// Whether the window has room.
    pub(crate) has_room: bool,
}

/// Whether a shard polls for what it has in the disk.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Presence {
    /// It was late when it polled last, or was woken and has not polled.
    Late,
    /// It may still poll until then.
    Expected { until: Time },
    /// The disk must have answered, and the shard has not polled since.
    ToBeWoken,
}

/// The published state of one shard. Other shards also write into it, when they have woken it and when
/// it is late.
#[derive(Debug, Default)]
pub(crate) struct Published {
    pub(crate) joined: AtomicU32,
    pub(crate) polls_by: AtomicU64,
    /// When it last polled, and whether it was late then (`late`).
    pub(crate) polled_at: AtomicU64,
    /// When another shard last woke it to find out whether it is late.
    pub(crate) woken_at: AtomicU64,
    pub(crate) late: AtomicU32,
    /// When it last polled after an absence in which the disk had done all that it had sent.
    pub(crate) away_at: AtomicU64,
    /// Disk time that it had in the disk at its last poll, in units.
    pub(crate) held: AtomicU64,
    /// When a disk that keeps up has answered all of that, in nanoseconds.
    pub(crate) due_at: AtomicU64,
    /// Disk time of all requests that it has dispatched, in units.
    pub(crate) dispatched: AtomicU64,
    /// Disk time of the request that waits for room, in units.
    pub(crate) wanted: AtomicU64,
    /// For each group of classes, the child that is next on this shard. For each class, the tag of this
    /// shard among the shards of the class.
    pub(crate) next: Vec<AtomicU64>,
    /// The tag of this shard, if shards take turns regardless of their classes.
    pub(crate) own_turn: AtomicU64,
}

impl Published {
    pub(crate) fn new(nodes: usize) -> Self {
        Self {
            next: (0..nodes).map(|_| AtomicU64::new(IDLE)).collect(),
            own_turn: AtomicU64::new(IDLE),
            ..Self::default()
        }
    }

    /// Promises that the shard polls again at `at` or earlier.
    pub(crate) fn promise(&self, at: Time) {
        self.polls_by.store(at.as_nanos(), Ordering::Relaxed);
    }

    /// The time by which it has promised to poll.
    pub(crate) fn promised(&self) -> Time {
        Time::from_nanos(self.polls_by.load(Ordering::Relaxed))
    }

    /// Marks the shard as late: no other shard waits for it until it polls.
    pub(crate) fn stop_waiting(&self) {
        self.promise(NOT_WAITED_FOR);
        self.late.store(1, Ordering::Relaxed);
    }

    /// Whether it was late when it polled last, or has been marked as late since.
    pub(crate) fn is_late(&self) -> bool {
        self.late.load(Ordering::Relaxed) != 0
    }

    /// When it polled last.
    pub(crate) fn polled_at(&self) -> Time {
        Time::from_nanos(self.polled_at.load(Ordering::Relaxed))
    }

    /// Publishes what the shard did in a poll.
    pub(crate) fn publish_poll(&self, now: Time, record: PollRecord) {
        self.dispatched.store(record.dispatched.units(), Ordering::Relaxed);
        if let Some(due_at) = record.due_at {
            self.due_at.store(due_at.as_nanos(), Ordering::Relaxed);
        }
        self.polled_at.store(now.as_nanos(), Ordering::Relaxed);
        self.late.store(u32::from(record.is_late), Ordering::Relaxed);
        let held = record.held.units();
        if self.held.load(Ordering::Relaxed) != held {
            self.held.store(held, Ordering::Relaxed);
        }
    }

    /// Publishes the tag of the shard among shards that take turns; `None` while it has no request
    /// waiting.
    pub(crate) fn publish_turn(&self, tag: Option<u64>) {
        self.own_turn.store(tag.map_or(IDLE, |tag| tag.min(IDLE - 1)), Ordering::Relaxed);
    }

    /// The tag of the shard among shards that take turns; `None` while it does not wait.
    pub(crate) fn own_turn(&self) -> Option<u64> {
        Some(self.own_turn.load(Ordering::Relaxed)).filter(|tag| *tag != IDLE)
    }

    /// The tag of the class or group that is next on this shard. If it is a class, then also how far
    /// the shard has come within it.
    pub(crate) fn turn(&self, tree: &ClassTree) -> Option<(u64, u64)> {
        if let Some(tag) = self.own_turn() {
            return Some((tag, 0));
        }
        let next = self.next[usize::from(ROOT)].load(Ordering::Relaxed);
        let node = (next != IDLE).then_some(next as NodeId)?;
        let own = if ClassTree::is_class(node) {
            self.next[usize::from(node)].load(Ordering::Relaxed)
        } else {
            0
        };
        Some((tree.node(node).tag(), own))
    }

    /// When a disk with this lag, in nanoseconds, has answered all that the shard holds.
    pub(crate) fn answered_at(&self, lag_nanos: i64) -> Time {
        Time::from_nanos(self.due_at.load(Ordering::Relaxed).saturating_add_signed(lag_nanos))
    }

    /// Whether the shard polls for what it holds. The disk must have done the first part of that by
    /// `first_at`.
    pub(crate) fn presence(&self, check: &PeerCheck, first_at: Time) -> Presence {
        let polled_at = Time::from_nanos(self.polled_at.load(Ordering::Relaxed));
        let woken_at = Time::from_nanos(self.woken_at.load(Ordering::Relaxed));
        let is_woken = woken_at > polled_at;
        let until = match is_woken {
            true => woken_at.plus_nanos(check.tick_nanos / ANSWER_PART),
            false => first_at
                .max(polled_at)
                .plus_nanos(check.tick_nanos / OVERSLEEP_PART)
                .max(woken_at.plus_nanos(check.tick_nanos)),
        };
        match () {
            () if self.late.load(Ordering::Relaxed) != 0 => Presence::Late,
            () if check.now < until => Presence::Expected { until },
            () if is_woken => Presence::Late,
            () => Presence::ToBeWoken,
        }
    }

    /// Whether the others expect no poll of it until it has work.
    pub(crate) fn is_idle(&self) -> bool {
        self.polls_by.load(Ordering::Relaxed) == Time::MAX.as_nanos()
    }

    pub(crate) fn matches(&self, filter: PeerFilter) -> bool {
        match filter {
            PeerFilter::Live { now, patience } => self.is_live(now, patience),
            PeerFilter::PromptWithin { now, nanos } => {
                let polled_at = Time::from_nanos(self.polled_at.load(Ordering::Relaxed));
                self.joined.load(Ordering::Relaxed) == 1
                    && self.late.load(Ordering::Relaxed) == 0
                    && now.nanos_since(polled_at) <= nanos
            }
        }
    }

    pub(crate) fn is_live(&self, now: Time, patience: u64) -> bool {
        let polls_by = Time::from_nanos(self.polls_by.load(Ordering::Relaxed));
        self.joined.load(Ordering::Relaxed) == 1
            && polls_by != NOT_WAITED_FOR
            && now.nanos_since(polls_by) <= patience
    }

    /// The disk time owed to what this shard would dispatch instead of `class` or of a group above it,
    /// in units: the largest over all levels.
    pub(crate) fn deficit_above(&self, tree: &ClassTree, class: NodeId) -> u64 {
        let (mut owed, mut child) = (0, class);
        while child != ROOT {
            let node = tree.node(child);
            let parent = node.parent();
            let next = self.next[usize::from(parent)].load(Ordering::Relaxed);
            if next != IDLE && next != u64::from(child) {
                // the tag itself may have moved since it was published
                owed = owed.max(tree.node(next as NodeId).behind(node.tag()));
            }
            child = parent;
        }
        owed
    }
}

/// With each earlier completion the known lag falls by one part in this many of the difference.
const LAG_STEP_PART: i64 = 4;

/// The clock of an ideal disk, one for each group. The ideal disk keeps up with the costs of requests.
#[derive(Debug, Default)]
pub(crate) struct DiskClock {
    /// When a disk that keeps up has done all dispatched requests, in nanoseconds.
    free_at: Padded<AtomicU64>,
    /// How much later than that prompt shards get their completions, in nanoseconds; signed.
    lag: Padded<AtomicU64>,
}

impl DiskClock {
    /// Reports that a prompt shard got a completion `nanos` later than from a disk that keeps up;
    /// negative if earlier. The known lag rises to that at once. It falls step by step, because
    /// completions are irregular.
    pub(crate) fn publish_lag(&self, nanos: i64) {
        let known = self.lag_nanos();
        let less = known.saturating_sub(nanos).max(0);
        let lag = known.max(nanos).saturating_sub(less / LAG_STEP_PART);
        self.lag.0.store(lag.cast_unsigned(), Ordering::Relaxed);
    }

    pub(crate) fn lag_nanos(&self) -> i64 {
        self.lag.0.load(Ordering::Relaxed).cast_signed()
    }

    /// Records the dispatch of a request of this cost; `in_flight` includes it. Returns when a disk that
    /// keeps up has done it and all before it. That is no later than `in_flight` from now, because no
    /// disk has more left to do.
    #[inline]
    pub(crate) fn dispatch(&self, now: Time, cost: DiskTime, in_flight: DiskTime) -> Time {
        let (now, cost) = (now.as_nanos(), cost.as_nanos_ceil());
        let latest = now.saturating_add(in_flight.as_nanos_ceil().max(cost));
        let next = |free_at: u64| free_at.max(now).saturating_add(cost).min(latest);
        let order = Ordering::Relaxed;
        let free_at = self.free_at.0.fetch_update(order, order, |at| Some(next(at)));
        Time::from_nanos(next(free_at.unwrap_or(0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COST: DiskTime = DiskTime::from_units(6_400);
    const COST_NANOS: u64 = COST.as_nanos_ceil();

    #[test]
    fn the_disk_does_one_after_another_and_no_more_than_is_in_flight() {
        let clock = DiskClock::default();
        let at = |nanos| Time::from_nanos(1_000_000 + nanos);
        let both = COST.plus(COST);
        assert_eq!(clock.dispatch(at(0), COST, COST), at(COST_NANOS));
        assert_eq!(clock.dispatch(at(0), COST, both), at(2 * COST_NANOS));
        // the disk was faster: nothing else is in flight
        assert_eq!(clock.dispatch(at(1), COST, COST), at(1 + COST_NANOS));
        // it was idle since
        assert_eq!(clock.dispatch(at(9_000), COST, both), at(9_000 + COST_NANOS));
    }

    #[test]
    fn the_lag_rises_at_once_and_falls_in_steps() {
        let clock = DiskClock::default();
        for (lag, known) in [(800, 800), (0, 600), (0, 450), (500, 500), (-1500, 0), (-1500, -375)]
        {
            clock.publish_lag(lag);
            assert_eq!(clock.lag_nanos(), known, "{lag}");
        }
        for lag in [i64::MIN, i64::MAX] {
            clock.publish_lag(lag);
        }
        assert_eq!(clock.lag_nanos(), i64::MAX);
    }
}
