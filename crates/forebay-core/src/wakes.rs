//! Sets of shards: who asked to be woken, and whom to wake.

use crate::shard_id::{SHARDS_MAX, ShardId};
use crate::sync::{AtomicU64, Ordering};

const WORDS: usize = SHARDS_MAX / 64;
/// Of more shards than this, so many are looked at in one go.
pub(crate) const LOOKS_MAX: usize = 33;

/// One bit per shard that sleeps until room is freed in the window.
#[derive(Debug)]
pub(crate) struct Marks([AtomicU64; WORDS]);

impl Marks {
    pub(crate) fn new() -> Self {
        Self(core::array::from_fn(|_| AtomicU64::new(0)))
    }

    /// Whether any is set.
    pub(crate) fn any(&self) -> bool {
        self.0.iter().any(|marks| marks.load(Ordering::Acquire) != 0)
    }

    /// Some of those that are set, at most [`LOOKS_MAX`], beginning at a place
    /// that `turn` chooses.
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
        set.take(LOOKS_MAX)
    }

    /// Clears a mark; whether it was set.
    pub(crate) fn take(&self, shard: ShardId) -> bool {
        let (word, bit) = (shard.index() / 64, shard.index() % 64);
        self.0[word].fetch_and(!(1 << bit), Ordering::AcqRel) & (1 << bit) != 0
    }

    pub(crate) fn set(&self, shard: ShardId) {
        let (word, bit) = (shard.index() / 64, shard.index() % 64);
        self.0[word].fetch_or(1 << bit, Ordering::AcqRel);
    }

    /// Moves all marks into `wakes`.
    pub(crate) fn take_into(&self, wakes: &mut Wakes) {
        for (word, marks) in self.0.iter().enumerate() {
            if marks.load(Ordering::Acquire) != 0 {
                wakes.0[word] |= marks.swap(0, Ordering::AcqRel);
            }
        }
    }
}

/// Shards that a queue has to tell its caller to wake.
#[derive(Debug, Default)]
pub(crate) struct Wakes([u64; WORDS]);

impl Wakes {
    pub(crate) fn push(&mut self, shard: ShardId) {
        self.0[shard.index() / 64] |= 1 << (shard.index() % 64);
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
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn every_mark_comes_back_once() {
        let marks = Marks::new();
        for shard in [0, 63, 64, 255] {
            marks.set(ShardId(shard));
        }
        let mut wakes = Wakes::default();
        marks.take_into(&mut wakes);
        marks.take_into(&mut wakes);
        let woken: Vec<_> = core::iter::from_fn(|| wakes.pop()).map(ShardId::index).collect();
        assert_eq!(woken, [0, 63, 64, 255]);
    }

    #[test]
    fn of_many_that_wait_33_are_looked_at_and_all_in_turn() {
        let marks = Marks::new();
        (0..SHARDS_MAX).for_each(|shard| marks.set(ShardId(shard as u16)));
        let mut seen = [false; SHARDS_MAX];
        for turn in 0..64 {
            let looks: Vec<_> = marks.some(turn).collect();
            assert!(looks.len() <= 33, "{} in turn {turn}", looks.len());
            looks.into_iter().for_each(|shard| seen[shard.index()] = true);
        }
        assert!(seen.into_iter().all(|seen| seen), "{seen:?}");
    }
}
