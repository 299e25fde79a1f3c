//! One class or group of classes: its id, and the state that all shards share.

use core::fmt;

use crate::DiskTime;
use crate::limit::{Limiter, Limits};
use crate::sync::{AtomicU32, AtomicU64, Ordering, Tally};
use crate::tag::{STEP_MAX, ahead, is_after};

/// Most classes of one I/O group, and so of a scheduler. It bounds the tables of classes that each
/// shard has.
pub const CLASSES_MAX: usize = 1024;
/// Most groups of classes of one I/O group, and so of a scheduler. With the root they are 128
/// nodes, each with an order of its children on each shard.
pub const CLASS_GROUPS_MAX: usize = 127;
/// Most levels of nested groups of classes. It bounds the nodes that each request is charged to.
pub const CLASS_GROUP_DEPTH_MAX: usize = 3;
/// Most shares of a class or a group of classes; the fewest are 1. Up to this number the weight of
/// a share is exact to 0.0003 %.
pub const SHARES_MAX: u32 = 10_000;

/// Most levels from the root to a class, both included. It follows from the depth of groups, and bounds the
/// loops over a class and its parents.
pub(crate) const LEVELS_MAX: usize = CLASS_GROUP_DEPTH_MAX + 2;
/// The root: the parent of all classes and groups that are in no group.
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
    /// A number below [`CLASSES_MAX`], unique among the present classes of the I/O group. It may index tables
    /// that the caller keeps.
    pub fn index(self) -> usize {
        usize::from(self.node) - FIRST_CLASS
    }

    /// A number other than zero that no earlier class of the I/O group had. It repeats after 65,536 classes
    /// in the same slot.
    pub const fn to_bits(self) -> u32 {
        (self.node as u32) << 16 | self.generation as u32
    }

    /// The class with this number from [`ClassId::to_bits`]; `None` for zero.
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
    /// A limit of zero, or above [`IOPS_MAX`](crate::IOPS_MAX) or [`BANDWIDTH_MAX`](crate::BANDWIDTH_MAX).
    Limits(Limits),
    /// All [`CLASSES_MAX`] classes or [`CLASS_GROUPS_MAX`] groups are in use.
    Full,
    /// The class or group was removed earlier.
    Unknown,
    /// Groups would nest deeper than [`CLASS_GROUP_DEPTH_MAX`].
    TooDeep,
    /// The class has work queued, or the group has members.
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

/// Fraction bits of a weight, which is one divided by the shares. Tags advance by cost times weight. With
/// fewer bits, the weight of many shares would be rounded more.
const WEIGHT_BITS: u32 = 32;

/// The state of one class or group of classes that all shards share.
#[derive(Debug, Default)]
pub(crate) struct Node {
    /// Start tag of its next dispatch, in disk time per share.
    pub(super) tag: Tally,
    /// Virtual time of its children: start tag of their last dispatch.
    pub(super) virtual_time: AtomicU64,
    /// 2^32 / shares.
    weight: AtomicU64,
    pub(super) shares: AtomicU32,
    /// The shares that the tag is scaled by: its distance from the parent's virtual time is disk time divided
    /// by them. Zero if the tag is still that of an earlier class in this slot.
    pub(super) tag_shares: AtomicU32,
    /// The number of shards with queued work for a group. For a class it is the number of users of its slot.
    pub(super) backlogged: AtomicU32,
    pub(super) slot: Slot,
    pub(super) parent: AtomicU32,
    pub(crate) limiter: Limiter,
}

impl Node {
    /// `sole` is true if a single shard uses it.
    pub(super) fn new(sole: bool) -> Self {
        Self {
            tag: Tally::new(sole),
            weight: AtomicU64::new(1 << WEIGHT_BITS),
            shares: AtomicU32::new(1),
            ..Self::default()
        }
    }

    pub(crate) fn tag(&self) -> u64 {
        self.tag.load(Ordering::Relaxed)
    }

    pub(crate) fn shares(&self) -> u32 {
        self.shares.load(Ordering::Relaxed)
    }

    pub(crate) fn parent(&self) -> NodeId {
        self.parent.load(Ordering::Relaxed) as NodeId
    }

    pub(crate) fn virtual_time(&self) -> u64 {
        self.virtual_time.load(Ordering::Relaxed)
    }

    /// Disk time by which it is behind `virtual_time`, in units; zero if it is not.
    pub(crate) fn behind(&self, virtual_time: u64) -> u64 {
        ahead(virtual_time, self.tag()).saturating_mul(u64::from(self.shares()))
    }

