//! What a burst has left in a busy disk is let to drain.
//!
//! A disk that does what the pace hands out, and no more, has as much as it takes to
//! answer; what is there beyond that all the time stays for ever. As CoDel does for
//! packets (Nichols and Jacobson, 2012), the least of an interval tells the one from
//! the other.

use crate::budget::DRAIN_PART;
use crate::{DiskTime, Time};

/// The least is taken over so many windows.
const WINDOWS: u64 = 2;
/// A full window has drained after so many intervals.
const DRAINED_INTERVALS: u64 = DRAIN_PART / WINDOWS;
/// After so many calm intervals in a row what drains next is something else.
const CALM_INTERVALS: u64 = 16;
/// It helps if it takes away such a part meanwhile.
const HELPS_PART: u64 = 4;
/// What did not drain is tried again after so many more.
const FORGET_INTERVALS: u64 = 16 * DRAINED_INTERVALS;

/// The least that a queue has lately found in the disk.
#[derive(Clone, Copy, Debug)]
pub(super) struct Drain {
    least: DiskTime,
    /// The largest request of the interval.
    largest: DiskTime,
    until: Time,
    /// Whether the pace runs a little below the disk, and for how many intervals it
    /// has, but for calm ones between them.
    runs: bool,
    ran: u64,
    calm: u64,
    /// The least when that began.
    began_with: DiskTime,
    /// What was left after as many as it takes: requests that take long by themselves.
    floor: DiskTime,
    floor_until: Time,
}

impl Drain {
    pub(super) const BEGIN: Self = Self {
        least: DiskTime::MAX,
        largest: DiskTime::ZERO,
        until: Time::ZERO,
        runs: false,
        ran: 0,
        calm: 0,
        began_with: DiskTime::ZERO,
        floor: DiskTime::ZERO,
        floor_until: Time::ZERO,
    };

    /// Whether the pace runs a little below the disk.
    #[inline]
    pub(super) fn runs(&self) -> bool {
        self.runs
    }

    /// So much was in the disk when a request of `cost` went there. Whether that ends an
    /// interval.
    #[inline]
    pub(super) fn find(&mut self, now: Time, found: DiskTime, cost: DiskTime) -> bool {
        self.least = self.least.min(found);
        self.largest = self.largest.max(cost);
        now >= self.until
    }

    /// An interval has ended, on a disk with such a window that is busy with `base`,
    /// or with any request.
    pub(super) fn end_interval(&mut self, now: Time, base: DiskTime, window: DiskTime) {
        let nanos = interval_nanos(window);
        // who comes by now and then has seen a moment, not an interval
        let is_seen = now < self.until.plus_nanos(nanos);
        if now >= self.floor_until {
            self.floor = DiskTime::ZERO;
        }
        let floor = self.floor.units();
        let enough = base.max(self.largest).units().max(floor.saturating_add(floor / 4));
        self.runs = is_seen && self.least.units() > enough;
        self.calm = if self.runs { 0 } else { self.calm + 1 };
        if self.runs {
            self.ran += 1;
        } else if self.calm >= CALM_INTERVALS {
            self.ran = 0;
        }
        if self.runs && self.ran == 1 {
            self.began_with = self.least;
        } else if self.ran > DRAINED_INTERVALS {
            self.go_on_or_leave(now.plus_nanos(nanos.saturating_mul(FORGET_INTERVALS)));
        }
        self.begin_interval(now, nanos);
    }

    /// As long as a drain takes it has run: on if it has helped, else what is left is
    /// left alone for a while.
    fn go_on_or_leave(&mut self, until: Time) {
        let before = core::mem::replace(&mut self.began_with, self.least).units();
        let has_helped = self.least.units() < before - before / HELPS_PART;
        self.ran = u64::from(has_helped);
        self.runs &= has_helped;
        if !has_helped {
            self.floor = self.least;
            self.floor_until = until;
        }
    }

    /// What is seen says nothing, and nothing follows from it for as long as a drain
    /// takes.
    pub(super) fn rest(&mut self, now: Time, window: DiskTime) {
        let nanos = interval_nanos(window);
        self.runs = false;
        self.ran = 0;
        self.floor = DiskTime::MAX;
        self.floor_until = now.plus_nanos(nanos.saturating_mul(DRAINED_INTERVALS));
        self.begin_interval(now, nanos);
    }

    fn begin_interval(&mut self, now: Time, nanos: u64) {
        self.least = DiskTime::MAX;
        self.largest = DiskTime::ZERO;
        self.until = now.plus_nanos(nanos);
    }
}

fn interval_nanos(window: DiskTime) -> u64 {
    window.as_nanos_ceil().saturating_mul(WINDOWS)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: DiskTime = DiskTime::from_nanos(100_000);
    const COST: DiskTime = DiskTime::from_nanos(10_000);
    const WINDOW: DiskTime = DiskTime::from_nanos(1_500_000);
    const INTERVAL_NANOS: u64 = 3_000_000;

    /// Of `intervals`, in each of which the least was `micros`, those that drained.
    fn drained(drain: &mut Drain, intervals: u64, micros: u64) -> u64 {
        let found = DiskTime::from_nanos(micros * 1000);
        let mut drained = 0;
        for _ in 0..intervals {
            let now = drain.until;
            assert!(drain.find(now, found, COST));
            drain.end_interval(now, BASE, WINDOW);
            drained += u64::from(drain.runs());
        }
        drained
    }

    fn begin() -> Drain {
        let mut drain = Drain::BEGIN;
        drain.end_interval(Time::from_nanos(1), BASE, WINDOW);
        drain
    }

    #[test]
    fn what_stays_in_the_disk_drains_until_it_has_what_it_takes() {
        let mut drain = begin();
        assert_eq!(drained(&mut drain, 10, 99), 0);
        assert_eq!(drained(&mut drain, 10, 101), 10);
        assert_eq!(drained(&mut drain, 10, 100), 0);
    }

    #[test]
    fn one_moment_with_little_in_the_disk_is_enough() {
        let mut drain = begin();
        for micros in [1500, 50, 1500] {
            let now = Time::from_nanos(2);
            assert!(!drain.find(now, DiskTime::from_nanos(micros * 1000), COST));
        }
        assert_eq!(drained(&mut drain, 1, 1500), 0);
    }

    #[test]
    fn what_does_not_drain_is_given_up_and_what_comes_on_top_is_not() {
        let mut drain = begin();
        let ran = drained(&mut drain, 10_000, 500);
        assert!((1..=DRAINED_INTERVALS * 11).contains(&ran), "{ran} of 10,000");
        while drained(&mut drain, 1, 500) > 0 {}
        assert_eq!(drained(&mut drain, 10, 700), 10);
        assert_eq!(drained(&mut drain, 10, 620), 0);
    }

    #[test]
    fn who_comes_by_now_and_then_drains_nothing() {
        let mut drain = begin();
        for round in 1..100 {
            let now = Time::from_nanos(round * 3 * INTERVAL_NANOS);
            assert!(drain.find(now, WINDOW, COST));
            drain.end_interval(now, BASE, WINDOW);
            assert!(!drain.runs());
        }
    }
}
