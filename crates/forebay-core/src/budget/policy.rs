//! The policies to choose from.

use core::time::Duration;

#[cfg(feature = "history")]
use crate::sync::{AtomicU64, Ordering};
#[cfg(feature = "history")]
use crate::{DiskTime, Time};

/// Latency goal of [`Control::Rates`](crate::Control::Rates), and of policies to compare with,
/// unless stated: 1.5 times a tick of 0.5 ms. It is longer than a tick, so that a burst of one goal
/// lasts until a thread's next turn. A longer one makes urgent requests wait longer in the disk.
pub const LATENCY_GOAL_DEFAULT: Duration = Duration::from_micros(750);
/// The flow ratio above which the policy of that name raises prices, in thousandths of requests
/// dispatched per request completed. It is Seastar's bound of 1.1, which that policy is there to
/// show.
#[cfg(feature = "history")]
pub(super) const FLOW_RATIO_LIMIT_PERMILLE: u64 = 1_100;

/// How a group decides whether a request may go to the disk.
///
/// All but [`Policy::PaceWindow`] and [`Policy::Unlimited`] are there to compare
/// with: they are the steps that ScyllaDB's scheduler took. Those that the
/// others are made of stand behind the feature `history`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Policy {
    /// Everything goes at once; nothing waits in the queue. For comparisons,
    /// and for disks without figures.
    Unlimited,
    /// 2016: at most this many requests in the disk, whatever their size.
    Concurrency {
        /// Requests in the disk; at least 1.
        requests: u32,
    },
    /// 2018: what the disk serves within the goal is in the disk, operations
    /// and bytes counted apart (Little's law).
    #[cfg(feature = "history")]
    LittlesLaw {
        /// The time to multiply the disk's rates with.
        latency_goal: Duration,
    },
    /// 2022, first level: one second of disk time per second, with bursts of
    /// one goal. Nothing bounds what is in the disk.
    TokenBucket {
        /// Length of a burst.
        latency_goal: Duration,
    },
    /// 2022: the tokens of the bucket come back only with completions.
    #[cfg(feature = "history")]
    TwoLevelBucket {
        /// Length of a burst.
        latency_goal: Duration,
    },
    /// 2023: the bucket, with prices raised while more is dispatched than
    /// completes.
    #[cfg(feature = "history")]
    FlowRatio {
        /// Length of a burst.
        latency_goal: Duration,
    },
    /// A bound on the disk time that is unfinished in the disk (the window), and on the disk time
    /// that is sent per second (the pace). [`Control`](crate::Control) decides how large they are.
    PaceWindow {
        /// The disk time that the window begins with, if the disk needs no more; zero for as much
        /// as it needs. Trials change it from there.
        latency_goal: Duration,
        /// Latency of the idle disk, if known; learnt otherwise.
        base_latency: Option<Duration>,
    },
}

impl Policy {
    /// Pace and window of as much as the disk needs.
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

    /// The latency goal; `None` for an open budget.
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

/// The token bucket that completions refill (ScyllaDB, 2022; switched off in Seastar in 2023, because
/// tokens that nobody fetches in time are lost).
///
/// Tokens circulate: a request takes them from the bucket, its completion puts
/// them aside, and the rate moves what was put aside back into the bucket.
///
/// Three counters that only grow: what was taken, what was filled in, and what
/// may be filled in. Taken may exceed filled in by one request.
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

    /// When `wanted` is available; `None` if that takes completions.
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

    /// Moves what the rate allows since the last time; what was not put aside
    /// by then is not made up for later.
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
