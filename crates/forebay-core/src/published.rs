//! What one shard publishes for the others of its group, and what they see in it.
//!
//! Decision: `docs/decisions/0013-promise-to-poll.md`.

use alloc::vec::Vec;

use crate::class_tree::{ClassTree, NodeId, ROOT};
use crate::sync::{AtomicU32, AtomicU64, Ordering};
use crate::{DiskTime, Time};

/// A shard is woken if it has not polled a tick divided by this after the disk must have answered:
/// threads wake up 50 us late.
const OVERSLEEP_PART: u64 = 4;
/// A shard is late if it has not polled a tick divided by this after it was woken. Others wait as long
/// for a late shard that is behind, from its last poll on.
pub(crate) const ANSWER_PART: u64 = 2;
/// Encoding: Nothing of a node is queued on a shard.
pub(crate) const IDLE: u64 = u64::MAX;
/// In the place of a promise: nobody waits for the shard before it polls.
pub(crate) const NOT_WAITED_FOR: Time = Time::from_nanos(u64::MAX - 1);

/// Which shards a lead is measured against.
#[derive(Clone, Copy, Debug)]
pub(crate) enum PeerFilter {
    /// Those that poll as they promised, or a patience later: see
    /// [`Published::promise`].
    Live { now: Time, patience: u64 },
    /// Those that polled lately, and were not late then. Late shards that have their turns one
    /// after another would wait for each other without end.
    PromptWithin { now: Time, nanos: u64 },
}

/// The state of a shard at the end of a poll.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PollRecord {
    /// Disk time of all that it has sent, and of the part that is in the disk.
    pub(crate) dispatched: DiskTime,
    pub(crate) held: DiskTime,
    /// When a disk that keeps up has answered that part; `None` if nothing is in the disk.
    pub(crate) due_at: Option<Time>,
    /// The shard was late to poll.
    pub(crate) is_late: bool,
}

/// The conditions under which a shard checks what others hold in the disk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PeerCheck {
    pub(crate) now: Time,
    pub(crate) tick_nanos: u64,
    /// By how much the disk answers later than one that keeps up, in nanoseconds; negative if earlier.
    pub(crate) lag_nanos: i64,
    /// The window is not full.
    pub(crate) has_room: bool,
}

/// Whether a shard polls for what it has in the disk.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Presence {
    /// It was late when it polled last, or was woken and did not come.
    Late,
    /// It may still come until then.
    Expected { until: Time },
    /// The disk must have answered, and the shard has not polled since.
    ToBeWoken,
}

/// What one shard publishes. Others write the time at which they woke it, and that it is late.
#[derive(Debug, Default)]
pub(crate) struct Published {
    pub(crate) joined: AtomicU32,
    pub(crate) polls_by: AtomicU64,
    /// When it last polled, and whether it was late then.
    pub(crate) polled_at: AtomicU64,
    /// When another shard last woke it to see whether it comes.
    pub(crate) woken_at: AtomicU64,
    pub(crate) late: AtomicU32,
    /// When it last turned up after the disk had done all that it had sent.
    pub(crate) away_at: AtomicU64,
    /// Disk time of what it had in the disk then, and of all that it has sent.
    pub(crate) held: AtomicU64,
    /// When a disk that keeps up has answered all that it had in the disk then.
    pub(crate) due_at: AtomicU64,
    pub(crate) dispatched: AtomicU64,
    /// Disk time of the request that waits for room.
    pub(crate) wanted: AtomicU64,
    /// Per group of classes, the child whose turn is next on this shard; per
    /// class, this shard's own start tag among the shards of the class.
    pub(crate) next: Vec<AtomicU64>,
    /// Where shards take turns whatever their classes, this one's tag.
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

    /// Says when the shard will poll again at the latest.
    pub(crate) fn promise(&self, at: Time) {
        self.polls_by.store(at.as_nanos(), Ordering::Relaxed);
    }

    /// When it has promised to poll.
    pub(crate) fn promised(&self) -> Time {
        Time::from_nanos(self.polls_by.load(Ordering::Relaxed))
    }

    /// Nobody waits for the shard any more until it polls, which is late.
    pub(crate) fn stop_waiting(&self) {
        self.promise(NOT_WAITED_FOR);
        self.late.store(1, Ordering::Relaxed);
    }

    /// Whether it was late when it polled last, or nobody waits for it.
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

    /// Says the shard's tag among shards that take turns; `None` while nothing waits on it.
    pub(crate) fn publish_turn(&self, tag: Option<u64>) {
        self.own_turn.store(tag.map_or(IDLE, |tag| tag.min(IDLE - 1)), Ordering::Relaxed);
    }

    /// Where shards take turns whatever their classes: this one's tag, while it waits.
    pub(crate) fn own_turn(&self) -> Option<u64> {
        Some(self.own_turn.load(Ordering::Relaxed)).filter(|tag| *tag != IDLE)
    }

    /// The tag of what is next on this shard, and how far the shard has come within
    /// the class if that is one.
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

    /// When a disk with this lag has answered all that the shard holds.
    pub(crate) fn answered_at(&self, lag_nanos: i64) -> Time {
        Time::from_nanos(self.due_at.load(Ordering::Relaxed).saturating_add_signed(lag_nanos))
    }

    /// Whether the shard polls for what it holds, of which the disk must have done the first part by
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

    /// The others expect nothing of it until it has work.
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

    /// The most disk time that what this shard would dispatch in the place of
    /// `class`, or of a group it is in, is owed.
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
