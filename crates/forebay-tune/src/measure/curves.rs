//! How large requests, and mixes of reads and writes, go with more in flight.

use super::{DEPTH_MIN, GAIN_MIN, Measuring};
use crate::error::Error;
use crate::phase::{Pattern, Purpose, Work};

/// Size of large requests: as compactions, scans and backups read and write.
const LARGE: u32 = 128 << 10;
/// Each step has so many times the requests in flight of the one before, up to these.
const STEP: u32 = 4;
const DEPTH_MAX: u32 = 1024;
/// Of the requests in flight of a mix, one in so many writes.
const WRITES_ONE_IN: u32 = 4;

impl Measuring<'_> {
    /// Large requests at random places, until more in flight do not help.
    pub(super) fn large(&mut self, work: Work) -> Result<(), Error> {
        let mut best = 0.0;
        for depth in steps(1) {
            let phase = self.phase(work, Pattern::Random, LARGE, depth, self.budget.sizes);
            let rate = self.run(Purpose::Large, phase)?.rate().mean;
            if depth >= DEPTH_MIN / 2 && rate < best * GAIN_MIN {
                break;
            }
            best = f64::max(best, rate);
        }
        Ok(())
    }

    /// Small reads beside small writes, and beside large ones, until more in flight do not help
    /// reads.
    pub(super) fn mixes(&mut self) -> Result<(), Error> {
        let small = self.least();
        for bytes in [small, LARGE] {
            let mut best = 0.0;
            for depth in steps(WRITES_ONE_IN) {
                let (writing, seconds) = (depth / WRITES_ONE_IN, self.budget.sizes);
                let writes = self.phase(Work::Write, Pattern::Random, bytes, writing, seconds);
                let reads =
                    self.phase(Work::Read, Pattern::Random, small, depth - writing, seconds);
                self.run_concurrently(Purpose::Mix, writes, reads)?;
                let last = self.run.of(Purpose::Mix, Work::Read).last();
                let rate = last.map_or(0.0, |measured| measured.samples.rate().mean);
                if depth >= DEPTH_MIN && rate < best * GAIN_MIN {
                    break;
                }
                best = f64::max(best, rate);
            }
        }
        Ok(())
    }
}

fn steps(first: u32) -> impl Iterator<Item = u32> {
    std::iter::successors(Some(first), |depth| depth.checked_mul(STEP))
        .take_while(|&depth| depth <= DEPTH_MAX)
}
