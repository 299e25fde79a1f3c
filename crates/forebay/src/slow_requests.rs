//! Requests that took long in the disk, and their reports.
//!
//! Decision: `docs/decisions/0042-slow-requests.md`.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use forebay_core::{Op, Time};

/// The shortest time between two reports of one I/O group, in nanoseconds.
const SILENCE_NANOS: u64 = 1_000_000_000;
/// The fraction of the threshold's excess over its bound that is left after a second.
const LEFT: (u64, u64) = (7, 8);

/// A request, or a permit, that took long in the disk, and the other requests in the disk then: see
/// [`SchedulerBuilder::slow_requests`](crate::SchedulerBuilder::slow_requests).
///
/// Each part of a large request counts separately.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SlowRequest {
    /// The name of the disk.
    pub disk: String,
    /// The name of the class.
    pub class: String,
    /// The operation.
    pub op: Op,
    /// The length in bytes; 0 for a flush.
    pub len: u64,
    /// The time from being queued to being dispatched.
    pub in_queue: Duration,
    /// The time from dispatch to its end; for a permit, the time for which it was held.
    pub in_disk: Duration,
    /// The number of requests in the disk when it ended, by class, without classes that had none.
    /// It is up to a millisecond old.
    pub concurrent: Vec<(String, u32)>,
    /// The disk time of all requests in the disk when it ended.
    pub inflight_disk_time: Duration,
    /// The number of slow requests since the last report that were not reported.
    pub unreported: u64,
    /// The threshold for the next report.
    pub next_from: Duration,
}

/// The text of the log message.
impl fmt::Display for SlowRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { disk, class, op, len, .. } = self;
        let what = match op {
            Op::Read => "a read",
            Op::Write => "a write",
            Op::Discard => "a discard",
            Op::Flush => "a flush",
        };
        let of = if *op == Op::Flush { String::new() } else { format!(" of {len} B") };
        let millis = |time: Duration| time.as_micros() as f64 / 1000.0;
        write!(
            f,
            "slow: {what}{of} of the class `{class}` took {} ms in the disk `{disk}`, after {} ms \
             in the queue; concurrent requests when it ended: ",
            millis(self.in_disk),
            millis(self.in_queue)
        )?;
        let concurrent: Vec<_> =
            self.concurrent.iter().map(|(class, count)| format!("{count} of `{class}`")).collect();
        let concurrent =
            if concurrent.is_empty() { String::from("nothing") } else { concurrent.join(", ") };
        write!(f, "{concurrent}, {} ms of disk time", millis(self.inflight_disk_time))?;
        if self.unreported > 0 {
            write!(f, "; {} more were slow since the last report", self.unreported)?;
        }
        write!(f, "; the next is reported above {} ms", millis(self.next_from))
    }
}

/// The time in the disk from which a request is slow. It doubles with each report, and loses an
/// eighth of its excess over the bound each second.
#[derive(Debug)]
pub(crate) struct SlowRequests {
    bound_nanos: u64,
    threshold_nanos: AtomicU64,
    silent_until: AtomicU64,
    unreported: AtomicU64,
}

impl SlowRequests {
    /// `bound` is the least threshold. With `None` no request is slow.
    pub(crate) fn new(bound: Option<Duration>) -> Self {
        let nanos = |bound: Duration| u64::try_from(bound.as_nanos()).unwrap_or(u64::MAX).max(1);
        let bound_nanos = bound.map_or(u64::MAX, nanos);
        Self {
            bound_nanos,
            threshold_nanos: AtomicU64::new(bound_nanos),
            silent_until: AtomicU64::new(0),
            unreported: AtomicU64::new(0),
        }
    }

    /// Whether a request that was in the disk for `disk_nanos` is slow.
    #[inline]
    pub(crate) fn is_slow(&self, disk_nanos: u64) -> bool {
        disk_nanos >= self.threshold_nanos.load(Ordering::Relaxed)
    }

