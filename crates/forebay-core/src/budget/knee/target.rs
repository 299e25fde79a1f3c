//! A cap on the window that enforces a latency target.
//!
//! While the target is missed, the cap is lowered step by step until the target holds. If it holds at no cap,
//! there is no cap for a while.
//!
//! Decision: `docs/decisions/0008-latency-target-cap.md`.

use super::measured::MILLION;

/// The number of requests that may miss the target in one measurement. A measurement has as many requests as
/// allow this number of misses. With fewer, the part of misses is noise; with more, the cap follows the disk
/// later.
const ALLOWED: i64 = 6;
/// The least number of requests in a measurement, unless twice the allowed number has already missed the
/// target. It binds where the target allows more than 9 % of requests to miss.
const REQUESTS_MIN: i64 = 64;
/// The intervals in a row without a request that the target is about, after which the cap is removed. Either
/// no such request needs the cap, or it starves their class. With a smaller number, a short pause of the load
/// removes the cap.
const UNUSED: i64 = 16;
/// The most requests of an interval that are believed; more are an error of the clock. It keeps the sums of a
/// measurement within the number range.
const REQUESTS_MAX: i64 = 1 << 30;
/// The factor on the cap after a measurement that missed the target, in thousandths. A larger step passes
/// over the window that keeps the target, as steps of 1.4 did. With a smaller one, the target is kept later.
const DOWN: i64 = 800;
/// The factor on the cap while the target holds, in thousandths. A larger step misses the target
/// again sooner; a smaller one leaves rate unused for longer.
const UP: i64 = 1100;
/// The smallest cap, in thousandths of an effective goal: the smallest window of trials. A target
/// that is missed there is given up for a while.
const CAP_MIN: i64 = 250;
/// The part of the allowed misses up to which the cap may be raised, in thousandths. Nearer to the allowed
/// number, a larger cap would miss the target.
const HOLDS: i64 = 750;
/// The measurements with few misses after which a cap near one that missed the target is tried again. The
/// first number is for the first time; each further miss doubles it, up to the second. Smaller numbers miss
/// the target more often; larger ones leave rate unused for longer.
const CALM: (i64, i64) = (1, 64);
/// No lower cap is tried if the part of misses exceeds this multiple of the part when lowering began, in
/// thousandths. A smaller window makes such a load worse, because its requests wait outside the disk.
const WORSE: i64 = 1500;
/// The intervals without a cap after no cap kept the target. The first number is for the first time; each
/// further time doubles it, up to the second. Smaller numbers lose rate to a target that nothing keeps. With
/// larger ones, a target that can be kept again is kept later.
const REST: (i64, i64) = (128, 4096);

/// The cap, and the state of the search for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Target {
    /// The cap in thousandths of an effective goal; `i64::MAX` without one.
    cap: i64,
    /// Requests of this measurement that the target is about, and the number of them that took longer.
    requests: i64,
    over: i64,
    /// Intervals in a row without such a request.
    unused: i64,
    /// Misses per million requests when lowering began; zero while the target holds.
    began_over: i64,
    /// Intervals until lower caps are tried again, and the next such number.
    rest: i64,
    next_rest: i64,
    /// The last window at which the target was missed; `i64::MAX` once a cap of that size keeps it.
    missed_at: i64,
    /// Measurements until that window is tried again, and the next such number.
    calm: i64,
    next_calm: i64,
}

impl Target {
    pub(super) const NONE: Self = Self {
        cap: i64::MAX,
        requests: 0,
        over: 0,
        unused: 0,
        began_over: 0,
        rest: 0,
        next_rest: REST.0,
        missed_at: i64::MAX,
        calm: 0,
        next_calm: CALM.0,
    };

    pub(super) fn each_word(&mut self, show: &mut impl FnMut(&mut i64)) {
        let numbers = [
            &mut self.cap,
            &mut self.requests,
            &mut self.over,
            &mut self.unused,
            &mut self.began_over,
            &mut self.rest,
            &mut self.next_rest,
            &mut self.missed_at,
            &mut self.calm,
            &mut self.next_calm,
        ];
        numbers.into_iter().for_each(show);
    }

    /// The largest window, in thousandths of an effective goal; `i64::MAX` without a cap.
    pub(super) const fn cap(&self) -> i64 {
        self.cap
    }

    /// Whether no cap kept the target, so that there is none for a while.
    pub(super) const fn has_given_up(&self) -> bool {
        self.rest > 0
    }

