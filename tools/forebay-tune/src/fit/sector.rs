//! The sector that a disk has, whatever it says.

use serde::Serialize;

use crate::phase::{Phase, Purpose, Work};
use crate::run::Run;
use crate::samples::Rate;

/// Larger sectors are not looked for.
const SECTOR_MAX: u32 = 16384;
/// What comes so close to the best is as good.
const AS_GOOD: f64 = 0.95;
/// A rate that is known no better than this tells nothing.
const MARGIN_MAX: f64 = 0.05;

/// The sector of a disk: the unit that it writes without reading first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Sector {
    /// The physical sector that the device states, in bytes.
    pub stated: Option<u32>,
    /// The smallest size at which it does as many writes as at any other.
    pub by_size: Option<u32>,
    /// The smallest shift of larger writes that costs nothing.
    pub by_shift: Option<u32>,
    /// The smallest size and shift that could be tried.
    pub tried_from: u32,
}

impl Sector {
    /// What the disk behaves like, in bytes; 0 if that was not measured, or its
    /// rates were too uneven to tell.
    pub fn measured(&self) -> u32 {
        match (self.by_size, self.by_shift) {
            (Some(size), Some(shift)) => size.min(shift),
            (size, shift) => size.or(shift).unwrap_or(0),
        }
    }

    /// Whether the disk behaves like one with another sector than it states.
    pub fn disagrees(&self) -> bool {
        let measured = self.measured();
        // Whether a sector is smaller than what could be tried is not known.
        let known = measured > self.tried_from || self.stated > Some(measured);
        measured > 0 && known && self.stated.is_some_and(|stated| stated != measured)
    }
}

/// Writes of one size, or shifted by so much.
#[derive(Clone, Copy)]
struct Point {
    bytes: u32,
    rate: Rate,
}

impl Point {
    fn is_known(&self) -> bool {
        self.rate.margin <= self.rate.mean * MARGIN_MAX
    }

    /// Whether it is as good as `best`, or may be for all that is known.
    fn is_as_good_as(&self, best: &Self) -> bool {
        self.rate.mean + self.rate.margin >= best.rate.mean * AS_GOOD - best.rate.margin
    }
}

/// The sector as far as `run` goes.
pub(crate) fn sector(run: &Run) -> Sector {
    let mut sizes = points(run, Purpose::Sizes, |phase| phase.request_bytes);
    sizes.retain(|point| point.bytes <= SECTOR_MAX);
    let shifts = points(run, Purpose::Misaligned, |phase| phase.misalignment);
    let by_shift = by_shift(&shifts);
    Sector {
        stated: run.target.physical_sector,
        by_size: best(sizes.iter())
            .and_then(|best| first_good(&sizes, &best))
            .filter(Point::is_known)
            .map(|first| first.bytes),
        by_shift,
        tried_from: run.target.alignment.max(512),
    }
}

/// The smallest shift that costs nothing, alongside writes that are not shifted: at first and at
/// last, where the disk does as many.
fn by_shift(points: &[Point]) -> Option<u32> {
    let (aligned, shifts): (Vec<Point>, Vec<Point>) =
        points.iter().partition(|point| point.bytes == 0);
    let (first, last) = (aligned.first()?, aligned.last()?);
    let is_level = first.is_as_good_as(last) && last.is_as_good_as(first);
    let best = best(points.iter()).filter(|_| is_level && !shifts.is_empty())?;
    let good = first_good(&shifts, &best).unwrap_or(Point { bytes: SECTOR_MAX, ..best });
    good.is_known().then_some(good.bytes)
}

fn best<'a>(points: impl Iterator<Item = &'a Point>) -> Option<Point> {
    points.max_by(|one, other| one.rate.mean.total_cmp(&other.rate.mean)).copied()
}

fn first_good(points: &[Point], best: &Point) -> Option<Point> {
    points.iter().find(|point| point.is_as_good_as(best)).copied()
}

/// Writes per second by what `of` says about them.
fn points(run: &Run, purpose: Purpose, of: fn(&Phase) -> u32) -> Vec<Point> {
    run.of(purpose, Work::Write)
        .map(|measured| Point { bytes: of(&measured.phase), rate: measured.samples.rate() })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shifts_say_nothing_where_the_disk_became_slower_meanwhile() {
        let points = |rates: [f64; 4]| {
            let point = |(bytes, mean)| Point { bytes, rate: Rate { mean, margin: 10.0 } };
            [0, 4096, 8192, 0].into_iter().zip(rates).map(point).collect::<Vec<_>>()
        };
        assert_eq!(by_shift(&points([1000.0, 990.0, 1000.0, 1000.0])), Some(4096));
        assert_eq!(by_shift(&points([1000.0, 500.0, 990.0, 1000.0])), Some(8192));
        assert_eq!(by_shift(&points([1000.0, 500.0, 500.0, 1000.0])), Some(SECTOR_MAX));
        assert_eq!(by_shift(&points([1000.0, 500.0, 500.0, 500.0])), None);
        assert_eq!(by_shift(&points([1000.0, 500.0, 500.0, 1000.0])[1..3]), None);
    }

    #[test]
    fn a_rate_known_to_a_tenth_says_nothing_of_the_sector() {
        let point = |mean, margin| Point { bytes: 1024, rate: Rate { mean, margin } };
        assert!(point(1000.0, 50.0).is_known());
        let noisy = point(900.0, 100.0);
        assert!(noisy.is_as_good_as(&point(1000.0, 10.0)) && !noisy.is_known());
    }
}
