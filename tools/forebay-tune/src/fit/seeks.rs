//! Whether a disk has a head that seeks: reads at random places then take many times as long as the same
//! in sequence.
//!
//! Of writes a cache may hide it, and small requests in sequence may be joined on their way: so large
//! reads decide.

use serde::Serialize;

use super::CostPoint;
use crate::phase::{Purpose, Work};
use crate::run::Run;

/// Large enough that nothing joins requests, and small enough that a head costs more than the bytes.
const BYTES: u32 = 128 << 10;
/// A disk without a head does as many at random, or somewhat fewer where parts of it wait for each
/// other; one with a head, and arrays of such, ten times fewer.
const TIMES_MIN: f64 = 3.0;

/// How much faster reads of 128 KiB are in sequence than at random places.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Seeks {
    /// This many times.
    pub times: f64,
    /// Half of its 95 % confidence interval.
    pub margin: f64,
}

impl Seeks {
    /// Whether the disk has a head that seeks; nothing where the rates were too uneven to tell.
    pub fn known(&self) -> Option<bool> {
        if self.times - self.margin > TIMES_MIN {
            return Some(true);
        }
        (self.times + self.margin < TIMES_MIN).then_some(false)
    }
}

/// By reads at random places and the streams of `run`; nothing where either is missing.
pub(super) fn seeks(run: &Run, streams: &[CostPoint]) -> Option<Seeks> {
    let stream = streams.iter().find(|point| point.bytes == BYTES)?;
    let mut random = run.of(Purpose::Sizes, Work::Read);
    let random = random.find(|measured| measured.phase.request_bytes == BYTES)?;
    let random = random.samples.rate_of_spans();
    let times = stream.rate / random.mean;
    let part = (stream.margin / stream.rate).hypot(random.margin / random.mean);
    (random.mean > 0.0 && stream.rate > 0.0).then_some(Seeks { times, margin: times * part })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_known_where_the_margins_tell() {
        for (times, margin, known) in [
            (9.8, 1.5, Some(true)),
            (1.0, 0.3, Some(false)),
            (4.0, 1.5, None),
            (2.0, 1.5, None),
            (9.8, 7.0, None),
        ] {
            assert_eq!(Seeks { times, margin }.known(), known, "{times} +- {margin}");
        }
    }
}
