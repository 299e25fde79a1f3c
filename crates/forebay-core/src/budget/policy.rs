//! The policies to choose from.

use core::time::Duration;

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
