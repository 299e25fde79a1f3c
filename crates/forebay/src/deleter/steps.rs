//! The parts of a file that are freed next, from its end.

use std::io;
use std::ops::Range;

use forebay_core::StepMax;

use crate::extents::Extents;

/// The last part of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Step {
    /// Its extents, or parts of them, the last one first.
    pub(super) extents: Vec<Range<u64>>,
}

impl Step {
    /// The offset at which it begins.
    #[cfg(test)]
    fn start(&self) -> u64 {
        self.extents.last().map_or(0, |extent| extent.start)
    }

    /// The lengths of the extents in bytes, the last one first.
    pub(super) fn lens(&self) -> impl Iterator<Item = u64> {
        self.extents.iter().map(|extent| extent.end - extent.start)
    }

    pub(super) fn bytes(&self) -> u64 {
        self.lens().sum()
    }

    /// Keeps the last `bytes` of it, and never nothing.
    pub(super) fn shorten(&mut self, bytes: u64) {
        let mut room = bytes;
        let mut kept = 0;
        for extent in &mut self.extents {
            if room == 0 && kept > 0 {
                break;
            }
            let from = extent.end.saturating_sub(room.max(ALIGNMENT)).max(extent.start);
            *extent = from..extent.end;
            room = room.saturating_sub(extent.end - extent.start);
            kept += 1;
        }
        self.extents.truncate(kept);
    }
}

/// The alignment of cuts, in bytes.
pub(super) const ALIGNMENT: u64 = 4096;

/// The last part of a file's data before `end`, within `limit`. `None` if there is no data.
///
/// `extents` returns the extents between two offsets. It is called some 60 times at most, whatever
/// the size of the file.
pub(super) fn next_step(
    size: u64,
    end: u64,
    limit: StepMax,
    mut extents: impl FnMut(&Range<u64>) -> io::Result<Extents>,
) -> io::Result<Option<Step>> {
    let aligned = |at: u64| at - at % ALIGNMENT;
    let mut end = end;
    let mut start = aligned(size.min(end).saturating_sub(limit.bytes));
    let mut reach = limit.bytes.max(ALIGNMENT);
    while end > 0 {
        let Extents { found, is_cut } = extents(&(start..end))?;
        match found.last() {
            // There may be more extents after these. Look closer to the end, until the range cannot
            // be halved.
            last if is_cut && last.is_none_or(|last| last.end < end) && end - start > ALIGNMENT => {
                start = aligned(start + (end - start) / 2).max(start + ALIGNMENT).min(end - 1);
            }
            None if start == 0 => return Ok(None),
            None => {
                end = start;
                reach = reach.saturating_mul(2);
                start = aligned(end.saturating_sub(reach));
            }
            Some(_) => return Ok(Some(cut(found, limit, aligned))),
        }
    }
    Ok(None)
}

