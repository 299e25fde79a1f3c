//! What is measured alongside the ladders and the figures: alignment, a cache, kinds of files,
//! flushes and discards.

use super::{KIB, MIB, Measuring};
use crate::error::Error;
use crate::fit::{DISCARDS_MIN, knee};
use crate::phase::{Bound, FileState, Pattern, Phase, Purpose, Work};

/// Size of the writes that are shifted against sectors.
const MISALIGNED_SIZE: u32 = 16 * KIB;
/// By how many bytes; those that are not shifted come first and last, so that it shows where the
/// disk became slower in that time.
const SHIFTS: [u32; 7] = [0, 512, 1024, 2048, 4096, 8192, 0];
/// Sizes of discards, small and large.
const DISCARDS: [u32; 2] = [64 * KIB, 4 * MIB];
/// This part of the bytes left is written to be discarded, for each size,
const DISCARDED_PART: u64 = 16;
/// but this many times what is needed.
const DISCARDED_MIN: u64 = 2;
/// Discards of one size go on for so long, and for two seconds where they are few.
const DISCARD_SECONDS: f64 = 0.66;
/// This many times the reads that the disk needs keep it busy.
const BUSY: f64 = 2.0;

impl Measuring<'_> {
    /// Writes that begin between sectors of several sizes.
    pub(super) fn misaligned(&mut self) -> Result<(), Error> {
        let depth = self.depth(Work::Write);
        let alignment = self.target.info().alignment;
        for misalignment in SHIFTS {
            if misalignment == 0 || misalignment >= alignment {
                let seconds = self.budget.side;
                let aligned =
                    self.phase(Work::Write, Pattern::Random, MISALIGNED_SIZE, depth, seconds);
                self.run(Purpose::Misaligned, Phase { misalignment, ..aligned })?;
            }
        }
        Ok(())
    }

    /// Caches, files, flushes alone.
    pub(super) fn auxiliary(&mut self) -> Result<(), Error> {
        let side = self.budget.side;
        let cached = self.phase(Work::Read, Pattern::Cached, self.least(), 1, side);
        self.run(Purpose::Cache, cached)?;
        if self.target.info().files {
            use FileState::{Allocated, Fresh, Truncated, Written};
            for file in [Written, Fresh, Truncated, Allocated] {
                let mut phase = self.phase(Work::Write, Pattern::Sequential, 128 * KIB, 8, side);
                phase.bound.bytes_max = phase.bound.bytes_max.min(self.budget.file_bytes);
                self.run(Purpose::FileStates, Phase { file, ..phase })?;
            }
        }
        let flush = self.phase(Work::Flush, Pattern::Random, self.least(), 1, side);
        self.run(Purpose::Flush, flush)?;
        Ok(())
    }

    /// Flushes and discards alongside reads that keep the disk busy, with those reads alone before
    /// and after each.
    pub(super) fn interference(&mut self) -> Result<(), Error> {
        let side = self.budget.side;
        let depth = (knee(self.run, Work::Read).busy_if_alone() * BUSY).ceil() as u32;
        let reads = self.phase(Work::Read, Pattern::Random, self.least(), depth, side);
        self.run(Purpose::Interference, reads)?;
        let flush = self.phase(Work::Flush, Pattern::Random, self.least(), 1, side);
        let discards = if self.target.info().discards { DISCARDS.as_slice() } else { &[] };
        let discards = discards.iter().map(|&bytes| self.discards(bytes)).collect::<Vec<_>>();
        for phase in std::iter::once(flush).chain(discards) {
            self.run_concurrently(Purpose::Interference, reads, phase)?;
            self.run(Purpose::Interference, reads)?;
        }
        Ok(())
    }

    /// Discards of `bytes` each, in a file of its own. It is full, for XFS does not discard space
    /// that was reserved and never written.
    fn discards(&self, bytes: u32) -> Phase {
        let seconds = self.budget.side.max(DISCARD_SECONDS);
        let phase = self.phase(Work::Discard, Pattern::Sequential, bytes, 1, seconds);
        let enough = DISCARDED_MIN * DISCARDS_MIN * u64::from(bytes);
        let bytes_max = (self.ledger.ladder_left / DISCARDED_PART)
            .max(enough.min(self.ledger.bytes_left / DISCARDED_PART))
            .min(self.target.info().room / 4);
        let bound = Bound { requests_min: DISCARDS_MIN, bytes_max, ..phase.bound };
        Phase { file: FileState::Filled, bound, ..phase }
    }
}
