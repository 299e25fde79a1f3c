//! How large requests, and mixes of reads and writes, go with more in flight.

use super::{DEPTH_MIN, GAIN_MIN, Measuring};
use crate::error::Error;
use crate::phase::{Bound, Pattern, Phase, Purpose, Work};

/// Size of large requests: as compactions, scans and backups read and write.
pub const LARGE_REQUEST_BYTES: u32 = 128 << 10;
/// Each step has this many times the requests in flight of the one before, up to these.
const STEP: u32 = 4;
const DEPTH_MAX: u32 = 1024;
/// Of the requests in flight of a mix, one in this many writes.
const WRITES_ONE_IN: u32 = 4;
/// A mix writes at most this part of the bytes left: what its reads are alongside shows only while
/// they are alongside it.
const MIXED_PART: u64 = 32;
/// And this part of those that it takes nothing from to know that writes last.
const SPARE_PART: u64 = 4;

impl Measuring<'_> {
    /// Large requests at random places, until more in flight do not help.
    pub(super) fn large(&mut self, work: Work) -> Result<(), Error> {
        let (bytes, seconds) = (LARGE_REQUEST_BYTES, self.budget.sizes);
        self.until_full(1, DEPTH_MIN / 2, |measuring, depth| {
            let phase = measuring.phase(work, Pattern::Random, bytes, depth, seconds);
            Ok(measuring.run(Purpose::Large, phase)?.rate().mean)
        })
    }

    /// Small reads alongside small writes, and alongside large ones, until more in flight do not
    /// help reads.
    pub(super) fn mixes(&mut self) -> Result<(), Error> {
        let (small, seconds) = (self.least(), self.budget.sizes);
        for bytes in [small, LARGE_REQUEST_BYTES] {
            self.until_full(WRITES_ONE_IN, DEPTH_MIN, |measuring, depth| {
                let writing = depth / WRITES_ONE_IN;
                let random = |work, bytes, depth| {
                    measuring.phase(work, Pattern::Random, bytes, depth, seconds)
                };
                let writes = random(Work::Write, bytes, writing);
                let left = measuring.ledger.bytes_left;
                let bytes_max = match left.checked_sub(measuring.bytes_to_watch()) {
                    Some(spare) => (left / MIXED_PART).min(spare / SPARE_PART),
                    None => left / MIXED_PART,
                };
                let writes = Phase { bound: Bound { bytes_max, ..writes.bound }, ..writes };
                let reads = random(Work::Read, small, depth - writing);
                Ok(measuring.run_concurrently(Purpose::Mix, writes, reads)?.rate().mean)
            })?;
        }
        Ok(())
    }

    /// Measures rates with more and more requests in flight from `first` on, and ends at the first
    /// step of `least` or more that is no faster than the best.
    fn until_full(
        &mut self,
        first: u32,
        least: u32,
        mut rate: impl FnMut(&mut Self, u32) -> Result<f64, Error>,
    ) -> Result<(), Error> {
        let mut best = 0.0;
        let steps = std::iter::successors(Some(first), |depth| depth.checked_mul(STEP));
        for depth in steps.take_while(|&depth| depth <= DEPTH_MAX) {
            let rate = rate(self, depth)?;
            if depth >= least && rate < best * GAIN_MIN {
                break;
            }
            best = f64::max(best, rate);
        }
        Ok(())
    }
}