    /// Counts an interval with `requests` completions that the target is about, of which `over` took longer.
    /// `allowed_permille` of 1000 may do so. Without a cap the window is `free`.
    pub(super) fn follow(&mut self, requests: i64, over: i64, allowed_permille: i64, free: i64) {
        if allowed_permille >= 1000 {
            *self = Self::NONE;
            return;
        }
        self.rest = (self.rest - 1).max(0);
        self.unused = if requests == 0 { self.unused + 1 } else { 0 };
        if self.unused >= UNUSED {
            (self.cap, self.unused, self.began_over) = (i64::MAX, 0, 0);
        }
        self.requests += requests.min(REQUESTS_MAX);
        self.over += over.min(REQUESTS_MAX);
        let needed = (ALLOWED * 1000 / allowed_permille.max(1)).max(REQUESTS_MIN);
        let is_early = self.over * 1000 > 2 * needed * allowed_permille;
        if self.requests < needed && !is_early {
            return;
        }
        let part = self.over * MILLION / self.requests.max(1);
        (self.requests, self.over) = (0, 0);
        let allowed = allowed_permille * MILLION / 1000;
        if part > allowed {
            self.miss(part, free);
        } else {
            self.hold(part * 1000 <= allowed * HOLDS, free);
        }
    }

    /// Evaluates a measurement that missed the target: `part` of a million requests took longer than it.
    fn miss(&mut self, part: i64, free: i64) {
        if self.rest > 0 {
            return;
        }
        let window = self.cap.min(free);
        if self.began_over == 0 {
            self.began_over = part;
            self.calm = self.next_calm;
            self.next_calm = (self.next_calm * 2).min(CALM.1);
        }
        self.missed_at = window;
        let cap = window * DOWN / 1000;
        if cap >= CAP_MIN && part * 1000 <= self.began_over * WORSE {
            self.cap = cap;
        } else {
            (self.cap, self.began_over) = (i64::MAX, 0);
            self.rest = self.next_rest;
            self.next_rest = (self.next_rest * 2).min(REST.1);
        }
    }

    /// Evaluates a measurement that kept the target. `is_calm` is true if misses were few enough for a larger
    /// cap.
    fn hold(&mut self, is_calm: bool, free: i64) {
        (self.rest, self.began_over) = (0, 0);
        if !is_calm || self.cap == i64::MAX {
            return;
        }
        self.next_rest = REST.0;
        if self.cap >= self.missed_at {
            (self.missed_at, self.next_calm) = (i64::MAX, CALM.0);
        }
        let cap = self.cap.saturating_mul(UP) / 1000;
        self.calm -= 1;
        let is_near = cap.saturating_mul(UP) / 1000 >= self.missed_at;
        if !is_near || self.calm <= 0 {
            self.cap = if cap < free { cap } else { i64::MAX };
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    const FREE: i64 = 4000;
    const P95: i64 = 50;

    /// The caps after each of 400 intervals of 40 requests. `over` is the number of misses at a window.
    fn caps(target: &mut Target, over: impl Fn(i64) -> i64) -> Vec<i64> {
        let follow = |_| {
            let window = target.cap().min(FREE);
            target.follow(40, over(window), P95, FREE);
            target.cap()
        };
        (0..400).map(follow).collect()
    }

    #[test]
    fn the_cap_stays_just_below_what_the_target_allows() {
        let caps = caps(&mut { Target::NONE }, |window| if window > 1000 { 20 } else { 0 });
        let settled = &caps[100..];
        assert!(settled.iter().all(|cap| (700..=1100).contains(cap)), "{caps:?}");
        let above = settled.iter().filter(|&&cap| cap > 1000).count();
        assert!(above > 0 && above < settled.len() / 50, "{above}: {caps:?}");
    }

    #[test]
    fn a_cap_that_is_not_needed_any_more_goes() {
        let mut target = Target::NONE;
        caps(&mut target, |window| if window > 1000 { 20 } else { 0 });
        assert!(target.cap() < FREE);
        caps(&mut target, |_| 0);
        assert_eq!(target.cap(), i64::MAX);
    }

    #[test]
    fn a_target_that_holds_at_no_window_is_given_up() {
        let mut target = Target::NONE;
        let caps = caps(&mut target, |_| 20);
        assert!(target.has_given_up(), "{target:?}");
        let capped = caps.iter().filter(|&&cap| cap < FREE).count();
        assert!(capped > 0 && capped < 100, "{capped}: {caps:?}");
    }

    #[test]
    fn caps_that_make_it_worse_are_not_lowered_further() {
        let caps = caps(&mut { Target::NONE }, |window| if window < 3000 { 40 } else { 10 });
        assert!(caps.iter().all(|&cap| cap > FREE / 2), "{caps:?}");
    }

    #[test]
    fn a_cap_goes_where_no_request_counts() {
        let mut target = Target::NONE;
        caps(&mut target, |window| if window > 1000 { 20 } else { 0 });
        for interval in 1..=UNUSED {
            target.follow(0, 0, P95, FREE);
            assert_eq!(target.cap() == i64::MAX, interval == UNUSED, "{interval}");
        }
    }

    #[test]
    fn without_a_target_there_is_no_cap() {
        let mut target = Target::NONE;
        caps(&mut target, |window| if window > 1000 { 20 } else { 0 });
        target.follow(40, 40, 1000, FREE);
        assert_eq!(target, Target::NONE);
    }
}
