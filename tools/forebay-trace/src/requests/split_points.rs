//! Where requests are split, and why there.

use std::collections::BTreeMap;
use std::ops::Range;

use serde::Serialize;

/// What a border may be: a power of two, of 4 KiB to 64 MiB.
const LEAST: u32 = 12;
const MOST: u32 = 26;

/// This many of 10 split points are where the cause puts them.
const MOST_OF_TEN: u64 = 9;

/// With fewer splits the true border may be half of the one that is guessed, or less: each split
/// leaves half a chance of that.
const SPLITS_SURE: u64 = 7;

/// Limits of a device are whole numbers of this many bytes (`max_sectors_kb`).
const LIMIT_UNIT: u64 = 1 << 10;

/// The maximum of lengths of first parts that are counted separately.
const LENGTHS_MAX: usize = 64;

/// Of split points and of what was not split: all that a guess needs.
#[derive(Clone, Debug, Default)]
pub(super) struct SplitPoints {
    points: u64,
    /// Requests that were split.
    requests: u64,
    /// The powers, and after them the border that is stated.
    borders: Vec<Border>,
    /// Points by the length of the part before them.
    lengths: BTreeMap<u64, u64>,
    /// The longest request that was not split, and the longest part of one that was.
    longest: u64,
}

/// What multiples of a length do to requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Border {
    pub(super) bytes: u64,
    /// How many split points are multiples.
    points: u64,
    /// How many of the requests that were split begin at one.
    starts: u64,
    /// Requests that were split at one at least.
    pub(super) split: u64,
    /// Requests that were not split, with one inside.
    pub(super) whole: u64,
    /// Parts of split requests with one inside.
    parts: u64,
}

/// Why requests are split where they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SplitCause {
    /// At multiples of a power of two: the chunk of an array.
    Border {
        /// Bytes of a chunk.
        bytes: u64,
        /// Whether so few splits were seen that it may be a smaller power of two.
        or_less: bool,
    },
    /// Into parts of one length: the longest request that the device takes.
    Length {
        /// Bytes of that request.
        bytes: u64,
    },
    /// Into parts of as many pieces of memory as a request may have, which are a page each, or a
    /// few pages that lie together.
    Pieces {
        /// Bytes of this many pages.
        bytes: u64,
    },
}

/// The least multiple of `chunk` inside of `range`, if there is one.
pub(super) fn first_border(range: &Range<u64>, chunk: u64) -> Option<u64> {
    let border = (range.start / chunk + 1).checked_mul(chunk)?;
    (border < range.end).then_some(border)
}

impl SplitPoints {
    /// Where borders are said to be at multiples of this many bytes, or nothing is said.
    pub(super) fn new(stated: Option<u64>) -> Self {
        let lengths = (LEAST..=MOST).map(|power| 1 << power).chain(stated);
        let borders = lengths.map(|bytes| Border { bytes, ..Border::default() });
        Self { borders: borders.collect(), ..Self::default() }
    }

    /// A request was split at these points, which are in order.
    pub(super) fn add(&mut self, range: &Range<u64>, points: &[u64]) {
        let begins = std::iter::once(range.start).chain(points.iter().copied());
        let ends = points.iter().copied().chain([range.end]);
        let parts: Vec<Range<u64>> = begins.zip(ends).map(|(begin, end)| begin..end).collect();
        let length = |part: &Range<u64>| part.end - part.start;
        self.requests += 1;
        self.longest = self.longest.max(parts.iter().map(length).max().unwrap_or_default());
        for border in &mut self.borders {
            let is_over = |part: &&Range<u64>| first_border(part, border.bytes).is_some();
            border.parts += parts.iter().filter(is_over).count() as u64;
            let at = points.iter().filter(|&&point| point.is_multiple_of(border.bytes)).count();
            border.points += at as u64;
            border.starts += u64::from(range.start.is_multiple_of(border.bytes));
            border.split += u64::from(at > 0);
        }
        let mut before = range.start;
        for &point in points {
            self.points += 1;
            let length = point.saturating_sub(before);
            if self.lengths.len() < LENGTHS_MAX || self.lengths.contains_key(&length) {
                *self.lengths.entry(length).or_default() += 1;
            }
            before = point;
        }
    }

    /// A request was not split.
    pub(super) fn add_whole(&mut self, range: &Range<u64>) {
        self.longest = self.longest.max(range.end - range.start);
        for border in &mut self.borders {
            border.whole += u64::from(first_border(range, border.bytes).is_some());
        }
    }

