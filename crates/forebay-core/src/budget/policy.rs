//! The admission policies.

use core::time::Duration;

#[cfg(feature = "history")]
use crate::sync::{AtomicU64, Ordering};
#[cfg(feature = "history")]
use crate::{DiskTime, Time};

/// The default latency goal of [`Control::Rates`](crate::Control::Rates) and of the policies for comparison:
/// 1.5 times a tick of 0.5 ms. It is longer than a tick, so that a burst of one goal lasts until a thread's
/// next turn. A longer one makes urgent requests wait longer in the disk.
pub const LATENCY_GOAL_DEFAULT: Duration = Duration::from_micros(750);
/// The flow ratio above which the policy of that name raises prices, in thousandths of requests dispatched
/// per request completed. It is Seastar's bound of 1.1, which the policy demonstrates.
#[cfg(feature = "history")]
pub(super) const FLOW_RATIO_LIMIT_PERMILLE: u64 = 1_100;

/// How a group decides whether a request may be dispatched to the disk.
///
/// All but [`Policy::PaceWindow`] and [`Policy::Unlimited`] exist for comparison: they are steps that
/// ScyllaDB's scheduler took. Three of them need the feature `history`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Policy {
    /// Each request is dispatched at once, and none waits in the queue for the disk. For comparisons, and for
    /// disks without figures.
    Unlimited,
    /// 2016: at most this many requests in the disk, whatever their size.
    Concurrency {
        /// The most requests in the disk; 0 counts as 1.
        requests: u32,
    },
    /// 2018: the disk holds at most what it serves within the goal. Operations and bytes are counted
    /// separately (Little's law).
    #[cfg(feature = "history")]
    LittlesLaw {
        /// The time by which the disk's rates are multiplied.
        latency_goal: Duration,
    },
    /// 2022, first level: a token bucket of one second of disk time per second, with bursts of one goal.
    /// Nothing bounds the work in the disk.
    TokenBucket {
        /// Length of a burst.
        latency_goal: Duration,
    },
    /// 2022, both levels: the tokens of the bucket return only with completions.
    #[cfg(feature = "history")]
    TwoLevelBucket {
        /// Length of a burst.
        latency_goal: Duration,
    },
    /// 2023: the token bucket, with prices that rise while more requests are dispatched than complete.
    #[cfg(feature = "history")]
    FlowRatio {
        /// Length of a burst.
        latency_goal: Duration,
    },
    /// A bound on the disk time in flight (the window), and one on the disk time that is dispatched per
    /// second (the pace). [`Control`](crate::Control) decides how large they are.
    PaceWindow {
        /// The latency goal: the disk time that may wait in the disk, more if the disk needs more. The window
        /// is a multiple of it, which trials change. Zero means as little as the disk needs, and
        /// [`LATENCY_GOAL_DEFAULT`] under [`Control::Rates`](crate::Control::Rates).
        latency_goal: Duration,
        /// The latency of the idle disk; `None` if it is learnt.
        base_latency: Option<Duration>,
    },
}

impl Policy {
    /// [`Policy::PaceWindow`] without a stated latency goal or base latency.
    pub const fn pace_window() -> Self {
        Self::PaceWindow { latency_goal: Duration::ZERO, base_latency: None }
    }

    /// The name used in reports and options.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Unlimited => "none",
            Self::Concurrency { .. } => "concurrency",
            #[cfg(feature = "history")]
            Self::LittlesLaw { .. } => "littles-law",
            Self::TokenBucket { .. } => "token-bucket",
            #[cfg(feature = "history")]
            Self::TwoLevelBucket { .. } => "two-level-bucket",
            #[cfg(feature = "history")]
            Self::FlowRatio { .. } => "flow-ratio",
            Self::PaceWindow { .. } => "pace+window",
        }
    }

    /// The latency goal; `None` for [`Policy::Unlimited`].
    pub const fn latency_goal(&self) -> Option<Duration> {
        match *self {
            Self::Unlimited => None,
            Self::Concurrency { .. } => Some(LATENCY_GOAL_DEFAULT),
            Self::TokenBucket { latency_goal } | Self::PaceWindow { latency_goal, .. } => {
                Some(latency_goal)
            }
            #[cfg(feature = "history")]
            Self::LittlesLaw { latency_goal }
            | Self::TwoLevelBucket { latency_goal }
            | Self::FlowRatio { latency_goal } => Some(latency_goal),
        }
    }
}

/// The token bucket that completions refill (ScyllaDB, 2022). Seastar switched it off in 2023, because tokens
/// that nobody fetches in time are lost.
///
/// Tokens circulate: a request takes them from the bucket, its completion sets them aside, and the rate moves
/// them back into the bucket.
///
/// It has three counters that only grow: tokens taken, tokens filled in, and tokens that may be filled in.
/// `taken` may exceed `filled` by one request.
#[cfg(feature = "history")]
#[derive(Debug)]
pub(super) struct TwoLevelBucket {
    taken: AtomicU64,
    filled: AtomicU64,
    fillable: AtomicU64,
    filled_at: AtomicU64,
}

#[cfg(feature = "history")]
impl TwoLevelBucket {
    /// A full bucket of `size`.
    pub(super) fn new(size: DiskTime) -> Self {
        Self {
            taken: AtomicU64::new(0),
            filled: AtomicU64::new(size.units()),
            fillable: AtomicU64::new(size.units()),
            filled_at: AtomicU64::new(0),
        }
    }

    pub(super) fn available(&self, now: Time) -> DiskTime {
        self.fill(now);
        let filled = self.filled.load(Ordering::Relaxed);
        DiskTime::from_units(filled.saturating_sub(self.taken.load(Ordering::Relaxed)))
    }

    /// The time at which `wanted` is available; `None` if that takes completions.
    pub(super) fn available_at(&self, now: Time, wanted: DiskTime) -> Option<Time> {
        self.fill(now);
        let needed = self.taken.load(Ordering::Relaxed).saturating_add(wanted.units());
        let missing = needed.saturating_sub(self.filled.load(Ordering::Relaxed));
        let reserve = self.fillable.load(Ordering::Relaxed);
        let reachable = missing == 0 || needed <= reserve;
        reachable.then(|| now.plus_nanos(DiskTime::from_units(missing).as_nanos_ceil()))
    }

    pub(super) fn try_take(&self, now: Time, amount: DiskTime) -> bool {
        self.fill(now);
        let (order, filled) = (Ordering::Relaxed, || self.filled.load(Ordering::Relaxed));
        let next = |taken: u64| (taken < filled()).then(|| taken.saturating_add(amount.units()));
        self.taken.fetch_update(order, order, next).is_ok()
    }

    pub(super) fn completed(&self, amount: DiskTime) {
        self.fillable.fetch_add(amount.units(), Ordering::Relaxed);
    }

    /// Moves tokens into the bucket that the rate allows since the last call. Where completions have set
    /// fewer aside, the rest of that allowance is lost.
    fn fill(&self, now: Time) {
        let filled_at = self.filled_at.load(Ordering::Relaxed);
        let elapsed = now.nanos_since(Time::from_nanos(filled_at));
        let order = Ordering::Relaxed;
        if elapsed == 0
            || self.filled_at.compare_exchange(filled_at, now.as_nanos(), order, order).is_err()
        {
            return;
        }
        let filled = self.filled.load(order);
        let reserve = self.fillable.load(order).saturating_sub(filled);
        let moved = DiskTime::from_nanos(elapsed).units().min(reserve);
        self.filled.fetch_add(moved, order);
    }
}
