//! What one shard tells the others.

use alloc::vec::Vec;

use crate::Time;
use crate::class_tree::{ClassTree, NodeId, ROOT};
use crate::sync::{AtomicU32, AtomicU64, Ordering};

/// Encoding: Nothing of a node is queued on a shard.
pub(super) const IDLE: u64 = u64::MAX;
/// In the place of a promise: nobody waits for the shard before it polls.
pub(super) const NOT_WAITED_FOR: Time = Time::from_nanos(u64::MAX - 1);

/// Which shards a lead is measured against.
#[derive(Clone, Copy, Debug)]
pub(crate) enum PeerFilter {
    /// Those that poll as they promised, or a patience later: see
    /// [`Peers::promise`](super::Peers::promise).
    Live { now: Time, patience: u64 },
    /// Those that polled lately, and were not late then. Late shards that have their turns one
    /// after another would wait for each other without end.
    PromptWithin { now: Time, nanos: u64 },
}

/// What one shard publishes. Only that shard writes it.
#[derive(Debug)]
pub(super) struct Published {
    pub(super) joined: AtomicU32,
    pub(super) polls_by: AtomicU64,
    /// When it last polled, and whether it was late then.
    pub(super) polled_at: AtomicU64,
    pub(super) late: AtomicU32,
    /// When it last turned up after the disk had done all that it had sent.
    pub(super) away_at: AtomicU64,
    /// Disk time of what it had in the disk then, and of all that it has sent.
    pub(super) held: AtomicU64,
    pub(super) dispatched: AtomicU64,
    /// Disk time of the request that waits for room.
    pub(super) wanted: AtomicU64,
    /// Per group of classes, the child whose turn is next on this shard; per
    /// class, this shard's own start tag among the shards of the class.
    pub(super) next: Vec<AtomicU64>,
    /// Where shards take turns whatever their classes, this one's tag.
    pub(super) own_turn: AtomicU64,
}

impl Published {
    pub(super) fn new(nodes: usize) -> Self {
        Self {
            joined: AtomicU32::new(0),
            polls_by: AtomicU64::new(0),
            polled_at: AtomicU64::new(0),
            late: AtomicU32::new(0),
            away_at: AtomicU64::new(0),
            held: AtomicU64::new(0),
            dispatched: AtomicU64::new(0),
            wanted: AtomicU64::new(0),
            next: (0..nodes).map(|_| AtomicU64::new(IDLE)).collect(),
            own_turn: AtomicU64::new(IDLE),
        }
    }

    /// Where shards take turns whatever their classes: this one's tag, while it waits.
    pub(super) fn own_turn(&self) -> Option<u64> {
        Some(self.own_turn.load(Ordering::Relaxed)).filter(|tag| *tag != IDLE)
    }

    /// The tag of what is next on this shard, and how far the shard has come within
    /// the class if that is one.
    pub(super) fn turn(&self, tree: &ClassTree) -> Option<(u64, u64)> {
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

    /// The others expect nothing of it until it has work.
    pub(super) fn is_idle(&self) -> bool {
        self.polls_by.load(Ordering::Relaxed) == Time::MAX.as_nanos()
    }

    pub(super) fn matches(&self, met: PeerFilter) -> bool {
        match met {
            PeerFilter::Live { now, patience } => self.is_live(now, patience),
            PeerFilter::PromptWithin { now, nanos } => {
                let polled_at = Time::from_nanos(self.polled_at.load(Ordering::Relaxed));
                self.joined.load(Ordering::Relaxed) == 1
                    && self.late.load(Ordering::Relaxed) == 0
                    && now.nanos_since(polled_at) <= nanos
            }
        }
    }

    pub(super) fn is_live(&self, now: Time, patience: u64) -> bool {
        let polls_by = Time::from_nanos(self.polls_by.load(Ordering::Relaxed));
        self.joined.load(Ordering::Relaxed) == 1
            && polls_by != NOT_WAITED_FOR
            && now.nanos_since(polls_by) <= patience
    }

    /// The most disk time that what this shard would dispatch in the place of
    /// `class`, or of a group it is in, is owed.
    pub(super) fn deficit_above(&self, tree: &ClassTree, class: NodeId) -> u64 {
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