/// The last of the `found` extents that are within `limit`.
fn cut(found: Vec<Range<u64>>, limit: StepMax, aligned: impl Fn(u64) -> u64) -> Step {
    let mut step = Step { extents: Vec::new() };
    let mut room = limit.bytes.max(ALIGNMENT);
    for extent in found.into_iter().rev().take(limit.commands.max(1) as usize) {
        let from = aligned(extent.end.saturating_sub(room)).max(extent.start);
        // A cut that is rounded down may give slightly more than there is room for.
        let from = if extent.end - from > room { (from + ALIGNMENT).min(extent.end) } else { from };
        let is_whole = from == extent.start;
        if from >= extent.end {
            break;
        }
        room = room.saturating_sub(extent.end - from);
        step.extents.push(from..extent.end);
        if !is_whole || room == 0 {
            break;
        }
    }
    step
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::cell::Cell;

    use crate::extents::EXTENTS_MAX;
    use forebay_core::DiskTime;
    use forebay_load::Rng;

    const MIB: u64 = 1 << 20;

    fn limit(bytes: u64, commands: u32) -> StepMax {
        StepMax { cost: DiskTime::from_units(u64::MAX), bytes, commands }
    }

    /// All steps of a file with these extents, and the number of queries for each.
    fn steps(size: u64, all: &[Range<u64>], limit: StepMax) -> (Vec<Step>, u64) {
        let (mut end, mut steps, mut most) = (i64::MAX as u64, Vec::new(), 0);
        loop {
            let asked = Cell::new(0);
            let step = next_step(size, end, limit, |within| {
                asked.set(asked.get() + 1);
                let cut = |e: &Range<u64>| e.start.max(within.start)..e.end.min(within.end);
                let found = all.iter().map(cut).filter(|e| !e.is_empty()).take(EXTENTS_MAX);
                let found = found.collect::<Vec<_>>();
                Ok(Extents { is_cut: found.len() == EXTENTS_MAX, found })
            });
            most = most.max(asked.get());
            let Some(step) = step.unwrap() else { return (steps, most) };
            assert!(step.start() < end && !step.extents.is_empty());
            end = step.start();
            steps.push(step);
        }
    }

    fn bytes(steps: &[Step]) -> u64 {
        steps.iter().map(Step::bytes).sum()
    }

    #[test]
    fn a_large_extent_is_cut_by_bytes_from_its_end() {
        let limit = limit(32 * MIB, 8);
        let (steps, _) = steps(128 * MIB, std::slice::from_ref(&(0..128 * MIB)), limit);
        let starts: Vec<u64> = steps.iter().map(|step| step.start() / MIB).collect();
        assert_eq!(starts, [96, 64, 32, 0]);
    }

    #[test]
    fn small_extents_are_counted() {
        let extents: Vec<_> = (0..1000).map(|n| n * MIB..n * MIB + MIB).collect();
        let limit = limit(32 * MIB, 8);
        let (steps, _) = steps(1000 * MIB, &extents, limit);
        assert_eq!(steps.len(), 125);
        assert!(steps.iter().all(|step| step.extents.len() == 8 && step.bytes() == 8 * MIB));
    }

    #[test]
    fn the_holes_of_a_sparse_terabyte_are_skipped_at_once() {
        let extents = [4096..8192, (1 << 40) - 8192..(1 << 40) - 4096];
        let limit = limit(MIB, 8);
        let (found, most) = steps(1 << 40, &extents, limit);
        assert_eq!((found.len(), bytes(&found)), (2, 8192));
        assert!(most < 64, "asked {most} times");
        assert_eq!(steps(1 << 40, &[], limit).0, []);
    }

    #[test]
    fn blocks_beyond_the_end_of_a_file_are_freed_first() {
        let limit = limit(MIB, 8);
        let (steps, _) = steps(MIB, &[0..MIB, 5 * MIB..6 * MIB], limit);
        let starts: Vec<u64> = steps.iter().map(|step| step.start() / MIB).collect();
        assert_eq!(starts, [5, 0]);
    }

    #[test]
    fn a_step_is_shortened_to_its_last_bytes() {
        let extents = vec![30 * MIB..40 * MIB, 10 * MIB..20 * MIB, 0..MIB];
        let shortened = |bytes| {
            let mut step = Step { extents: extents.clone() };
            step.shorten(bytes);
            (step.extents.len(), step.bytes(), step.start())
        };
        assert_eq!(shortened(u64::MAX), (3, 21 * MIB, 0));
        assert_eq!(shortened(15 * MIB), (2, 15 * MIB, 15 * MIB));
        assert_eq!(shortened(10 * MIB), (1, 10 * MIB, 30 * MIB));
        assert_eq!(shortened(0), (1, ALIGNMENT, 40 * MIB - ALIGNMENT));
    }

    #[test]
    fn every_byte_is_freed_once_and_no_step_is_above_its_limit() {
        for seed in 0..300 {
            let mut rng = Rng::new(seed, &[7]);
            let (mut at, mut extents) = (0, Vec::new());
            for _ in 0..rng.below(400) {
                let blocks = |rng: &mut Rng| {
                    let most = 1 << rng.below(12);
                    (1 + rng.below(1 + most)) * 4096
                };
                at += if rng.below(3) == 0 { blocks(&mut rng) } else { 0 };
                let len = blocks(&mut rng);
                extents.push(at..at + len);
                at += len;
            }
            let most = 1 << (10 + rng.below(14));
            let limit = limit(1 + rng.below(most), 1 + rng.below(70) as u32);
            let (steps, most) = steps(at - at.min(rng.below(4096)), &extents, limit);
            let all: u64 = extents.iter().map(|extent| extent.end - extent.start).sum();
            assert_eq!(bytes(&steps), all, "{seed}");
            assert!(most < 130, "{seed}: asked {most} times");
            for step in &steps {
                assert!(step.extents.len() <= limit.commands as usize, "{seed}");
                assert!(step.bytes() <= limit.bytes.max(ALIGNMENT), "{seed}: {step:?} {limit:?}");
            }
        }
    }
}
