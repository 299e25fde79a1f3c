//! The requests that this queue has in the disk.

use crate::budget::Overdue;
use crate::requests::{Fifo, Requests, State};
use crate::{DiskTime, Time};

/// A queue with at most this many requests in the disk asks others to wake it. So does a queue whose
/// latest request was dispatched long ago.
const SELF_WAKE_REQUESTS: u32 = 1;
/// A request that was given up may be forgotten this long after its dispatch, in nanoseconds (1 s), if
/// its place in the table is needed. Until then its completion is still recognised.
const FORGOTTEN_NANOS: u64 = 1_000_000_000;

/// The requests in the disk.
#[derive(Debug, Default)]
pub(super) struct InDisk {
    /// The requests that the window counts, oldest first.
    counted: Fifo,
    /// Their disk time.
    held: DiskTime,
    /// The requests that were given up, the longest ago first.
    given_up: Fifo,
    /// How much later than from a disk that keeps up the last completion came, in nanoseconds.
    lag_nanos: Option<i64>,
    /// No overdue request can be given up before this time.
    pub(super) give_up_after: Time,
    /// Whether holders of permits do the I/O, and not the owner of the queue.
    pub(super) is_of_permits: bool,
}

impl InDisk {
    /// Adds a request that is dispatched.
    #[inline(always)]
    pub(super) fn enter(&mut self, requests: &mut Requests, index: u32, cost: DiskTime) {
        requests.push_back(&mut self.counted, index);
        self.held = self.held.plus(cost);
    }

    /// Removes a request that the window no longer counts.
    #[inline(always)]
    pub(super) fn leave(&mut self, requests: &mut Requests, index: u32, cost: DiskTime) {
        debug_assert!(self.held >= cost, "a request leaves the window that is in it");
        requests.unlink(&mut self.counted, index);
        self.held = self.held.minus(cost);
    }

    /// Marks a request as given up that has just left the window.
    pub(super) fn give_up(&mut self, requests: &mut Requests, index: u32) {
        requests.at_mut(index).state = State::Overdue;
        requests.push_back(&mut self.given_up, index);
    }

    /// Removes a request that was given up and has completed after all.
    pub(super) fn returned_late(&mut self, requests: &mut Requests, index: u32) {
        requests.unlink(&mut self.given_up, index);
    }

    /// Removes the request that was given up first, if that was long ago. Its completion is no longer
    /// expected.
    pub(super) fn forget(&mut self, requests: &mut Requests, now: Time) -> Option<u32> {
        let oldest = self.given_up.head()?;
        let is_old = now.nanos_since(requests.at(oldest).dispatched_at) >= FORGOTTEN_NANOS;
        is_old.then(|| {
            requests.unlink(&mut self.given_up, oldest);
            oldest
        })
    }

    /// Disk time of the requests that the window counts.
    pub(super) fn held(&self) -> DiskTime {
        self.held
    }

    pub(super) fn is_empty(&self) -> bool {
        self.held == DiskTime::ZERO
    }

    /// The request that was dispatched first, of those that the window counts.
    pub(super) fn oldest(&self) -> Option<u32> {
        self.counted.head()
    }

    /// When that request was dispatched.
    pub(super) fn oldest_at(&self, requests: &Requests) -> Option<Time> {
        self.oldest().map(|oldest| requests.at(oldest).dispatched_at)
    }

    /// Whether the disk may have kept a request for too long.
    pub(super) fn may_be_overdue(&self, requests: &Requests, now: Time) -> bool {
        self.oldest_at(requests).is_some_and(|since| Overdue::is_possible(now.nanos_since(since)))
    }

    /// When a disk that keeps up completes the latest request.
    pub(super) fn last_due_at(&self, requests: &Requests) -> Option<Time> {
        self.counted.tail().map(|latest| requests.at(latest).due_at)
    }

    /// How much later than from a disk that keeps up the last completion came, in nanoseconds. It is
    /// negative if earlier, and `None` if the request was dispatched when the shard was alone.
    pub(super) fn lag_nanos(&self) -> Option<i64> {
        self.lag_nanos
    }

    /// The lag that the oldest request has at least, because it has not completed, in nanoseconds.
    pub(super) fn lag_least_nanos(&self, requests: &Requests, now: Time) -> i64 {
        self.oldest().map_or(i64::MIN, |oldest| lag_nanos(now, requests.at(oldest).due_at))
    }

    /// Records a completion that a disk that keeps up would have returned at `due_at`.
    pub(super) fn came_back(&mut self, now: Time, due_at: Time) {
        self.lag_nanos = (due_at != Time::MAX).then(|| lag_nanos(now, due_at));
    }

    /// The time from which this queue cannot rely on completions of its own to poll again. `count` is
    /// the number of its requests in the disk, including those that were given up. A disk that keeps up
    /// serves them within `service_nanos`.
    pub(super) fn self_wake_deadline(
        &self,
        requests: &Requests,
        count: u32,
        service_nanos: u64,
    ) -> Time {
        match self.counted.tail() {
            Some(latest) if count > SELF_WAKE_REQUESTS => {
                requests.at(latest).dispatched_at.plus_nanos(service_nanos)
            }
            _ => Time::ZERO,
        }
    }
}

fn lag_nanos(now: Time, due_at: Time) -> i64 {
    now.as_nanos().cast_signed().saturating_sub_unsigned(due_at.as_nanos())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_to_what_went_when_the_shard_was_alone_says_nothing_of_the_lag() {
        let mut in_disk = InDisk::default();
        let now = Time::from_nanos(5_000);
        in_disk.came_back(now, Time::MAX);
        assert_eq!(in_disk.lag_nanos(), None);
        for (due_nanos, lag) in [(4_000, 1_000), (7_000, -2_000)] {
            in_disk.came_back(now, Time::from_nanos(due_nanos));
            assert_eq!(in_disk.lag_nanos(), Some(lag));
        }
    }
}
