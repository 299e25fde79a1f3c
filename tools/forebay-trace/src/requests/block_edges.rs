//! Reads of blocks that a write then covers only in part: read, modify, write.

use std::collections::VecDeque;
use std::ops::Range;
use std::time::Duration;

/// A read so long before the write belongs to it.
const BEFORE: Duration = Duration::from_millis(100);

/// As many reads are remembered.
const READS_MAX: usize = 256;

/// Writes that begin or end inside of a block, and the reads before them.
#[derive(Clone, Debug)]
pub(super) struct BlockEdges {
    block: u64,
    recent: VecDeque<(Duration, Range<u64>)>,
    /// Writes whose first or last block had just been read.
    pub(super) writes: u64,
}

impl BlockEdges {
    pub(super) fn new(block: u64) -> Self {
        Self { block, recent: VecDeque::new(), writes: 0 }
    }

    pub(super) fn read(&mut self, time: Duration, range: Range<u64>) {
        if self.recent.len() >= READS_MAX {
            self.recent.pop_front();
        }
        self.recent.push_back((time, range));
    }

    /// Whether a request begins or ends inside of a block.
    pub(super) fn is_misaligned(&self, range: &Range<u64>) -> bool {
        !range.start.is_multiple_of(self.block) || !range.end.is_multiple_of(self.block)
    }

    pub(super) fn write(&mut self, time: Duration, range: &Range<u64>) {
        if !self.is_misaligned(range) {
            return;
        }
        let edges = [range.start, range.end].map(|at| (at % self.block, at - at % self.block));
        let is_read = |read: &(Duration, Range<u64>)| {
            time.saturating_sub(read.0) <= BEFORE
                && edges.iter().any(|&(inside, block)| {
                    inside > 0
                        && read.1.start < block.saturating_add(self.block)
                        && block < read.1.end
                })
        };
        self.writes += u64::from(self.recent.iter().any(is_read));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_of_the_blocks_at_both_ends_of_a_misaligned_write_count() {
        let millis = Duration::from_millis;
        for (read, at, write, counts) in [
            (0..4096, 10, 1024..4096, true),
            (0..4096, 10, 0..4096, false),
            (0..4096, 10, 4096..5120, false),
            (8192..12_288, 10, 1024..9216, true),
            // what lies between both ends is written whole
            (4096..8192, 10, 1024..9216, false),
            (0..4096, 200, 1024..4096, false),
        ] {
            let mut edges = BlockEdges::new(4096);
            edges.read(millis(0), read.clone());
            edges.write(millis(at), &write);
            assert_eq!(edges.writes, u64::from(counts), "{read:?} {write:?}");
        }
        let mut edges = BlockEdges::new(4096);
        (0..10_000).for_each(|n| edges.read(millis(0), n * 4096..n * 4096 + 512));
        assert_eq!(edges.recent.len(), READS_MAX);
    }
}
