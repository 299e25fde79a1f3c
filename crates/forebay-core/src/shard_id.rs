//! The number of a shard.

/// Most shards of one group. It bounds the sets of shards, which have a bit for each, and what each
/// shard keeps of the others.
pub const SHARDS_MAX: usize = 256;

/// A shard of a group, below [`SHARDS_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShardId(pub(crate) u16);

impl ShardId {
    /// The shard's number, from zero in the order of joining.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}
