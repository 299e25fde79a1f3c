//! The priority classes of a group and what they have used: shared by all shards.

mod node;
mod slot;
mod tags;

use alloc::vec::Vec;
use core::fmt;

pub(crate) use node::Node;
use node::check_shares;
pub(crate) use tags::Credit;

use crate::DiskTime;
use crate::limit::Limits;
use crate::sync::{AtomicBool, AtomicU64, Ordering, Padded};

/// Most classes of one I/O group, and so of a scheduler.
pub const CLASSES_MAX: usize = 1024;
/// Most groups of classes of one I/O group, and so of a scheduler.
pub const CLASS_GROUPS_MAX: usize = 127;
/// Groups of classes nest at most this deep.
pub const CLASS_GROUP_DEPTH_MAX: usize = 3;
/// Most shares of a class or a group of classes; the fewest are 1.
pub const SHARES_MAX: u32 = 10_000;

/// Levels from the root to a class, both counted.
pub(crate) const LEVELS_MAX: usize = CLASS_GROUP_DEPTH_MAX + 2;
/// The root: parent of all classes and groups that have no other.
pub(crate) const ROOT: NodeId = 0;
const NODES_MAX: usize = 1 + CLASS_GROUPS_MAX + CLASSES_MAX;
const FIRST_CLASS: usize = 1 + CLASS_GROUPS_MAX;

/// Position of a class or group of classes in the tree.
pub(crate) type NodeId = u16;

/// A priority class of an I/O group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ClassId {
    node: NodeId,
    generation: u16,
}

/// A group of classes, which competes as one with its siblings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ClassGroupId {
    node: NodeId,
    generation: u16,
}

impl ClassId {
    /// A small number, below [`CLASSES_MAX`], unique among the group's present
    /// classes: for tables kept beside the scheduler.
    pub fn index(self) -> usize {
        usize::from(self.node) - FIRST_CLASS
    }

    /// A number that no other class of the group had before, up to 65,536
    /// classes in the same place.
    pub const fn to_bits(self) -> u32 {
        (self.node as u32) << 16 | self.generation as u32
    }

    /// The class of [`ClassId::to_bits`]; `None` for zero, which is none's.
    pub(crate) const fn from_bits(bits: u32) -> Option<Self> {
        let (node, generation) = ((bits >> 16) as NodeId, bits as u16);
        if bits == 0 { None } else { Some(Self { node, generation }) }
    }

    pub(crate) fn index_of(node: NodeId) -> usize {
        usize::from(node) - FIRST_CLASS
    }

    pub(crate) fn node(self) -> NodeId {
        self.node
    }
}

/// Why a class or group of classes could not be made, changed or removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClassError {
    /// Shares outside `1..=SHARES_MAX`.
    Shares(u32),
    /// A limit of zero, or above what any disk does.
    Limits(Limits),
    /// All [`CLASSES_MAX`] classes or [`CLASS_GROUPS_MAX`] groups are in use.
    Full,
    /// The class or group was removed earlier.
    Unknown,
    /// Groups would nest deeper than [`CLASS_GROUP_DEPTH_MAX`].
    TooDeep,
    /// It still has work queued, or classes in it.
    InUse,
}

impl fmt::Display for ClassError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shares(shares) => write!(f, "{shares} shares: give 1 to {SHARES_MAX}"),
            Self::Limits(limits) => {
                write!(f, "{limits:?}: give at least 1 per second, or no limit at all")
            }
            Self::Full => {
                write!(f, "no room: at most {CLASSES_MAX} classes and {CLASS_GROUPS_MAX} groups")
            }
            Self::Unknown => write!(f, "the class was removed earlier"),
            Self::TooDeep => write!(f, "groups of classes nest {CLASS_GROUP_DEPTH_MAX} deep"),
            Self::InUse => write!(
                f,
                "the class still has work queued, or the group has classes: wait for the work, or \
                 cancel it, and remove the classes first"
            ),
        }
    }
}

impl core::error::Error for ClassError {}

/// All classes and groups of classes of one I/O group.
#[derive(Debug)]
pub(crate) struct ClassTree {
    nodes: Vec<Padded<Node>>,
    idle_credit: DiskTime,
    /// A single shard uses it.
    sole: bool,
    /// Whether any node ever had limits.
    limited: AtomicBool,
    /// How often something changed that no shard may take for as it was.
    changes: Padded<AtomicU64>,
}

impl ClassTree {
    /// `sole` if a single shard uses it.
    pub(crate) fn new(idle_credit: DiskTime, sole: bool) -> Self {
        Self::with_nodes(NODES_MAX, idle_credit, sole)
    }

    /// A tree with room for so many classes only.
    #[cfg(all(test, loom))]
    pub(crate) fn small(classes: usize, sole: bool) -> Self {
        Self::with_nodes(FIRST_CLASS + classes, DiskTime::ZERO, sole)
    }

