//! Where in its file a request goes.

use crate::job_file::{HOLE, Job, StepSize};
use crate::rng::Rng;

use std::iter::{once, repeat_n};

/// A sequence of places in a file; each is the first byte and the number of bytes.
///
/// Except for a growing file no place reaches past the end of the file.
#[derive(Clone, Debug)]
pub(super) enum Offsets {
    /// From the beginning to the end, again and again. The request at the end is shorter where
    /// the size is not a multiple of the request size.
    Wrapping { next: u64, size: u64, reqsize: u32 },
    /// From the end of one file to its beginning, and then of the next: all have the same size,
    /// and places are counted through all of them.
    FromEnds { file: u64, left: u64, size: u64, cut: Cut },
    /// Behind the end, without end.
    Growing { next: u64, reqsize: u32 },
    /// At random multiples of the request size.
    Random { size: u64, reqsize: u32, rng: Rng },
}

/// How a file is cut from its end.
#[derive(Clone, Debug)]
pub(super) enum Cut {
    /// At multiples of this.
    Fixed(u32),
    /// By what its extents, of this many bytes each, cost.
    ByCost { size: Box<StepSize>, extent: u64 },
}

impl Cut {
    /// Of a deletion.
    pub(super) fn of(job: &Job) -> Self {
        match &job.steps {
            None => Self::Fixed(job.reqsize.max(1)),
            Some(size) => {
                let extent = job.options.extent_size.unwrap_or(job.file_size).max(HOLE);
                Self::ByCost { size: Box::new(size.clone()), extent }
            }
        }
    }

    /// Where the last part begins of what is left of a file.
    fn begin(&self, left: u64) -> u64 {
        match self {
            Self::Fixed(reqsize) => {
                left.saturating_sub(1) / u64::from(*reqsize) * u64::from(*reqsize)
            }
            Self::ByCost { size, extent } => {
                let last = left - left.saturating_sub(1) / extent * extent;
                let whole = (left - last) / extent;
                let extents = once(last).chain(repeat_n(*extent, whole as usize));
                let step = size.most.step(&size.model, extents).bytes.min(u32::MAX.into());
                left.saturating_sub(step.max(1))
            }
        }
    }

    /// In how many parts a file is.
    pub(super) fn parts(&self, size: u64) -> u64 {
        let (mut left, mut parts) = (size, 0);
        while left > 0 {
            (left, parts) = (self.begin(left), parts + 1);
        }
        parts
    }
}

impl Offsets {
    pub(super) fn wrapping(size: u64, reqsize: u32) -> Self {
        Self::Wrapping { next: 0, size, reqsize }
    }

    /// As [`Offsets::wrapping`], but from the middle on.
    pub(super) fn half_away(size: u64, reqsize: u32) -> Self {
        let half = size / u64::from(reqsize.max(1)) / 2 * u64::from(reqsize);
        Self::Wrapping { next: half, size, reqsize }
    }

    pub(super) fn from_ends(size: u64, cut: Cut) -> Self {
        Self::FromEnds { file: 0, left: size, size, cut }
    }

    pub(super) fn growing(size: u64, reqsize: u32) -> Self {
        Self::Growing { next: size, reqsize }
    }

    pub(super) fn random(size: u64, reqsize: u32, rng: Rng) -> Self {
        Self::Random { size, reqsize, rng }
    }

    pub(super) fn next(&mut self) -> (u64, u32) {
        match self {
            Self::Wrapping { next, size, reqsize } => {
                let (offset, len) = (*next, length(*next, *size, *reqsize));
                let end = offset + u64::from(len);
                *next = if end < *size { end } else { 0 };
                (offset, len)
            }
            Self::FromEnds { file, left, size, cut } => {
                let begin = cut.begin(*left);
                let (offset, len) =
                    (file.saturating_mul(*size).saturating_add(begin), *left - begin);
                *left = begin;
                if begin == 0 {
                    (*file, *left) = (*file + 1, *size);
                }
                (offset, len as u32)
            }
            Self::Growing { next, reqsize } => {
                let offset = *next;
                *next = offset.saturating_add(u64::from(*reqsize));
                (offset, *reqsize)
            }
            Self::Random { size, reqsize, rng } => {
                let places = size.checked_div(u64::from(*reqsize)).unwrap_or(0);
                let offset = rng.below(places) * u64::from(*reqsize);
                (offset, length(offset, *size, *reqsize))
            }
        }
    }
}

/// As much of `reqsize` as there is between `offset` and the end.
fn length(offset: u64, size: u64, reqsize: u32) -> u32 {
    u32::try_from(size - offset).map_or(reqsize, |rest| rest.min(reqsize))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::{prop_assert, proptest};

    #[test]
    fn a_sequential_stream_ends_with_a_short_request_and_begins_again() {
        let mut offsets = Offsets::wrapping(2560, 1024);
        let places: Vec<_> = (0..5).map(|_| offsets.next()).collect();
        assert_eq!(places, [(0, 1024), (1024, 1024), (2048, 512), (0, 1024), (1024, 1024)]);
    }

    #[test]
    fn appends_begin_at_the_end_of_the_file() {
        let mut offsets = Offsets::growing(1 << 20, 4096);
        assert_eq!(offsets.next(), (1 << 20, 4096));
        assert_eq!(offsets.next(), ((1 << 20) + 4096, 4096));
    }

    #[test]
    fn random_places_cover_the_file_to_its_very_end() {
        let mut offsets = Offsets::random(4 * 512, 512, Rng::new(1, &[]));
        let mut seen = [false; 4];
        for _ in 0..200 {
            seen[(offsets.next().0 / 512) as usize] = true;
        }
        assert_eq!(seen, [true; 4]);
    }

    proptest! {
        #[test]
        fn places_are_aligned_and_inside_the_file(
            sectors in 1_u64..1 << 30, request_sectors in 1_u32..2048, seed: u64, random: bool,
        ) {
            let (size, reqsize) = (sectors * 512, request_sectors * 512);
            let mut offsets = match random {
                true => Offsets::random(size, reqsize, Rng::new(seed, &[])),
                false => Offsets::wrapping(size, reqsize),
            };
            for _ in 0..100 {
                let (offset, len) = offsets.next();
                prop_assert!(offset.is_multiple_of(u64::from(reqsize)));
                prop_assert!(len > 0 && len <= reqsize && len.is_multiple_of(512));
                prop_assert!(offset + u64::from(len) <= size);
                prop_assert!(len == reqsize || offset + u64::from(len) == size);
            }
        }
    }
}