    /// Whether a slow request is reported. Returns the number of unreported ones since the last
    /// report, and the threshold of the next report.
    pub(crate) fn take_turn(&self, now: Time) -> Option<(u64, Duration)> {
        let relaxed = Ordering::Relaxed;
        let until = self.silent_until.load(relaxed);
        let next = now.plus_nanos(SILENCE_NANOS).as_nanos();
        if now.as_nanos() < until
            || self.silent_until.compare_exchange(until, next, relaxed, relaxed).is_err()
        {
            self.unreported.fetch_add(1, relaxed);
            return None;
        }
        let doubled = self.threshold_nanos.load(relaxed).saturating_mul(2).min(u64::MAX - 1);
        self.threshold_nanos.store(doubled, relaxed);
        Some((self.unreported.swap(0, relaxed), Duration::from_nanos(doubled)))
    }

    /// Lowers the threshold. Call it once a second.
    pub(crate) fn decay(&self) {
        let relaxed = Ordering::Relaxed;
        let now = self.threshold_nanos.load(relaxed);
        let above = now.saturating_sub(self.bound_nanos);
        if above > 0 {
            let left = self.bound_nanos + above / LEFT.1 * LEFT.0;
            // A concurrent report has priority.
            let _ = self.threshold_nanos.compare_exchange(now, left, relaxed, relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn at(millis: u64) -> Time {
        Time::from_nanos(millis * MS)
    }

    #[test]
    fn the_threshold_doubles_with_each_that_is_reported_and_falls_back_to_its_bound() {
        let slow = SlowRequests::new(Some(Duration::from_millis(100)));
        assert!(!slow.is_slow(100 * MS - 1) && slow.is_slow(100 * MS));
        assert_eq!(slow.take_turn(at(0)), Some((0, Duration::from_millis(200))));
        assert!(!slow.is_slow(200 * MS - 1) && slow.is_slow(200 * MS));
        assert_eq!(slow.take_turn(at(1000)), Some((0, Duration::from_millis(400))));
        for _ in 0..200 {
            slow.decay();
        }
        assert!(!slow.is_slow(100 * MS - 1) && slow.is_slow(100 * MS + 10));
    }

    #[test]
    fn no_more_than_one_a_second_is_reported_and_the_others_are_counted() {
        let slow = SlowRequests::new(Some(Duration::from_nanos(1)));
        let reported: Vec<_> = (0..3000).filter_map(|ms| slow.take_turn(at(ms))).collect();
        assert_eq!(
            reported.iter().map(|(unreported, _)| *unreported).collect::<Vec<_>>(),
            [0, 999, 999]
        );
    }

    #[test]
    fn a_disk_that_is_always_slow_is_reported_every_few_seconds_for_ever() {
        let slow = SlowRequests::new(Some(Duration::from_millis(100)));
        let mut reported = 0;
        for second in 0..600 {
            if slow.is_slow(3000 * MS) && slow.take_turn(at(second * 1000)).is_some() {
                reported += 1;
            }
            slow.decay();
        }
        assert!((60..=200).contains(&reported), "{reported} in ten minutes");
    }

    #[test]
    fn without_a_bound_nothing_is_slow() {
        let slow = SlowRequests::new(None);
        slow.decay();
        assert!(!slow.is_slow(u64::MAX - 1));
        let slow = SlowRequests::new(Some(Duration::MAX));
        assert!(!slow.is_slow(u64::MAX - 1));
    }

    #[test]
    fn the_log_says_what_it_was_and_what_was_concurrent() {
        let mut slow = SlowRequest {
            disk: "d".into(),
            class: "queries".into(),
            op: Op::Read,
            len: 4096,
            in_queue: Duration::from_micros(250),
            in_disk: Duration::from_millis(1200),
            concurrent: vec![("compaction".into(), 7)],
            inflight_disk_time: Duration::from_micros(1500),
            unreported: 3,
            next_from: Duration::from_secs(2),
        };
        assert_eq!(
            slow.to_string(),
            "slow: a read of 4096 B of the class `queries` took 1200 ms in the disk `d`, after \
             0.25 ms in the queue; concurrent requests when it ended: 7 of `compaction`, 1.5 ms of disk \
             time; 3 more were slow since the last report; the next is reported above 2000 ms"
        );
        (slow.op, slow.concurrent, slow.unreported) = (Op::Flush, Vec::new(), 0);
        assert!(slow.to_string().starts_with("slow: a flush of the class"), "{slow}");
        assert!(slow.to_string().contains("ended: nothing"), "{slow}");
    }
}
