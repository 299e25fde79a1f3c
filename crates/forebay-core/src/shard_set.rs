//! The numbers of shards, and sets of shards, as one bit for each.

use crate::sync::{AtomicU64, Ordering};

/// The most shards of one group. It bounds the sets of shards, with one bit for each, and the state
/// that each shard keeps about the others.
pub const SHARDS_MAX: usize = 256;

/// The number of a shard in its group, below [`SHARDS_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShardId(pub(crate) u16);

impl ShardId {
    /// The number, from zero in the order of joining. A number that has become free is used again.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Encoding: The words of a set of shards, with a bit for each.
const WORDS: usize = SHARDS_MAX / 64;
/// The shards that are checked for one request. If there are more, the next request checks others. So a
/// request costs about the same among few and many shards. With fewer, a lead over others is noticed
/// later.
pub(crate) const STEP_SHARDS_MAX: usize = 33;

/// A set of shards that is shared by all shards of a group.
#[derive(Debug, Default)]
pub(crate) struct ShardSet([AtomicU64; WORDS]);

impl ShardSet {
    /// Whether the set is not empty.
    pub(crate) fn any(&self) -> bool {
        self.0.iter().any(|bits| bits.load(Ordering::Acquire) != 0)
    }

    /// Some of the shards, at most [`STEP_SHARDS_MAX`]; `turn` chooses where to start.
    pub(crate) fn some(&self, turn: usize) -> impl Iterator<Item = ShardId> {
        let first = turn % 64;
        let words = (0..WORDS).map(move |word| (word + first) % WORDS);
        let set = words.flat_map(move |word| {
            let mut rest = self.0[word].load(Ordering::Acquire).rotate_right(first as u32);
            core::iter::from_fn(move || {
                let bit = (rest != 0).then(|| rest.trailing_zeros() as usize)?;
                rest &= rest - 1;
                Some(ShardId((word * 64 + (bit + first) % 64) as u16))
            })
        });
        set.take(STEP_SHARDS_MAX)
    }

    /// Whether the set has a shard for which `counts` returns true.
    pub(crate) fn any_of(&self, counts: impl Fn(ShardId) -> bool) -> bool {
        self.0.iter().enumerate().any(|(word, bits)| {
            let mut bits = bits.load(Ordering::Acquire);
            while bits != 0 {
                let shard = word * 64 + bits.trailing_zeros() as usize;
                if counts(ShardId(shard as u16)) {
                    return true;
                }
                bits &= bits - 1;
            }
            false
        })
    }

    /// Removes a shard. Returns whether it was in the set.
    pub(crate) fn remove(&self, shard: ShardId) -> bool {
        let (word, bit) = (shard.index() / 64, shard.index() % 64);
        self.0[word].fetch_and(!(1 << bit), Ordering::AcqRel) & (1 << bit) != 0
    }

    pub(crate) fn insert(&self, shard: ShardId) {
        let (word, bit) = (shard.index() / 64, shard.index() % 64);
        self.0[word].fetch_or(1 << bit, Ordering::AcqRel);
    }

    /// Inserts a shard into the set, or removes it.
    pub(crate) fn set(&self, shard: ShardId, is_in: bool) {
        if is_in {
            self.insert(shard);
        } else {
            self.remove(shard);
        }
    }

    /// Moves all shards of the set into `wakes`.
    pub(crate) fn take_into(&self, wakes: &mut WakeList) {
        for (word, bits) in self.0.iter().enumerate() {
            if bits.load(Ordering::Acquire) != 0 {
                wakes.0[word] |= bits.swap(0, Ordering::AcqRel);
            }
        }
    }
}

/// The shards that the owner of a queue is to wake.
#[derive(Debug, Default)]
pub(crate) struct WakeList([u64; WORDS]);

impl WakeList {
    pub(crate) fn push(&mut self, shard: ShardId) {
        self.0[shard.index() / 64] |= 1 << (shard.index() % 64);
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.0 == [0; WORDS]
    }

    pub(crate) fn pop(&mut self) -> Option<ShardId> {
        let (word, bits) = self.0.iter_mut().enumerate().find(|(_, bits)| **bits != 0)?;
        let bit = bits.trailing_zeros();
        *bits &= *bits - 1;
        Some(ShardId((word * 64) as u16 + bit as u16))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn every_shard_comes_back_once() {
        let set = ShardSet::default();
        for shard in [0, 63, 64, 255] {
            set.insert(ShardId(shard));
        }
        let mut wakes = WakeList::default();
        set.take_into(&mut wakes);
        set.take_into(&mut wakes);
        let woken: Vec<_> = core::iter::from_fn(|| wakes.pop()).map(ShardId::index).collect();
        assert_eq!(woken, [0, 63, 64, 255]);
    }

    #[test]
    fn of_many_shards_33_are_in_one_step_and_all_in_turn() {
        let set = ShardSet::default();
        (0..SHARDS_MAX).for_each(|shard| set.insert(ShardId(shard as u16)));
        let mut found = [false; SHARDS_MAX];
        for turn in 0..64 {
            let step: Vec<_> = set.some(turn).collect();
            assert!(step.len() <= 33, "{} in turn {turn}", step.len());
            step.into_iter().for_each(|shard| found[shard.index()] = true);
        }
        assert!(found.into_iter().all(|found| found), "{found:?}");
    }

    #[test]
    fn a_shard_is_in_the_set_until_it_is_removed() {
        let set = ShardSet::default();
        assert!(!set.any() && !set.any_of(|_| true));
        for shard in [3, 64, 255] {
            set.insert(ShardId(shard));
        }
        assert!(set.remove(ShardId(3)) && !set.remove(ShardId(3)));
        assert!(set.any_of(|shard| shard == ShardId(255)));
        assert!(set.any() && !set.any_of(|shard| shard == ShardId(3)));
    }
}
