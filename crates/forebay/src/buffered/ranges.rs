//! Ranges of a file, apart from each other.

use std::collections::BTreeMap;
use std::ops::Range;

/// The ends of ranges by where they begin; no two of them overlap or touch.
#[derive(Debug, Default)]
pub(super) struct Ranges {
    ends: BTreeMap<u64, u64>,
    total: u64,
}

impl Ranges {
    /// Bytes in all ranges.
    pub(super) const fn total(&self) -> u64 {
        self.total
    }

    pub(super) fn count(&self) -> usize {
        self.ends.len()
    }

    /// Adds a range. Returns the range that it is a part of now, and how many bytes are new.
    pub(super) fn insert(&mut self, range: Range<u64>) -> (Range<u64>, u64) {
        let Range { mut start, mut end } = range;
        let mut joined = 0;
        while let Some((&other, &other_end)) = self.ends.range(..=end).next_back()
            && other_end >= start
        {
            self.ends.remove(&other);
            joined += other_end - other;
            (start, end) = (start.min(other), end.max(other_end));
        }
        self.ends.insert(start, end);
        let added = end - start - joined;
        self.total += added;
        (start..end, added)
    }

    /// Takes what comes before the next multiple of `len` of the range that begins at `start`.
    pub(super) fn take(&mut self, start: u64, len: u64) -> Option<Range<u64>> {
        let end = self.ends.remove(&start)?;
        let cut = end.min(start - start % len + len);
        if cut < end {
            self.ends.insert(cut, end);
        }
        self.total -= cut - start;
        Some(start..cut)
    }

    /// The same of the first range.
    pub(super) fn take_first(&mut self, len: u64) -> Option<Range<u64>> {
        let (&start, _) = self.ends.first_key_value()?;
        self.take(start, len)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_touches_is_one() {
        let mut ranges = Ranges::default();
        assert_eq!(ranges.insert(10..20), (10..20, 10));
        assert_eq!(ranges.insert(30..40), (30..40, 10));
        assert_eq!(ranges.insert(20..30), (10..40, 10));
        assert_eq!(ranges.insert(12..13), (10..40, 0));
        assert_eq!(ranges.take(10, 8), Some(10..16));
        assert_eq!((ranges.total(), ranges.count()), (24, 1));
        assert_eq!(ranges.take(10, 8), None);
        assert_eq!(ranges.take_first(100), Some(16..40));
        assert_eq!(ranges.take_first(1), None);
    }

    proptest! {
        #[test]
        fn each_byte_is_taken_once(written in prop::collection::vec((0u64..200, 1u64..40), 1..40), len in 1u64..64) {
            let mut ranges = Ranges::default();
            let mut expected = [false; 256];
            let mut added = 0;
            for (start, len) in written {
                let (whole, new) = ranges.insert(start..start + len);
                prop_assert!(whole.start <= start && whole.end >= start + len);
                added += new;
                expected[start as usize..(start + len) as usize].fill(true);
            }
            prop_assert_eq!(added, ranges.total());
            let mut taken = [false; 256];
            while let Some(range) = ranges.take_first(len) {
                prop_assert!(range.end - range.start <= len && !range.is_empty());
                for byte in range {
                    prop_assert!(!std::mem::replace(&mut taken[byte as usize], true));
                }
            }
            prop_assert_eq!((taken, ranges.total()), (expected, 0));
        }
    }
}
