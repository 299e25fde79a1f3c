//! One class or group of classes: its name, and what all shards know of it.

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

/// Bits behind the point of a weight, which is one divided by the shares. Tags advance by cost
/// times weight. With fewer bits the weight of many shares would be rounded more.
const WEIGHT_BITS: u32 = 32;

/// What all shards know of one class or group of classes.
#[derive(Debug, Default)]
pub(crate) struct Node {
    /// Start tag of its next dispatch, in disk time per share.
    pub(super) tag: Tally,
    /// Virtual time among its children: start tag of their last dispatch.
    pub(super) virtual_time: AtomicU64,
    /// 2^32 / shares.
    weight: AtomicU64,
    pub(super) shares: AtomicU32,
    /// The shares that the tag was last stated for: what it is ahead of its
    /// parent's virtual time is disk time over these. Zero if the tag is still
    /// that of another class.
    pub(super) tag_shares: AtomicU32,
    /// Of a group, the shards that have work of it queued; those of a class are
    /// the users of its slot.
    pub(super) backlogged: AtomicU32,
    pub(super) slot: Slot,
    pub(super) parent: AtomicU32,
    pub(crate) limiter: Limiter,
}

impl Node {
    /// `sole` if a single shard uses it.
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

    /// Disk time by which it is behind `virtual_time`; zero if it is not.
    pub(crate) fn behind(&self, virtual_time: u64) -> u64 {
        ahead(virtual_time, self.tag()).saturating_mul(u64::from(self.shares()))
    }

    /// Virtual time stays while the node is idle, and does not fall: a store
    /// that crosses another shard's may set it back by their lead, until the
    /// next dispatch. That is not worth an atomic maximum per request.
    pub(crate) fn advance_virtual_time(&self, start_tag: u64) {
        if is_after(start_tag, self.virtual_time()) {
            self.virtual_time.store(start_tag, Ordering::Relaxed);
        }
    }

    /// Adds `cost / shares` to the tag and returns the tag before and after.
    /// What the division leaves over is kept in `fraction`, so that nothing is
    /// lost however small the cost and large the shares.
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

    /// Whether no shard has work of it, and nothing is in it.
    pub(crate) fn check_removable(&self) -> Result<(), ClassError> {
        if self.slot.users() == 0 { Ok(()) } else { Err(ClassError::InUse) }
    }
}

pub(super) fn check_shares(shares: u32) -> Result<(), ClassError> {
    if (1..=SHARES_MAX).contains(&shares) { Ok(()) } else { Err(ClassError::Shares(shares)) }
}

/// Encoding: One more change of hands in a place's word, above the bits of its users. The number of
/// changes is odd while the place is in use.
const CHANGE: u64 = 1 << 32;
/// Encoding: The bits of a place's word that count its users.
const USERS: u64 = CHANGE - 1;

/// A place in the tree. One word says how often it changed hands and how many
/// users keep it, so that removing it and starting to use it cannot pass each
/// other: of a class the shards that have work of it, of a group what is in it.
#[derive(Debug, Default)]
pub(super) struct Slot {
    word: AtomicU64,
}

impl Slot {
    /// Whether it is in use by who was given it with this generation.
    pub(super) fn is_of(&self, generation: u16) -> bool {
        is_of(self.word.load(Ordering::Acquire), generation)
    }

    pub(super) fn users(&self) -> u64 {
        self.word.load(Ordering::Acquire) & USERS
    }

    /// One more user, who keeps it from being removed; how many there were.
    pub(super) fn enter(&self, generation: u16) -> Result<u64, ClassError> {
        let entered = self.update(|word| is_of(word, generation).then(|| word + 1));
        entered.map(|word| word & USERS).map_err(|_| ClassError::Unknown)
    }

    /// One user less; `sole` if there can be one only, as nobody else changes
    /// the word while it is there.
    pub(super) fn leave(&self, sole: bool) {
        debug_assert!(self.users() > 0, "who leaves has entered");
        if sole {
            self.word.store(self.word.load(Ordering::Relaxed) - 1, Ordering::Release);
        } else {
            self.word.fetch_sub(1, Ordering::AcqRel);
        }
    }

    /// Takes it if it is free; the generation with which it is taken.
    pub(super) fn take(&self) -> Option<u16> {
        let free = self.update(|word| (!in_use(word)).then(|| word.wrapping_add(CHANGE)));
        free.ok().map(|word| generation(word.wrapping_add(CHANGE)))
    }

    /// Frees it if nobody uses it.
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
