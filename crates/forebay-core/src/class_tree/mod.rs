//! The priority classes of an I/O group and the disk time that they have used. All shards share them.
//!
//! Decision: `docs/decisions/0010-changing-classes.md`.

mod node;

use alloc::vec::Vec;

pub use node::{
    CLASS_GROUP_DEPTH_MAX, CLASS_GROUPS_MAX, CLASSES_MAX, ClassError, ClassGroupId, ClassId,
    ClassNode, SHARES_MAX,
};
use node::{FIRST_CLASS, NODES_MAX, check_shares};
pub(crate) use node::{LEVELS_MAX, Node, NodeId, ROOT};

use crate::limit::Limits;
use crate::sync::{AtomicBool, AtomicU64, Ordering, Padded};
use crate::tag::{self, STEP_MAX};

/// The credit of a node that becomes backlogged on a shard: the most disk time owed to it that it keeps, in
/// units.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Credit {
    /// If no shard had work for it.
    pub(crate) exclusive: u64,
    /// If another shard has work for it.
    pub(crate) shared: u64,
}

/// All classes and groups of classes of one I/O group.
#[derive(Debug)]
pub(crate) struct ClassTree {
    nodes: Vec<Padded<Node>>,
    /// Whether a single shard uses the tree.
    sole: bool,
    /// Whether any node ever had limits.
    limited: AtomicBool,
    /// The number of changes after which shards must read the tree again.
    changes: Padded<AtomicU64>,
}

impl ClassTree {
    /// An empty tree. `sole` is true if a single shard uses it.
    pub(crate) fn new(sole: bool) -> Self {
        Self::with_nodes(NODES_MAX, sole)
    }

    /// A tree with room for only this many classes.
    #[cfg(all(test, loom))]
    pub(crate) fn small(classes: usize, sole: bool) -> Self {
        Self::with_nodes(FIRST_CLASS + classes, sole)
    }

    fn with_nodes(nodes: usize, sole: bool) -> Self {
        let nodes: Vec<_> = (0..nodes).map(|_| Padded(Node::new(sole))).collect();
        let _root = nodes[usize::from(ROOT)].0.slot.take();
        let (limited, changes) = (AtomicBool::new(false), Padded(AtomicU64::new(0)));
        Self { nodes, sole, limited, changes }
    }

    /// The number of nodes that may have children: the root and the groups of classes. Each shard keeps an
    /// order of the children of each.
    pub(crate) const GROUP_NODES: usize = FIRST_CLASS;
    /// The number of nodes of a tree: the root, the groups and the classes.
    pub(crate) const NODES: usize = NODES_MAX;

    /// The number of changes so far. It grows when tags may have moved back, when limits may have opened, and
    /// when classes or shards come or go. A queue that finds another number than before must read the tree
    /// again.
    pub(crate) fn changes(&self) -> u64 {
        self.changes.0.load(Ordering::Acquire)
    }

    pub(crate) fn note_change(&self) {
        self.changes.0.fetch_add(1, Ordering::AcqRel);
    }

    /// Whether any node may have limits. It is up to date for callers that follow [`ClassTree::changes`].
    pub(crate) fn is_limited(&self) -> bool {
        self.limited.load(Ordering::Acquire)
    }

    pub(crate) fn node(&self, id: NodeId) -> &Node {
        &self.nodes[usize::from(id)].0
    }

    pub(crate) fn is_class(id: NodeId) -> bool {
        usize::from(id) >= FIRST_CLASS
    }

    pub(crate) fn add_class(
        &self,
        parent: Option<ClassGroupId>,
        shares: u32,
    ) -> Result<ClassId, ClassError> {
        let (node, generation) = self.add(FIRST_CLASS..self.nodes.len(), parent, shares)?;
        Ok(ClassId { node, generation })
    }

    pub(crate) fn add_class_group(
        &self,
        parent: Option<ClassGroupId>,
        shares: u32,
    ) -> Result<ClassGroupId, ClassError> {
        let (node, generation) = self.add(1..FIRST_CLASS, parent, shares)?;
        Ok(ClassGroupId { node, generation })
    }

    /// The node of a class or a group that is in use.
    pub(crate) fn live(&self, id: impl Into<ClassNode>) -> Result<&Node, ClassError> {
        let ClassNode { node, generation } = id.into();
        let node = self.node(node);
        if node.slot.is_of(generation) { Ok(node) } else { Err(ClassError::Unknown) }
    }

