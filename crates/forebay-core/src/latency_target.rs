//! What requests may take in the disk, as a promise about what is measured.

use core::fmt;
use core::time::Duration;

use crate::{DiskTime, Op};

/// Percentiles of a target, in thousandths: the median, and 999 of 1000.
const PERMILLE_MIN: u32 = 500;
const PERMILLE_MAX: u32 = 999;

/// A percentile of reads, or of writes, is to stay within a latency in the disk.
///
/// The model of a disk says how much may go to it; a target says what that is
/// to come to. While work waits, and only then, pace and window are corrected
/// so that the percentile stays within the target: quickly down, slowly up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LatencyTarget {
    op: Op,
    permille: u32,
    latency: Option<Duration>,
}

/// Why something is no latency target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LatencyTargetError {
    /// Neither reads nor writes.
    Op,
    /// A percentile below 50 or above 99.9.
    Percentile,
    /// A latency of zero.
    Latency,
}

impl fmt::Display for LatencyTargetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Op => "a latency target is one of reads or of writes",
            Self::Percentile => "the percentile of a latency target is from 50 to 99.9",
            Self::Latency => "a latency target is longer than zero",
        })
    }
}

impl core::error::Error for LatencyTargetError {}

impl LatencyTarget {
    /// What the window promises: of reads 95 in 100 within two effective goals.
    pub const OF_WINDOW: Self = Self { op: Op::Read, permille: 950, latency: None };

    /// `permille` of 1000 requests (500 to 999), all reads or all writes, take
    /// at most `latency` in the disk.
    ///
    /// # Errors
    /// The operation is neither, or a figure is out of range.
    pub const fn new(op: Op, permille: u32, latency: Duration) -> Result<Self, LatencyTargetError> {
        match op {
            _ if !matches!(op, Op::Read | Op::Write) => Err(LatencyTargetError::Op),
            _ if permille < PERMILLE_MIN || permille > PERMILLE_MAX => {
                Err(LatencyTargetError::Percentile)
            }
            _ if latency.is_zero() => Err(LatencyTargetError::Latency),
            _ => Ok(Self { op, permille, latency: Some(latency) }),
        }
    }

    /// Reads or writes.
    pub const fn op(&self) -> Op {
        self.op
    }

    /// How many of 1000 requests are to be within the latency.
    pub const fn permille(&self) -> u32 {
        self.permille
    }

    /// The latency; `None` for two effective goals, whatever they are.
    pub const fn latency(&self) -> Option<Duration> {
        self.latency
    }
}

/// What became of a [`LatencyTarget`], and what the disk does of what its model
/// says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LatencyTargetStatus {
    /// The latency in force: two effective goals where no other was stated, or
    /// where the stated one is below the latency of the idle disk.
    pub latency: Duration,
    /// Whether the percentile was within it when work last waited.
    pub holds: bool,
    /// Whether it can be held: it is not below the latency of the idle disk,
    /// and sending less did help.
    pub attainable: bool,
    /// Most disk time unfinished in the disk when another request goes, as the
    /// model counts it.
    pub window: DiskTime,
}
