//! Where a class's tag stands when work of it comes, and when its shares change.

use super::{ClassError, ClassId, ClassTree, NodeId};
use crate::sync::Ordering;
use crate::tag::{self, STEP_MAX};

/// Disk time that a node keeps of what it is owed when work of it comes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Credit {
    /// If no shard had work of it.
    pub(crate) exclusive: u64,
    /// If others have.
    pub(crate) shared: u64,
}

impl ClassTree {
    /// One more shard has work of this class, which cannot be removed until
    /// [`ClassTree::sleep`]; for its tag see [`ClassTree::wake_group`].
    pub(crate) fn wake(&self, class: ClassId, credit: Credit) -> Result<(), ClassError> {
        let shards_before = self.node(class.node).slot.enter(class.generation)?;
        self.raise_on_wake(class.node, shards_before, credit);
        Ok(())
    }

    /// One more shard has work of this group. The first one makes it catch up
    /// with its siblings, but for its credit; any other leaves it what a shard
    /// may lead, or a node that asks for little on several shards would earn
    /// more and more.
    pub(crate) fn wake_group(&self, id: NodeId, credit: Credit) {
        let backlogged = &self.node(id).backlogged;
        let shards_before = if self.sole {
            backlogged.store(1, Ordering::Relaxed);
            0
        } else {
            backlogged.fetch_add(1, Ordering::AcqRel)
        };
        self.raise_on_wake(id, shards_before.into(), credit);
    }

    /// One shard less has work of this node.
    pub(crate) fn sleep(&self, id: NodeId) {
        if Self::is_class(id) {
            self.node(id).slot.leave(self.sole);
        } else if self.sole {
            self.node(id).backlogged.store(0, Ordering::Relaxed);
        } else {
            self.node(id).backlogged.fetch_sub(1, Ordering::AcqRel);
        }
    }

    /// What waking does to the tag, for a shard whose work of this node goes
    /// at once and does not count as queued.
    pub(crate) fn activate_unqueued(&self, id: NodeId, credit: Credit) {
        let node = self.node(id);
        let shards_before = if Self::is_class(id) {
            node.slot.users()
        } else {
            node.backlogged.load(Ordering::Acquire).into()
        };
        self.raise_on_wake(id, shards_before, credit);
    }

    fn raise_on_wake(&self, id: NodeId, shards_before: u64, credit: Credit) {
        let credit = if shards_before == 0 { credit.exclusive } else { credit.shared };
        self.raise(id, credit, shards_before > 0);
    }

    /// Of what a node is owed, `credit` of disk time is kept.
    pub(crate) fn keep_credit(&self, id: NodeId, credit: u64) {
        self.raise(id, credit, true);
    }

    /// Moves the tag of a node that could not be served up to its parent's
    /// virtual time: not having asked earns no credit.
    pub(crate) fn catch_up(&self, id: NodeId) {
        self.raise(id, 0, true);
    }

    /// Disk time that a node is owed: how far it is behind its parent's virtual
    /// time; zero if it is not.
    pub(crate) fn owed(&self, id: NodeId) -> u64 {
        let node = self.node(id);
        node.behind(self.node(node.parent()).virtual_time())
    }

    /// Moves the tag of a node up to `credit` of disk time behind its parent's
    /// virtual time.
    #[inline]
    fn raise(&self, id: NodeId, credit: u64, shared: bool) {
        self.rescale_tag(id, shared);
        let node = self.node(id);
        let virtual_time = self.node(node.parent()).virtual_time();
        let credit = credit.min(STEP_MAX);
        if node.behind(virtual_time) <= credit {
            return;
        }
        let earliest = virtual_time.wrapping_sub(credit / u64::from(node.shares()));
        node.tag.update(|tag| Some(tag::later(tag, earliest)));
    }

    /// States the tag for the present shares, if it is for others: this many
    /// units of disk time ahead of its parent's virtual time as before, or just
    /// there if it was another class's. It is left to the shards because a sole
    /// one changes tags without atomic updates; if it is `shared`, others that
    /// have it in their order enter it again.
    #[inline]
    pub(crate) fn rescale_tag(&self, id: NodeId, shared: bool) {
        let node = self.node(id);
        let (old, new) = (node.tag_shares.load(Ordering::Acquire), node.shares());
        if old != new {
            self.restate_for(id, old, new, shared);
        }
    }

    #[cold]
    fn restate_for(&self, id: NodeId, old: u32, new: u32, shared: bool) {
        let node = self.node(id);
        let (done, seen) = (Ordering::AcqRel, Ordering::Relaxed);
        if node.tag_shares.compare_exchange(old, new, done, seen).is_err() {
            return;
        }
        let from = self.node(node.parent()).virtual_time();
        if old == 0 {
            node.tag.update(|_| Some(from));
        } else {
            node.tag.update(|tag| Some(tag::rescaled(tag, from, old, new)));
        }
        if shared {
            self.note_change();
        }
    }
}
