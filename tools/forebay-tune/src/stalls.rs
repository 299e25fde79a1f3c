//! Stalls of a disk.

use std::ops::Range;

use serde::{Deserialize, Serialize};

/// Stalls of at least this many seconds are reported.
const REPORTED_SECONDS: f64 = 0.2;

/// Times in which the disk completed none of its requests for much longer than they usually take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Stalls {
    /// The number of stalls.
    pub count: u32,
    /// Their duration in all, in seconds.
    pub seconds: f64,
    /// The duration of the longest, in seconds.
    pub longest: f64,
}

impl Stalls {
    /// The stalls in a list of ranges of intervals, each of `interval` seconds.
    pub(crate) fn of(stalls: &[Range<usize>], interval: f64) -> Self {
        let lengths = || stalls.iter().map(|stall| stall.len() as f64 * interval);
        Self {
            count: u32::try_from(stalls.len()).unwrap_or(u32::MAX),
            seconds: lengths().sum(),
            longest: lengths().fold(0.0, f64::max),
        }
    }

    /// The stalls of both together.
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            count: self.count.saturating_add(other.count),
            seconds: self.seconds + other.seconds,
            longest: self.longest.max(other.longest),
        }
    }
}

/// A sentence about the stalls of all phases, if they were long enough to be reported.
pub(crate) fn warning(phases: impl Iterator<Item = Stalls>) -> Option<String> {
    let all = phases.filter(|stalls| stalls.longest >= REPORTED_SECONDS).reduce(Stalls::and);
    all.map(|Stalls { count, seconds, longest }| {
        let times = if count == 1 { "once".to_owned() } else { format!("{count} times") };
        format!(
            "The disk stood still {times}, for {seconds:.1} s in all and {longest:.1} s at the \
             longest. Possible causes are garbage collection, a lost link, or a machine that was \
             suspended. The rates are means that include this time."
        )
    })
}
