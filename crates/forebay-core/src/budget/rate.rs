//! How fast a policy hands out disk time.

use super::pace::Pace;
use super::policy::Policy;
#[cfg(feature = "history")]
use super::two_level::TwoLevelBucket;
use crate::{DiskTime, Time};

/// The rate of a policy.
#[derive(Debug)]
pub(super) enum Rate {
    Unlimited,
    Pace(Pace),
    #[cfg(feature = "history")]
    TwoLevel(TwoLevelBucket),
}

impl Rate {
    /// `sole` if a single shard takes from it.
    #[cfg_attr(not(feature = "history"), expect(unused_variables, reason = "for buckets"))]
    pub(super) fn new(policy: &Policy, burst: DiskTime, sole: bool) -> Self {
        match policy {
            Policy::Unlimited | Policy::Concurrency { .. } => Self::Unlimited,
            Policy::TokenBucket { .. } | Policy::PaceWindow { .. } => Self::Pace(Pace::new(sole)),
            #[cfg(feature = "history")]
            Policy::LittlesLaw { .. } => Self::Unlimited,
            #[cfg(feature = "history")]
            Policy::FlowRatio { .. } => Self::Pace(Pace::new(sole)),
            #[cfg(feature = "history")]
            Policy::TwoLevelBucket { .. } => Self::TwoLevel(TwoLevelBucket::new(burst)),
        }
    }

    pub(super) fn available(&self, now: Time, burst: DiskTime) -> DiskTime {
        match self {
            Self::Unlimited => burst,
            Self::Pace(pace) => pace.available(now, burst),
            #[cfg(feature = "history")]
            Self::TwoLevel(bucket) => bucket.available(now),
        }
    }

    /// Whether anything is available.
    #[inline]
    pub(super) fn is_open(&self, now: Time, burst: DiskTime) -> bool {
        match self {
            Self::Unlimited => true,
            Self::Pace(pace) => pace.is_open(now, burst),
            #[cfg(feature = "history")]
            Self::TwoLevel(bucket) => bucket.available(now) > DiskTime::ZERO,
        }
    }

    /// When `wanted` is available, if time alone brings it about.
    pub(super) fn available_at(
        &self,
        now: Time,
        burst: DiskTime,
        wanted: DiskTime,
    ) -> Option<Time> {
        match self {
            Self::Unlimited => Some(now),
            Self::Pace(pace) => Some(pace.available_at(now, burst, wanted)),
            #[cfg(feature = "history")]
            Self::TwoLevel(bucket) => bucket.available_at(now, wanted),
        }
    }

    /// Since when, or from when on, anything is available.
    pub(super) fn open_since(&self, burst: DiskTime) -> Time {
        match self {
            Self::Pace(pace) => pace.available_at(Time::ZERO, burst, DiskTime::from_units(1)),
            _ => Time::MAX,
        }
    }

    pub(super) fn try_take(&self, now: Time, burst: DiskTime, amount: DiskTime) -> bool {
        self.try_take_from(now, (burst, DiskTime::ZERO), amount)
    }

    /// Takes `amount` if anything is available, of what passed in vain first.
    #[inline]
    pub(super) fn try_take_from(
        &self,
        now: Time,
        (burst, passed): (DiskTime, DiskTime),
        amount: DiskTime,
    ) -> bool {
        match self {
            Self::Unlimited => true,
            Self::Pace(pace) => pace.try_take_from(now, (burst, passed), amount),
            #[cfg(feature = "history")]
            Self::TwoLevel(bucket) => bucket.try_take(now, amount),
        }
    }

    /// A number that changes whenever something is taken; `None` where what is
    /// taken is not counted.
    pub(super) fn spent(&self) -> Option<u64> {
        match self {
            Self::Pace(pace) => Some(pace.paid_at()),
            _ => None,
        }
    }

    #[cfg(feature = "history")]
    pub(super) fn completed(&self, amount: DiskTime) {
        if let Self::TwoLevel(bucket) = self {
            bucket.completed(amount);
        }
    }
}