    /// Changes the shares of a node that is in use.
    pub(crate) fn set_shares(&self, node: &Node, shares: u32) -> Result<(), ClassError> {
        check_shares(shares)?;
        node.set_shares(shares);
        self.note_change();
        Ok(())
    }

    /// Changes the limits of a node that is in use.
    pub(crate) fn set_limits(&self, node: &Node, limits: &Limits) -> Result<(), ClassError> {
        if !limits.is_valid() {
            return Err(ClassError::Limits(*limits));
        }
        if *limits != Limits::default() {
            self.limited.store(true, Ordering::Release);
        }
        node.limiter.set(limits);
        self.note_change();
        Ok(())
    }

    /// Removes a class for which no shard has work, or an empty group.
    pub(crate) fn remove(&self, id: impl Into<ClassNode>) -> Result<(), ClassError> {
        let ClassNode { node, generation } = id.into();
        let node = self.node(node);
        // read before another class may take the slot
        let parent = node.parent();
        node.slot.free(generation)?;
        self.node(parent).slot.leave(false);
        Ok(())
    }

    /// A node and the groups that contain it, without the root.
    #[inline]
    pub(crate) fn path(&self, id: NodeId) -> impl Iterator<Item = NodeId> {
        let below_root = |id: NodeId| (id != ROOT).then_some(id);
        core::iter::successors(below_root(id), move |&id| below_root(self.node(id).parent()))
    }

    fn add(
        &self,
        range: core::ops::Range<usize>,
        parent: Option<ClassGroupId>,
        shares: u32,
    ) -> Result<(NodeId, u16), ClassError> {
        check_shares(shares)?;
        let root = ClassGroupId { node: ROOT, generation: 0 };
        let ClassGroupId { node: parent, generation } = parent.unwrap_or(root);
        self.node(parent).slot.enter(generation)?;
        let added =
            if range.start < FIRST_CLASS && self.path(parent).count() >= CLASS_GROUP_DEPTH_MAX {
                Err(ClassError::TooDeep)
            } else {
                self.place_in(range, parent, shares)
            };
        if added.is_err() {
            self.node(parent).slot.leave(false);
        }
        added
    }

    /// Takes a free slot in `range` for a new node.
    fn place_in(
        &self,
        range: core::ops::Range<usize>,
        parent: NodeId,
        shares: u32,
    ) -> Result<(NodeId, u16), ClassError> {
        for id in range {
            let node = self.node(id as NodeId);
            if let Some(generation) = node.slot.take() {
                node.set_shares(shares);
                node.parent.store(u32::from(parent), Ordering::Release);
                node.tag_shares.store(0, Ordering::Release);
                node.limiter.set(&Limits::default());
                self.note_change();
                return Ok((id as NodeId, generation));
            }
        }
        Err(ClassError::Full)
    }
}

/// The tags of nodes when they get work and when their shares change.
impl ClassTree {
    /// Notes that one more shard has work for this class. The class cannot be removed until
    /// [`ClassTree::sleep`]. Its tag moves as in [`ClassTree::wake_group`].
    pub(crate) fn wake(&self, class: ClassId, credit: Credit) -> Result<(), ClassError> {
        let shards_before = self.node(class.node).slot.enter(class.generation)?;
        self.raise_on_wake(class.node, shards_before, credit);
        Ok(())
    }

    /// Notes that one more shard has work for this group. The first shard moves its tag up to the virtual
    /// time of its parent, less the exclusive credit. Any other shard leaves it the shared credit, as much as
    /// a shard may lead. Otherwise a node with little work on several shards would be owed more and more.
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

    /// Notes that one shard less has work for this node.
    pub(crate) fn sleep(&self, id: NodeId) {
        if Self::is_class(id) {
            self.node(id).slot.leave(self.sole);
        } else if self.sole {
            self.node(id).backlogged.store(0, Ordering::Relaxed);
        } else {
            self.node(id).backlogged.fetch_sub(1, Ordering::AcqRel);
        }
    }

    /// Moves the tag as waking does, for work that is dispatched at once and does not count as queued.
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

    /// Reduces the disk time owed to a node to at most `credit` units.
    pub(crate) fn keep_credit(&self, id: NodeId, credit: u64) {
        self.raise(id, credit, true);
    }

