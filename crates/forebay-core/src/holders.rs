//! On which shards a holder waits: until it has gone, the window binds nobody, or
//! is larger if a limit holds it back.

use crate::shard_id::{SHARDS_MAX, ShardId};
use crate::sync::{AtomicU64, Ordering};

const WORDS: usize = SHARDS_MAX / 64;

/// One bit per shard, which that shard alone changes.
#[derive(Debug)]
pub(crate) struct Holders([AtomicU64; WORDS]);

impl Holders {
    pub(crate) fn new() -> Self {
        Self(core::array::from_fn(|_| AtomicU64::new(0)))
    }

    /// Says whether one waits on `shard`.
    pub(crate) fn set(&self, shard: ShardId, waits: bool) {
        let (word, bit) = (&self.0[shard.index() / 64], 1 << (shard.index() % 64));
        if waits {
            word.fetch_or(bit, Ordering::AcqRel);
        } else {
            word.fetch_and(!bit, Ordering::AcqRel);
        }
    }

    /// Whether one waits on a shard that `counts`.
    pub(crate) fn any(&self, counts: impl Fn(ShardId) -> bool) -> bool {
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shard_counts_from_when_it_says_so_until_it_takes_that_back() {
        let holders = Holders::new();
        assert!(!holders.any(|_| true));
        for shard in [3, 64, 255] {
            holders.set(ShardId(shard), true);
        }
        holders.set(ShardId(3), false);
        assert!(holders.any(|shard| shard == ShardId(255)));
        assert!(!holders.any(|shard| shard == ShardId(3)));
    }
}