    /// What these borders do.
    pub(super) fn at(&self, bytes: u64) -> Option<Border> {
        self.borders.iter().find(|border| border.bytes == bytes).copied()
    }

    /// The cause that fits; none where nothing was split, or without a common cause. Of a device it
    /// may be known which request is its longest, and what one of single pages carries at most.
    pub(super) fn cause(&self, longest: Option<u64>, pages: Option<u64>) -> Option<SplitCause> {
        let border = self.border();
        // parts of one length from multiples of anything end at multiples of that too
        if let Some(border) = border.filter(|border| self.is_clear(border)) {
            return Some(self.at_borders(border));
        }
        let (&bytes, &count) = self.lengths.iter().max_by_key(|(_, count)| **count)?;
        // a limit is whole KiB, and nothing is longer; one split alone has a length too
        let has_length = self.points > 1
            && self.are_most(count)
            && self.longest <= bytes
            && bytes.is_multiple_of(LIMIT_UNIT);
        if has_length && (pages != Some(bytes) || longest == Some(bytes)) {
            return Some(SplitCause::Length { bytes });
        }
        if let Some(pages) = pages.filter(|_| self.points > 1) {
            // more where some pages lie together
            let paged = self
                .lengths
                .range(pages..=longest.unwrap_or_else(|| pages.saturating_mul(2)).max(pages));
            if self.are_most(paged.map(|(_, count)| count).sum()) {
                return Some(SplitCause::Pieces { bytes: pages });
            }
        }
        if has_length {
            return Some(SplitCause::Length { bytes });
        }
        border.map(|border| self.at_borders(border))
    }

    /// Whether this many split points are nearly all.
    fn are_most(&self, count: u64) -> bool {
        count > 0 && count * 10 >= self.points * MOST_OF_TEN
    }

    /// The greatest power of two that nearly all split points share, if what is not split there
    /// does not speak against it.
    fn border(&self) -> Option<Border> {
        let powers = self.borders.iter().take((MOST - LEAST + 1) as usize).rev();
        let border = powers.copied().find(|border| self.are_most(border.points))?;
        ((border.whole + border.parts) * 10 <= border.split).then_some(border)
    }

    /// Whether the requests that were split there begin elsewhere, and are enough to tell.
    fn is_clear(&self, border: &Border) -> bool {
        self.points >= SPLITS_SURE && border.starts * 10 < self.requests * MOST_OF_TEN
    }