    /// Moves the tag of a node that could not be served up to its parent's virtual time: it earns no credit
    /// for time in which it requested nothing.
    pub(crate) fn catch_up(&self, id: NodeId) {
        self.raise(id, 0, true);
    }

    /// The disk time owed to a node, in units: how far it is behind its parent's virtual time, zero if it is
    /// not.
    pub(crate) fn owed(&self, id: NodeId) -> u64 {
        let node = self.node(id);
        node.behind(self.node(node.parent()).virtual_time())
    }

    /// Moves the tag of a node forward, so that it is at most `credit` units of disk time behind its parent's
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

    /// Rescales the tag after a change of shares, so that the node stays as much disk time ahead of its
    /// parent's virtual time. The tag of an earlier class in this slot becomes that virtual time. Shards do
    /// this, because a sole shard changes tags without atomic updates. If the node is `shared`, other shards
    /// that have it in their order insert it again.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DiskTime;

    fn tree() -> ClassTree {
        ClassTree::new(false)
    }

    #[test]
    fn limits_are_as_stated() {
        let tree = tree();
        let classes: Vec<_> = (0..CLASSES_MAX).map(|_| tree.add_class(None, 1).unwrap()).collect();
        assert_eq!(tree.add_class(None, 1), Err(ClassError::Full));
        assert_eq!(classes[CLASSES_MAX - 1].index(), CLASSES_MAX - 1);
        assert_eq!(tree.add_class(None, 0), Err(ClassError::Shares(0)));
        assert_eq!(tree.add_class(None, SHARES_MAX + 1), Err(ClassError::Shares(SHARES_MAX + 1)));
        let mut parent = None;
        for _ in 0..CLASS_GROUP_DEPTH_MAX {
            parent = Some(tree.add_class_group(parent, 1).unwrap());
        }
        assert_eq!(tree.add_class_group(parent, 1), Err(ClassError::TooDeep));
    }

    #[test]
    fn a_removed_class_is_unknown_even_when_its_slot_is_used_again() {
        let tree = tree();
        let first = tree.add_class(None, 7).unwrap();
        tree.remove(first).unwrap();
        let second = tree.add_class(None, 9).unwrap();
        assert_eq!(first.index(), second.index());
        assert_eq!(tree.live(first).unwrap_err(), ClassError::Unknown);
        assert_eq!(tree.live(second).unwrap().shares(), 9);
    }

    #[test]
    fn a_group_with_classes_stays() {
        let tree = tree();
        let group = tree.add_class_group(None, 1).unwrap();
        let class = tree.add_class(Some(group), 1).unwrap();
        assert_eq!(tree.remove(group), Err(ClassError::InUse));
        tree.remove(class).unwrap();
        tree.remove(group).unwrap();
        assert_eq!(tree.add_class(Some(group), 1), Err(ClassError::Unknown));
    }

    #[test]
    fn a_node_is_owed_the_disk_time_that_it_is_behind_whatever_its_shares() {
        let tree = tree();
        for shares in [1, 7, 100, SHARES_MAX] {
            let group = tree.add_class_group(None, shares).unwrap();
            let class = tree.add_class(Some(group), shares).unwrap();
            let parent = tree.live(group).unwrap();
            tree.catch_up(class.node());
            assert_eq!(tree.owed(class.node()), 0);
            parent.advance_virtual_time(42_000);
            assert_eq!(tree.owed(class.node()), 42_000 * u64::from(shares));
            tree.keep_credit(class.node(), 10_000 * u64::from(shares));
            assert_eq!(tree.owed(class.node()), 10_000 * u64::from(shares));
            tree.catch_up(class.node());
            tree.live(class).unwrap().charge(DiskTime::from_units(1 << 20), &mut 0);
            assert_eq!(tree.owed(class.node()), 0, "it is ahead");
        }
    }

    #[test]
    fn tiny_costs_over_large_shares_are_not_lost() {
        let tree = tree();
        let class = tree.add_class(None, SHARES_MAX).unwrap();
        let (node, mut fraction) = (tree.live(class).unwrap(), 0);
        for _ in 0..1_000_000 {
            node.charge(DiskTime::from_units(3), &mut fraction);
        }
        // 3,000,000 units over 10,000 shares
        assert!((299..=300).contains(&node.tag()), "{}", node.tag());
    }
}