    fn with_nodes(nodes: usize, idle_credit: DiskTime, sole: bool) -> Self {
        let nodes: Vec<_> = (0..nodes).map(|_| Padded(Node::new(sole))).collect();
        let _root = nodes[usize::from(ROOT)].0.slot.take();
        let (limited, changes) = (AtomicBool::new(false), Padded(AtomicU64::new(0)));
        Self { nodes, idle_credit, sole, limited, changes }
    }

    /// Nodes that hold others: the root and the groups of classes.
    pub(crate) const GROUP_NODES: usize = FIRST_CLASS;
    /// All nodes.
    pub(crate) const NODES: usize = NODES_MAX;

    /// How often tags may have moved back, limits opened, classes or shards
    /// come and gone: whoever finds another number than before looks again.
    pub(crate) fn changes(&self) -> u64 {
        self.changes.0.load(Ordering::Acquire)
    }

    pub(crate) fn note_change(&self) {
        self.changes.0.fetch_add(1, Ordering::AcqRel);
    }

    /// Whether limits may be found, by who follows [`ClassTree::changes`].
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

    pub(crate) fn class(&self, id: ClassId) -> Result<&Node, ClassError> {
        self.live(id.node, id.generation)
    }

    pub(crate) fn class_group(&self, id: ClassGroupId) -> Result<&Node, ClassError> {
        self.live(id.node, id.generation)
    }

    /// Other shares, of a node that is in use.
    pub(crate) fn set_shares(&self, node: &Node, shares: u32) -> Result<(), ClassError> {
        check_shares(shares)?;
        node.set_shares(shares);
        self.note_change();
        Ok(())
    }

    /// Other limits, of a node that is in use.
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

    /// Removes a class that no shard has work of.
    pub(crate) fn remove_class(&self, id: ClassId) -> Result<(), ClassError> {
        self.remove(id.node, id.generation)
    }

    pub(crate) fn remove_class_group(&self, id: ClassGroupId) -> Result<(), ClassError> {
        self.remove(id.node, id.generation)
    }

    fn remove(&self, id: NodeId, generation: u16) -> Result<(), ClassError> {
        let node = self.node(id);
        // read before the place may be given to another
        let parent = node.parent();
        node.slot.free(generation)?;
        self.node(parent).slot.leave(false);
        Ok(())
    }

    fn live(&self, id: NodeId, generation: u16) -> Result<&Node, ClassError> {
        let node = self.node(id);
        if node.slot.is_of(generation) { Ok(node) } else { Err(ClassError::Unknown) }
    }

    /// Groups from this one, itself counted, up to the root, which is not.
    fn depth(&self, group: NodeId) -> usize {
        let above = |&id: &NodeId| (id != ROOT).then(|| self.node(id).parent());
        core::iter::successors(Some(group), above).take_while(|&id| id != ROOT).count()
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
        let added = if range.start < FIRST_CLASS && self.depth(parent) >= CLASS_GROUP_DEPTH_MAX {
            Err(ClassError::TooDeep)
        } else {
            self.place_in(range, parent, shares)
        };
        if added.is_err() {
            self.node(parent).slot.leave(false);
        }
        added
    }

    /// Gives away a free place.
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
                node.stated_for.store(0, Ordering::Release);
                node.limiter.set(&Limits::default());
                self.note_change();
                return Ok((id as NodeId, generation));
            }
        }
        Err(ClassError::Full)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree() -> ClassTree {
        ClassTree::new(DiskTime::ZERO, false)
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
        tree.remove_class(first).unwrap();
        let second = tree.add_class(None, 9).unwrap();
        assert_eq!(first.index(), second.index());
        assert_eq!(tree.class(first).unwrap_err(), ClassError::Unknown);
        assert_eq!(tree.class(second).unwrap().shares(), 9);
    }

    #[test]
    fn a_group_with_classes_stays() {
        let tree = tree();
        let group = tree.add_class_group(None, 1).unwrap();
        let class = tree.add_class(Some(group), 1).unwrap();
        assert_eq!(tree.remove_class_group(group), Err(ClassError::InUse));
        tree.remove_class(class).unwrap();
        tree.remove_class_group(group).unwrap();
        assert_eq!(tree.add_class(Some(group), 1), Err(ClassError::Unknown));
    }

    #[test]
    fn tiny_costs_over_large_shares_are_not_lost() {
        let tree = tree();
        let class = tree.add_class(None, SHARES_MAX).unwrap();
        let (node, mut fraction) = (tree.class(class).unwrap(), 0);
        for _ in 0..1_000_000 {
            node.charge(DiskTime::from_units(3), &mut fraction);
        }
        // 3,000,000 units over 10,000 shares
        assert!((299..=300).contains(&node.tag()), "{}", node.tag());
    }
}
