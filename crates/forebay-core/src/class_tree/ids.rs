//! The names of classes and of groups of classes.
use crate::limit::Limits;
use core::fmt;

/// Most classes of one I/O group, and so of a scheduler. It bounds the tables of classes that each
/// shard has.
pub const CLASSES_MAX: usize = 1024;
/// Most groups of classes of one I/O group, and so of a scheduler. With the root they are 128
/// nodes, each with an order of its children on each shard.
pub const CLASS_GROUPS_MAX: usize = 127;
/// Most levels of groups of classes within each other. It bounds the nodes that each request is
/// charged to.
pub const CLASS_GROUP_DEPTH_MAX: usize = 3;
/// Most shares of a class or a group of classes; the fewest are 1. Up to this number the weight of
/// a share is exact to 0.0003 %.
pub const SHARES_MAX: u32 = 10_000;

/// Most levels from the root to a class, both counted. It follows from the depth of groups, and
/// bounds the loops over a class and its parents.
pub(crate) const LEVELS_MAX: usize = CLASS_GROUP_DEPTH_MAX + 2;
/// The root: parent of all classes and groups that have no other.
pub(crate) const ROOT: NodeId = 0;
/// Most nodes of the tree: the root, the groups and the classes. It bounds the tables of nodes.
pub(super) const NODES_MAX: usize = 1 + CLASS_GROUPS_MAX + CLASSES_MAX;
/// Position of the first class in the tree: the root and the groups are before it.
pub(super) const FIRST_CLASS: usize = 1 + CLASS_GROUPS_MAX;

/// Position of a class or group of classes in the tree.
pub(crate) type NodeId = u16;

/// A priority class of an I/O group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ClassId {
    pub(super) node: NodeId,
    pub(super) generation: u16,
}

/// A group of classes, which competes as one with its siblings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ClassGroupId {
    pub(super) node: NodeId,
    pub(super) generation: u16,
}

/// A class or a group of classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ClassNode {
    pub(super) node: NodeId,
    pub(super) generation: u16,
}

impl From<ClassId> for ClassNode {
    fn from(ClassId { node, generation }: ClassId) -> Self {
        Self { node, generation }
    }
}

impl From<ClassGroupId> for ClassNode {
    fn from(ClassGroupId { node, generation }: ClassGroupId) -> Self {
        Self { node, generation }
    }
}

impl ClassId {
    /// A small number, below [`CLASSES_MAX`], unique among the group's present
    /// classes: for tables kept alongside the scheduler.
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
#[derive(Clone, Copy, PartialEq, Eq)]
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

crate::error_text::debug_as_display!(ClassError);

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
            Self::TooDeep => write!(
                f,
                "the group would be too deep: groups of classes nest at most {CLASS_GROUP_DEPTH_MAX} deep"
            ),
            Self::InUse => write!(
                f,
                "the class still has work queued, or the group has classes: wait for the work, or \
                 cancel it, and remove the classes first"
            ),
        }
    }
}

impl core::error::Error for ClassError {}
