//! The counters and the backlog of a class's deleters.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use forebay_core::Time;

use crate::sys::lock::Lock;

/// The counters and the backlog of the [deleters](crate::Deleter) of one class.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Discards {
    /// The name of the class.
    pub class: String,
    /// Files whose deletion was requested and has not ended.
    pub backlog_files: u64,
    /// The size of these on the disk, in bytes.
    pub backlog_bytes: u64,
    /// How long the oldest of them has waited, in nanoseconds; 0 if there is none.
    pub oldest_nanos: u64,
    /// The present rate limit in bytes per second, which rises as the backlog nears its maximum; 0
    /// if there is none.
    pub rate_limit: u64,
    /// The bytes freed in the last whole second in which any were freed.
    pub rate: u64,
    /// Files that were deleted.
    pub files: u64,
    /// The part of these that were unlinked at once.
    pub unlinked: u64,
    /// Files that could not be deleted.
    pub errors: u64,
    /// Bytes that were freed in steps.
    pub bytes: u64,
    /// Extents, or parts of them, that were freed in steps.
    pub commands: u64,
    /// Steps, each with a flush.
    pub steps: u64,
}

/// The counters of one class's deleters.
#[derive(Debug, Default)]
pub(crate) struct DiscardCounts {
    pub(crate) backlog_files: AtomicU64,
    pub(crate) backlog_bytes: AtomicU64,
    /// The time since which the oldest file waits, in nanoseconds; 0 if none waits.
    pub(crate) oldest: AtomicU64,
    pub(crate) rate_limit: AtomicU64,
    rate: AtomicU64,
    /// The present second, and the bytes freed in it.
    second: AtomicU64,
    in_second: AtomicU64,
    pub(crate) files: AtomicU64,
    pub(crate) unlinked: AtomicU64,
    pub(crate) errors: AtomicU64,
    bytes: AtomicU64,
    commands: AtomicU64,
    steps: AtomicU64,
    pub(crate) urgency: Lock<Urgency>,
}

/// The backlog of one deleter of a class.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiting {
    /// The number of the deleter.
    pub(crate) owner: u64,
    /// The urgency: the backlog as a fraction of its maximum.
    pub(crate) part: f64,
    /// The time since which the oldest file waits, in nanoseconds; 0 if none waits.
    pub(crate) oldest: u64,
}

/// The urgency of all deleters of a class.
#[derive(Debug, Default)]
pub(crate) struct Urgency {
    /// The backlogs of the deleters that have one.
    waiting: Vec<Waiting>,
    /// The shares of the class while nothing is urgent, and those that were set instead.
    raised: Option<(u32, u32)>,
}

impl Urgency {
    /// Sets the backlog of one deleter. Returns the highest urgency, and the time since which the
    /// oldest file of all waits.
    pub(crate) fn note(&mut self, one: Waiting) -> (f64, u64) {
        self.waiting.retain(|known| known.owner != one.owner);
        if one.oldest > 0 {
            self.waiting.push(one);
        }
        let part = self.waiting.iter().map(|one| one.part).fold(0.0, f64::max);
        (part, self.waiting.iter().map(|one| one.oldest).min().unwrap_or(0))
    }

    /// The new shares of the class, if they differ from `now`. `wanted` computes them from the
    /// shares while nothing is urgent. Shares that others set in the meantime become those.
    pub(crate) fn shares(&mut self, now: u32, wanted: impl Fn(u32) -> Option<u32>) -> Option<u32> {
        let calm = self.raised.filter(|raised| raised.1 == now).map_or(now, |raised| raised.0);
        let wanted = wanted(calm);
        self.raised = wanted.map(|shares| (calm, shares));
        Some(wanted.unwrap_or(calm)).filter(|shares| *shares != now)
    }
}

impl DiscardCounts {
    pub(crate) fn add_step(&self, now: Time, bytes: u64, commands: u64) {
        self.bytes.fetch_add(bytes, Relaxed);
        self.commands.fetch_add(commands, Relaxed);
        self.steps.fetch_add(1, Relaxed);
        let second = now.as_nanos() / 1_000_000_000;
        if self.second.swap(second, Relaxed) != second {
            self.rate.store(self.in_second.swap(0, Relaxed), Relaxed);
        }
        self.in_second.fetch_add(bytes, Relaxed);
    }

    pub(crate) fn snapshot(&self, class: &str, now: Time) -> Discards {
        let get = |count: &AtomicU64| count.load(Relaxed);
        let backlog_files = get(&self.backlog_files);
        let oldest = if backlog_files > 0 { get(&self.oldest) } else { 0 };
        Discards {
            class: class.to_owned(),
            backlog_files,
            backlog_bytes: get(&self.backlog_bytes),
            oldest_nanos: if oldest == 0 { 0 } else { now.as_nanos().saturating_sub(oldest) },
            rate_limit: get(&self.rate_limit),
            rate: get(&self.rate),
            files: get(&self.files),
            unlinked: get(&self.unlinked),
            errors: get(&self.errors),
            bytes: get(&self.bytes),
            commands: get(&self.commands),
            steps: get(&self.steps),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_rise_from_what_others_set_and_fall_back_to_it() {
        let mut urgency = Urgency::default();
        let tenfold = |calm: u32| Some(calm * 10);
        assert_eq!(urgency.shares(50, tenfold), Some(500));
        // Another deleter of the class checks.
        assert_eq!(urgency.shares(500, tenfold), None);
        assert_eq!(urgency.shares(500, |_| None), Some(50));
        assert_eq!(urgency.shares(50, |_| None), None);
        // An operator sets the shares, while nothing is urgent and while something is.
        assert_eq!(urgency.shares(400, |_| None), None);
        assert_eq!(urgency.shares(400, tenfold), Some(4000));
        assert_eq!(urgency.shares(70, tenfold), Some(700));
        assert_eq!(urgency.shares(700, |_| None), Some(70));
    }

    #[test]
    fn the_most_urgent_and_the_oldest_of_all_deleters_count() {
        let mut urgency = Urgency::default();
        let one = Waiting { owner: 1, part: 0.9, oldest: 7 };
        assert_eq!(urgency.note(one), (0.9, 7));
        assert_eq!(urgency.note(Waiting { owner: 2, part: 0.0, oldest: 0 }), (0.9, 7));
        assert_eq!(urgency.note(Waiting { owner: 2, part: 0.2, oldest: 3 }), (0.9, 3));
        assert_eq!(urgency.note(Waiting { oldest: 0, ..one }), (0.2, 3));
    }
}
