//! The sector that a disk has, whatever it says.

use serde::Serialize;

use crate::phase::{Purpose, Work};
use crate::run::Run;

/// Larger sectors are not looked for.
const SECTOR_MAX: u32 = 16384;
/// What comes so close to the best is as good.
const AS_GOOD: f64 = 0.95;

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
    /// What the disk behaves like, in bytes; 0 if it was not measured.
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

/// The sector as far as `run` goes.
pub(crate) fn sector(run: &Run) -> Sector {
    let by_size: Vec<(u32, f64)> = points(run, Purpose::Sizes, |phase| phase.request_bytes)
        .filter(|&(bytes, _)| bytes <= SECTOR_MAX)
        .collect();
    let shifts: Vec<(u32, f64)> =
        points(run, Purpose::Misaligned, |phase| phase.misalignment).collect();
    let aligned = by_size.iter().find(|&&(bytes, _)| bytes == SECTOR_MAX).map(|&(_, rate)| rate);
    let best = |points: &[(u32, f64)]| points.iter().map(|&(_, rate)| rate).fold(0.0, f64::max);
    let first_good = |points: &[(u32, f64)], best: f64| {
        points.iter().find(|&&(_, rate)| rate >= best * AS_GOOD).map(|&(bytes, _)| bytes)
    };
    Sector {
        stated: run.facts.physical_sector,
        by_size: first_good(&by_size, best(&by_size)),
        by_shift: aligned
            .filter(|_| !shifts.is_empty())
            .map(|aligned| first_good(&shifts, aligned.max(best(&shifts))).unwrap_or(SECTOR_MAX)),
        tried_from: run.facts.alignment.max(512),
    }
}

/// Writes per second by what `of` says about them.
fn points(
    run: &Run,
    purpose: Purpose,
    of: impl Fn(&crate::phase::Phase) -> u32,
) -> impl Iterator<Item = (u32, f64)> {
    run.of(purpose, Work::Write)
        .map(move |measured| (of(&measured.phase), measured.samples.rate().mean))
}
