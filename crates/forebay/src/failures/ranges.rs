//! Sets of ranges of a file.

use std::collections::BTreeMap;
use std::ops::Range;

/// The ends of the ranges by their beginnings. No two ranges overlap or touch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ranges {
    ends: BTreeMap<u64, u64>,
    total: u64,
}

impl Ranges {
    /// The number of bytes in all ranges.
    pub(crate) const fn total(&self) -> u64 {
        self.total
    }

    pub(crate) fn count(&self) -> usize {
        self.ends.len()
    }

    /// Adds a range. Returns the range that now contains it, and the number of new bytes.
    pub(crate) fn insert(&mut self, range: Range<u64>) -> (Range<u64>, u64) {
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

    /// Removes the part of the range at `start` up to the next multiple of `len`, and returns it.
    pub(crate) fn take(&mut self, start: u64, len: u64) -> Option<Range<u64>> {
        let end = self.ends.remove(&start)?;
        let cut = end.min(start - start % len + len);
        if cut < end {
            self.ends.insert(cut, end);
        }
        self.total -= cut - start;
        Some(start..cut)
    }

    /// Adds all ranges of another set.
    pub(crate) fn extend(&mut self, other: &Self) {
        for range in other.iter() {
            self.insert(range);
        }
    }

    /// Removes a range. Returns the parts of it that were in the set.
    pub(crate) fn remove(&mut self, range: &Range<u64>) -> Self {
        let mut removed = Self::default();
        while let Some((&start, &end)) = self.ends.range(..range.end).next_back()
            && end > range.start
            && !range.is_empty()
        {
            self.ends.remove(&start);
            let (cut_start, cut_end) = (start.max(range.start), end.min(range.end));
            if start < cut_start {
                self.ends.insert(start, cut_start);
            }
            if cut_end < end {
                self.ends.insert(cut_end, end);
            }
            self.total -= cut_end - cut_start;
            removed.insert(cut_start..cut_end);
        }
        removed
    }

    /// Removes all ranges of another set.
    pub(crate) fn subtract(&mut self, other: &Self) {
        other.iter().for_each(|range| drop(self.remove(&range)));
    }

    /// The parts of a range that are in the set.
    pub(crate) fn within(&self, range: &Range<u64>) -> Self {
        let before = self.ends.range(..=range.start).next_back();
        let after = self.ends.range(range.start..range.end.max(range.start));
        let mut found = Self::default();
        for (&start, &end) in before.into_iter().chain(after) {
            let cut = start.max(range.start)..end.min(range.end);
            if !cut.is_empty() {
                found.insert(cut);
            }
        }
        found
    }

    /// Reduces the set to at most `count` ranges, by joining those with the smallest gaps.
    pub(crate) fn join(&mut self, count: usize) {
        let Some(surplus) = self.ends.len().checked_sub(count.max(1)).filter(|n| *n > 0) else {
            return;
        };
        let next = self.ends.keys().skip(1);
        let between = |(next, (_, end)): (&u64, (&u64, &u64))| (next - end, *end, *next);
        let mut gaps: Vec<_> = next.zip(&self.ends).map(between).collect();
        gaps.select_nth_unstable(surplus - 1);
        for (_, end, next) in gaps.into_iter().take(surplus) {
            self.insert(end..next);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        self.ends.iter().map(|(&start, &end)| start..end)
    }

    /// [`Self::take`] for the first range.
    pub(crate) fn take_first(&mut self, len: u64) -> Option<Range<u64>> {
        let (&start, _) = self.ends.first_key_value()?;
        self.take(start, len)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn adjacent_ranges_are_merged() {
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

    #[test]
    fn the_nearest_ranges_are_merged() {
        let mut ranges = Ranges::default();
        for start in [0u64, 20, 25, 100, 103] {
            ranges.insert(start..start + 2);
        }
        ranges.join(9);
        assert_eq!(ranges.count(), 5);
        ranges.join(3);
        assert_eq!(ranges.iter().collect::<Vec<_>>(), [0..2, 20..27, 100..105]);
        assert_eq!(ranges.total(), 14);
        ranges.join(0);
        assert_eq!((ranges.take_first(1 << 20), ranges.count()), (Some(0..105), 0));
    }

    proptest! {
        #[test]
        fn sets_of_bytes_are_what_is_left_and_what_is_taken(
            steps in prop::collection::vec((any::<bool>(), 0u64..200, 0u64..40), 1..60),
            looked_at in (0u64..200, 0u64..60),
        ) {
            let mut ranges = Ranges::default();
            let mut expected = [false; 260];
            let bytes = |ranges: &Ranges| {
                let mut bytes = [false; 260];
                ranges.iter().for_each(|r| bytes[r.start as usize..r.end as usize].fill(true));
                bytes
            };
            for (adds, start, len) in steps {
                let range = start..start + len;
                let own = &mut expected[start as usize..(start + len) as usize];
                if adds && len > 0 {
                    ranges.insert(range);
                    own.fill(true);
                } else if !adds {
                    let before = own.iter().filter(|byte| **byte).count() as u64;
                    prop_assert_eq!(ranges.remove(&range).total(), before);
                    own.fill(false);
                }
                prop_assert_eq!(bytes(&ranges), expected);
                prop_assert_eq!(ranges.total(), expected.iter().filter(|byte| **byte).count() as u64);
            }
            let (start, end) = (looked_at.0, looked_at.0 + looked_at.1);
            expected[..start as usize].fill(false);
            expected[end as usize..].fill(false);
            prop_assert_eq!(bytes(&ranges.within(&(start..end))), expected);
        }

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