    fn at_borders(&self, border: Border) -> SplitCause {
        SplitCause::Border { bytes: border.bytes, or_less: self.points < SPLITS_SURE }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIB: u64 = 1 << 10;

    fn found(ranges: impl Iterator<Item = Range<u64>>, chunk: u64) -> Option<SplitCause> {
        let mut points = SplitPoints::new(None);
        for range in ranges {
            match first_border(&range, chunk) {
                Some(point) => points.add(&range, &[point]),
                None => points.add_whole(&range),
            }
        }
        points.cause(None, None)
    }

    #[test]
    fn borders_are_inside_of_requests() {
        for (range, expected) in [
            (0..100, None),
            (0..101, Some(100)),
            (99..101, Some(100)),
            (100..200, None),
            (150..350, Some(200)),
            (u64::MAX - 10..u64::MAX, None),
        ] {
            assert_eq!(first_border(&range, 100), expected, "{range:?}");
        }
    }

    #[test]
    fn the_chunk_is_the_power_that_split_points_have_in_common() {
        for power in 16..22 {
            let chunk = 1 << power;
            // steps that are no power of two come to all places in a chunk
            let ranges = (0..2000).map(|n| n * 131 * KIB..n * 131 * KIB + 96 * KIB);
            let expected = SplitCause::Border { bytes: chunk, or_less: false };
            let found = match chunk {
                // more than one border in a request
                0x1_0000 => found(ranges.map(|range| range.start..range.start + 60 * KIB), chunk),
                _ => found(ranges, chunk),
            };
            assert_eq!(found, Some(expected), "{chunk}");
        }
    }

    #[test]
    fn parts_of_one_length_are_the_limit_of_the_device() {
        let mut points = SplitPoints::new(None);
        for n in 0..100 {
            let start = n * 1000 * KIB;
            points.add(&(start..start + 256 * KIB), &[64, 128, 192].map(|kib| start + kib * KIB));
        }
        assert_eq!(points.cause(None, None), Some(SplitCause::Length { bytes: 64 * KIB }));
        // longer requests that are whole speak against a limit
        points.add_whole(&(0..128 * KIB));
        assert!(!matches!(points.cause(None, None), Some(SplitCause::Length { .. })));
    }

    #[test]
    fn a_partition_at_sector_63_has_parts_of_one_length_and_the_cause_is_the_border() {
        // sizes in sectors: from which place, how many, and the chunk
        for (step, sectors, chunk) in [(128, 8, 128), (256, 256, 128), (2048, 128, 1024)] {
            let mut points = SplitPoints::new(None);
            for n in 0..200 {
                let (chunk, begin) = (chunk * 512, (63 + n * step + (chunk - 64)) * 512);
                let range = begin..begin + sectors * 512;
                let at: Vec<u64> = std::iter::successors(first_border(&range, chunk), |at| {
                    Some(at + chunk).filter(|at| *at < range.end)
                })
                .collect();
                match at.is_empty() {
                    true => points.add_whole(&range),
                    false => points.add(&range, &at),
                }
            }
            let found = points.cause(None, None);
            assert!(matches!(found, Some(SplitCause::Border { .. })), "{step}: {found:?}");
            let found = points.cause(Some(1280 * KIB), Some(512 * KIB));
            assert!(matches!(found, Some(SplitCause::Border { .. })), "{step}: {found:?}");
        }
    }

    #[test]
    fn parts_of_one_length_that_are_not_the_longest_are_no_limit() {
        let mut points = SplitPoints::new(None);
        // 64 KiB, and then 100 KiB more
        for n in 0..100 {
            let start = n * 1001 * KIB;
            points.add(&(start..start + 164 * KIB), &[start + 64 * KIB]);
        }
        assert_eq!(points.cause(None, None), None);
        // 65 sectors are no number of KiB
        let mut points = SplitPoints::new(None);
        for n in 0..100 {
            let start = n * 1001 * KIB;
            points.add(&(start..start + 65 * KIB), &[start + 65 * 512]);
        }
        assert_eq!(points.cause(None, None), None);
    }

    #[test]
    fn parts_of_one_length_from_places_that_share_a_power_are_the_limit() {
        for limit in [64, 128, 1280] {
            let mut points = SplitPoints::new(None);
            for n in 0..100 {
                let start = n * 256 * KIB;
                points.add(&(start..start + 2 * limit * KIB), &[start + limit * KIB]);
            }
            assert_eq!(points.cause(None, None), Some(SplitCause::Length { bytes: limit * KIB }));
        }
    }

    #[test]
    fn splits_at_random_offsets_have_no_border() {
        assert_eq!(SplitPoints::new(None).cause(None, None), None);
        let mut points = SplitPoints::new(None);
        for n in 0..100 {
            let start = n * 997 * 512;
            points.add(&(start..start + 128 * KIB), &[start + 512 * (n + 1)]);
        }
        assert_eq!(points.cause(None, None), None);
        let mut points = SplitPoints::new(None);
        (1..100).for_each(|n| points.add(&(n * KIB..n * KIB + 2048 * KIB), &[1024 * KIB]));
        (1..100).for_each(|n| points.add_whole(&(n * KIB..n * KIB + 2048 * KIB)));
        assert_eq!(points.cause(None, None), None);
    }

    #[test]
    fn parts_of_as_many_pages_as_a_request_may_have_are_no_border_and_no_longest_request() {
        let mut points = SplitPoints::new(None);
        // from a multiple of their length, so that they have one in common too
        for n in 0..10 {
            let start = n * 4096 * KIB;
            let length = if n % 3 == 0 { 516 * KIB } else { 512 * KIB };
            points.add(&(start..start + 1000 * KIB), &[start + length]);
        }
        let (pages, longest) = (Some(512 * KIB), Some(1280 * KIB));
        assert_eq!(points.cause(longest, pages), Some(SplitCause::Pieces { bytes: 512 * KIB }));
        // up to the longest request, where many pages lie together
        points.add(&(1 << 30..(1 << 30) + 3000 * KIB), &[(1 << 30) + 1280 * KIB]);
        assert_eq!(points.cause(longest, pages), Some(SplitCause::Pieces { bytes: 512 * KIB }));
        assert_eq!(points.cause(longest, None), None);
        assert_eq!(points.cause(longest, Some(768 * KIB)), None);
    }

    #[test]
    fn few_splits_leave_smaller_chunks_open() {
        let mut points = SplitPoints::new(None);
        points.add(&(0x9CE_3ADF_7000..0x9CE_3AE1_7000), &[0x9CE_3AE0_0000]);
        let expected = SplitCause::Border { bytes: 2 << 20, or_less: true };
        assert_eq!(points.cause(None, None), Some(expected));
    }
}
