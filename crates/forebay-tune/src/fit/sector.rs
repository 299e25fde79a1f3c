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
    let aligned = sizes.iter().find(|point| point.bytes == SECTOR_MAX).copied();
    let by_shift = aligned.filter(|_| !shifts.is_empty()).and_then(|aligned| {
        let best = best(shifts.iter().chain([&aligned]))?;
        let first = first_good(&shifts, &best).unwrap_or(Point { bytes: SECTOR_MAX, ..aligned });
        first.is_known().then_some(first.bytes)
    });
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
    fn a_rate_known_to_a_tenth_says_nothing_of_the_sector() {
        let point = |mean, margin| Point { bytes: 1024, rate: Rate { mean, margin } };
        assert!(point(1000.0, 50.0).is_known());
        let noisy = point(900.0, 100.0);
        assert!(noisy.is_as_good_as(&point(1000.0, 10.0)) && !noisy.is_known());
    }
}