    /// Moves virtual time forward to `start_tag`. It does not move while the node is idle. Two shards that
    /// store at once may set it back by their lead, until the next dispatch. That is not worth an atomic
    /// maximum for each request.
    pub(crate) fn advance_virtual_time(&self, start_tag: u64) {
        if is_after(start_tag, self.virtual_time()) {
            self.virtual_time.store(start_tag, Ordering::Relaxed);
        }
    }

    /// Adds `cost / shares` to the tag, and returns the tag before and after. `fraction` keeps the remainder
    /// of the division. So nothing is lost, however small the cost and large the shares.
    pub(crate) fn charge(&self, cost: DiskTime, fraction: &mut u32) -> (u64, u64) {
        let weight = self.weight.load(Ordering::Relaxed);
        let scaled = u128::from(cost.units()) * u128::from(weight) + u128::from(*fraction);
        *fraction = scaled as u32;
        let step = u64::try_from(scaled >> WEIGHT_BITS).unwrap_or(u64::MAX).min(STEP_MAX);
        let start = self.tag.fetch_add(step, Ordering::Relaxed);
        (start, start.wrapping_add(step))
    }

    pub(super) fn set_shares(&self, shares: u32) {
        self.shares.store(shares, Ordering::Relaxed);
        self.weight.store((1 << WEIGHT_BITS) / u64::from(shares), Ordering::Relaxed);
    }

    /// Fails if a shard has work for the class, or the group has members.
    pub(crate) fn check_removable(&self) -> Result<(), ClassError> {
        if self.slot.users() == 0 { Ok(()) } else { Err(ClassError::InUse) }
    }
}

pub(super) fn check_shares(shares: u32) -> Result<(), ClassError> {
    if (1..=SHARES_MAX).contains(&shares) { Ok(()) } else { Err(ClassError::Shares(shares)) }
}

/// Encoding: One allocation or release in the word of a slot, above the bits of its users. Their number is
/// odd while the slot is in use.
const CHANGE: u64 = 1 << 32;
/// Encoding: The bits of a slot's word that count its users.
const USERS: u64 = CHANGE - 1;

/// A slot of the tree. One word holds the number of its allocations and releases, and the number of its
/// users. Users are the shards with work for a class, or the members of a group. Because it is one word, a
/// removal and the first use cannot both succeed.
#[derive(Debug, Default)]
pub(super) struct Slot {
    word: AtomicU64,
}

impl Slot {
    /// Whether the slot is in use, with this generation.
    pub(super) fn is_of(&self, generation: u16) -> bool {
        is_of(self.word.load(Ordering::Acquire), generation)
    }

    pub(super) fn users(&self) -> u64 {
        self.word.load(Ordering::Acquire) & USERS
    }

    /// Adds a user, so that the slot cannot be freed. Returns the number of users before.
    pub(super) fn enter(&self, generation: u16) -> Result<u64, ClassError> {
        let entered = self.update(|word| is_of(word, generation).then(|| word + 1));
        entered.map(|word| word & USERS).map_err(|_| ClassError::Unknown)
    }

    /// Removes a user. `sole` is true if there can be only one: then no other thread changes the word while
    /// that user is there.
    pub(super) fn leave(&self, sole: bool) {
        debug_assert!(self.users() > 0, "who leaves has entered");
        if sole {
            self.word.store(self.word.load(Ordering::Relaxed) - 1, Ordering::Release);
        } else {
            self.word.fetch_sub(1, Ordering::AcqRel);
        }
    }

    /// Takes the slot if it is free. Returns its new generation.
    pub(super) fn take(&self) -> Option<u16> {
        let free = self.update(|word| (!in_use(word)).then(|| word.wrapping_add(CHANGE)));
        free.ok().map(|word| generation(word.wrapping_add(CHANGE)))
    }

    /// Frees the slot if it has no users.
    pub(super) fn free(&self, generation: u16) -> Result<(), ClassError> {
        let is_unused = |word| is_of(word, generation) && word & USERS == 0;
        match self.update(|word| is_unused(word).then(|| word.wrapping_add(CHANGE))) {
            Ok(_) => Ok(()),
            Err(word) if is_of(word, generation) => Err(ClassError::InUse),
            Err(_) => Err(ClassError::Unknown),
        }
    }

    fn update(&self, change: impl Fn(u64) -> Option<u64>) -> Result<u64, u64> {
        self.word.fetch_update(Ordering::AcqRel, Ordering::Relaxed, change)
    }
}

fn in_use(word: u64) -> bool {
    word & CHANGE != 0
}

fn generation(word: u64) -> u16 {
    (word >> (CHANGE.trailing_zeros() + 1)) as u16
}

fn is_of(word: u64, by: u16) -> bool {
    in_use(word) && generation(word) == by
}
