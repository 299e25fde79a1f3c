//! How long requests may take, as a promise about what is measured.

mod text;

use core::fmt;
use core::time::Duration;

use crate::{DiskTime, Op, saturating_nanos};

/// The lowest percentile of a target, in thousandths: the median. Lower ones are errors.
const PERMILLE_MIN: u32 = 500;
/// The highest percentile of a target, in thousandths: 99.9 %. A higher one below 100 % is no whole
/// number of thousandths.
const PERMILLE_MAX: u32 = 999;
/// The longest latency of a target (60 s). A longer one is an error.
const LATENCY_MAX: Duration = Duration::from_secs(60);
/// Encoding: The bits of a word for the thousandths; the nanoseconds are above them.
const PERMILLE_BITS: u32 = 10;
/// Encoding: The lowest bits of a word. They tell writes from reads, and times in the disk from
/// those since enqueueing.
const FLAG_BITS: u32 = 2;

/// A latency that a percentile of reads, or of writes, must not exceed.
///
/// The latency is from enqueueing to completion, or [in the disk](Self::in_disk). A class does not
/// count in the former while its requests mostly wait for each other: on a shard, seven of eight of
/// the latest 1,024. While the target is missed the window shrinks in steps of a fifth until it
/// holds; then the window grows again. A target that holds at no window is suspended for a while.
///
/// Figures and constants ([`Control`](crate::Control)) keep no target: whether it holds is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LatencyTarget {
    op: Op,
    permille: u32,
    latency: Duration,
    in_disk: bool,
}

/// Why a value is not a valid latency target.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum LatencyTargetError {
    /// Neither reads nor writes.
    Op,
    /// A percentile below 50 or above 99.9.
    Percentile,
    /// A latency of zero, or above a minute.
    Latency,
    /// No percentile with a time.
    Syntax,
}

crate::error_text::debug_as_display!(LatencyTargetError);

impl fmt::Display for LatencyTargetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Op => "a latency target is for reads or for writes, not for other operations",
            Self::Percentile => "expected a percentile from 50 to 99.9 for a latency target",
            Self::Latency => {
                "expected a latency above zero, and of at most a minute, for a latency target"
            }
            Self::Syntax => {
                "expected a percentile of reads and a time, such as p95=1ms or p99.9=2ms, of \
                 writes, such as writes:p95=5ms, or in the disk, such as disk:p95=1ms"
            }
        })
    }
}

impl core::error::Error for LatencyTargetError {}

impl LatencyTarget {
    /// `permille` of 1000 requests (500 to 999), all reads or all writes, take at most `latency`
    /// (up to a minute) from enqueueing to completion.
    ///
    /// # Errors
    /// The operation is neither, or a figure is out of range.
    pub const fn new(op: Op, permille: u32, latency: Duration) -> Result<Self, LatencyTargetError> {
        match op {
            _ if !matches!(op, Op::Read | Op::Write) => Err(LatencyTargetError::Op),
            _ if permille < PERMILLE_MIN || permille > PERMILLE_MAX => {
                Err(LatencyTargetError::Percentile)
            }
            _ if latency.is_zero() || latency.as_nanos() > LATENCY_MAX.as_nanos() => {
                Err(LatencyTargetError::Latency)
            }
            _ => Ok(Self { op, permille, latency, in_disk: false }),
        }
    }

    /// The same latency as a time in the disk, from dispatch to completion.
    #[must_use]
    pub const fn in_disk(self) -> Self {
        Self { in_disk: true, ..self }
    }

    /// Whether the latency is a time in the disk, and not from enqueueing to completion.
    pub const fn is_in_disk(&self) -> bool {
        self.in_disk
    }

    /// Reads or writes.
    pub const fn op(&self) -> Op {
        self.op
    }

    /// How many of 1000 requests are to be within the latency.
    pub const fn permille(&self) -> u32 {
        self.permille
    }

    /// The latency.
    pub const fn latency(&self) -> Duration {
        self.latency
    }

    /// The target as one word; zero for none.
    pub(crate) fn to_word(target: Option<Self>) -> u64 {
        target.map_or(0, |Self { op, permille, latency, in_disk }| {
            let nanos = saturating_nanos(latency);
            let flags = u64::from(in_disk) << 1 | u64::from(op == Op::Write);
            nanos << (PERMILLE_BITS + FLAG_BITS) | u64::from(permille) << FLAG_BITS | flags
        })
    }

    /// The reverse of [`LatencyTarget::to_word`].
    #[inline]
    pub(crate) fn from_word(word: u64) -> Option<Self> {
        let permille = (word >> FLAG_BITS) as u32 & ((1 << PERMILLE_BITS) - 1);
        let nanos = word >> (PERMILLE_BITS + FLAG_BITS);
        (permille > 0).then(|| Self {
            op: if word & 1 == 0 { Op::Read } else { Op::Write },
            permille,
            latency: Duration::from_nanos(nanos),
            in_disk: word & 2 != 0,
        })
    }
}

/// The status of a [`LatencyTarget`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LatencyTargetStatus {
    /// The target in force.
    pub target: LatencyTarget,
    /// Whether the percentile was within it when work last waited.
    pub holds: bool,
    /// Whether its latency is at most that of the idle disk, so that it cannot be kept.
    pub below_base: bool,
    /// Whether it can be held: it is not below the latency of the idle disk, and a smaller window
    /// did help.
    pub attainable: bool,
    /// The maximum disk time of unfinished requests when another is dispatched, as the model counts
    /// it.
    pub window: DiskTime,
}
