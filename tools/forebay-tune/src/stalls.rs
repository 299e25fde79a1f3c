//! When a disk stood still.

use std::ops::Range;

use serde::{Deserialize, Serialize};

/// A stall of this many seconds is told.
const TOLD_SECONDS: f64 = 0.2;

/// Times in which a disk had requests and none came back, though they usually take much less.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Stalls {
    /// How many.
    pub count: u32,
    /// How long they took in all.
    pub seconds: f64,
    /// How long the longest took.
    pub longest: f64,
}

impl Stalls {
    /// Of intervals of this many seconds in which nothing came back.
    pub(crate) fn of(stalls: &[Range<usize>], interval: f64) -> Self {
        let lengths = || stalls.iter().map(|stall| stall.len() as f64 * interval);
        Self {
            count: u32::try_from(stalls.len()).unwrap_or(u32::MAX),
            seconds: lengths().sum(),
            longest: lengths().fold(0.0, f64::max),
        }
    }

    /// These and those.
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            count: self.count.saturating_add(other.count),
            seconds: self.seconds + other.seconds,
            longest: self.longest.max(other.longest),
        }
    }
}

/// What there is to say of the stalls in all phases, in a sentence.
pub(crate) fn told(phases: impl Iterator<Item = Stalls>) -> Option<String> {
    let all = phases.filter(|stalls| stalls.longest >= TOLD_SECONDS).reduce(Stalls::and);
    all.map(|Stalls { count, seconds, longest }| {
        let times = if count == 1 { "once".to_owned() } else { format!("{count} times") };
        format!(
            "The disk stood still {times}, for {seconds:.1} s in all and {longest:.1} s at the \
             longest: garbage that is collected, a link that was lost, or a machine that was \
             stopped. Its rates are means over that time."
        )
    })
}
