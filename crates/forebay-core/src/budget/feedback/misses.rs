//! A target that is missed whatever is cut.

use super::period::{Period, SPEED_ONE};
use super::state::{GIVEN_UP_NANOS, GROWTH, State};

/// A target that has been missed for this long is given up,
const MISSED_NANOS_MAX: u64 = 2_000_000_000;
/// and after this long, if what was cut has not brought it nearer.
const TRIED_NANOS: u64 = 1_000_000_000;
/// It is taken up again when it has held for this part of the time.
const CALM_PART: u64 = 8;
/// After this long all is forgotten of what was given up.
const LONG_CALM_NANOS: u64 = 60_000_000_000;

impl State {
    /// Whether cuts were found not to help.
    pub(super) fn has_given_up(&self, now_nanos: u64) -> bool {
        now_nanos < self.given_up_until
    }

    /// Where what was cut does not bring the target nearer, nothing does: it is
    /// given up for a while, in which all is as without a target.
    pub(super) fn note_miss(&mut self, seen: &Period) {
        if seen.is_high() {
            self.calm_nanos = 0;
        } else {
            self.missed_nanos = self.missed_nanos.saturating_sub(seen.nanos);
            self.calm_nanos = self.calm_nanos.saturating_add(seen.nanos);
            if self.calm_nanos > self.given_up_nanos / CALM_PART {
                self.given_up_until = 0;
            }
            if self.calm_nanos > LONG_CALM_NANOS {
                self.given_up_nanos = 0;
            }
        }
        if self.has_given_up(seen.now_nanos) {
            return;
        }
        if seen.is_high() {
            if self.missed_since == 0 {
                self.measure_misses_from(seen);
            }
            self.missed_nanos = self.missed_nanos.saturating_add(seen.nanos);
            self.missed_permille = self.missed_permille.max(seen.over_permille());
        } else if seen.delivered >= self.missed_delivered / 4 * 3 {
            self.missed_since = 0;
        }
        // what is left may be as many as may be late by chance
        let is_tried = self.missed_since > 0
            && seen.now_nanos.saturating_sub(self.missed_since) > TRIED_NANOS
            && seen.delivered < self.missed_delivered / 2
            // and not because a disk that became slow takes no more than it does
            && (self.speed < self.missed_delivered / 2 || seen.window_at_min);
        if is_tried && seen.over_permille() <= self.missed_permille / 2 {
            self.measure_misses_from(seen);
        } else if is_tried || self.missed_nanos > MISSED_NANOS_MAX {
            self.give_up(seen.now_nanos);
        }
    }

    fn measure_misses_from(&mut self, seen: &Period) {
        self.missed_nanos = 0;
        self.missed_since = seen.now_nanos;
        self.missed_delivered = seen.delivered.max(self.best.min(self.speed));
        self.missed_permille = seen.over_permille();
    }

    fn give_up(&mut self, now_nanos: u64) {
        self.missed_nanos = 0;
        self.missed_since = 0;
        self.given_up_nanos =
            self.given_up_nanos.saturating_mul(2).clamp(GIVEN_UP_NANOS.0, GIVEN_UP_NANOS.1);
        self.given_up_until = now_nanos.saturating_add(self.given_up_nanos);
        self.speed = SPEED_ONE;
        self.growth = GROWTH.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Half of the requests are late, whatever is let through.
    const HOPELESS: Period =
        Period { over: 500, window_at_min: true, nanos: 100_000_000, ..Period::WELL };

    /// Steps until the target is given up; after how long that was.
    fn until_given_up(state: &mut State, mut now_nanos: u64, deliver_all: bool) -> u64 {
        let began = now_nanos;
        while !state.has_given_up(now_nanos) {
            now_nanos += HOPELESS.nanos;
            assert!(now_nanos - began < 5_000_000_000, "never given up: {state:?}");
            let delivered = if deliver_all { state.speed } else { state.speed / 3 };
            state.step(&Period { now_nanos, delivered, ..HOPELESS });
        }
        now_nanos - began
    }

    #[test]
    fn what_never_helps_is_given_up_and_taken_up_again_when_all_is_calm() {
        let mut state = State::BEGIN;
        let begin = Period::WELL.now_nanos;
        let took = until_given_up(&mut state, begin, true);
        assert!(took <= MISSED_NANOS_MAX + 2 * HOPELESS.nanos, "{took}");
        assert_eq!(state.speed, SPEED_ONE, "as without a target");
        let mut now_nanos = begin + took;
        while state.has_given_up(now_nanos) {
            now_nanos += 100_000_000;
            assert!(now_nanos < begin + took + 2_000_000_000, "still given up: {state:?}");
            state.step(&Period { now_nanos, nanos: 100_000_000, ..Period::WELL });
        }
        // and it is given up for longer the next time
        let took = until_given_up(&mut state, now_nanos, true);
        assert!(state.has_given_up(now_nanos + took + GIVEN_UP_NANOS.0 + 1));
    }

    #[test]
    fn a_cut_that_halves_what_is_delivered_and_not_what_is_late_is_given_up_sooner() {
        let mut state = State::BEGIN;
        let delivers_all = Period { delivered: SPEED_ONE, ..HOPELESS };
        state.step(&Period { now_nanos: Period::WELL.now_nanos, ..delivers_all });
        let took = until_given_up(&mut state, Period::WELL.now_nanos, false);
        assert!(took <= TRIED_NANOS + 2 * HOPELESS.nanos, "{took}");
    }

    /// At the floor 55 of 1000 are late where 50 may be, which chance explains: that it was not
    /// cuts that left those few shows against those of the beginning.
    #[test]
    fn a_floor_at_which_as_many_are_late_as_chance_may_leave_is_given_up() {
        let mut state = State::BEGIN;
        let mut now_nanos = Period::WELL.now_nanos;
        let mut given_up = false;
        for turn in 0..100_u64 {
            now_nanos += HOPELESS.nanos;
            let over = if turn < 5 { 70 } else { 55 };
            let delivered = if turn < 5 { SPEED_ONE } else { SPEED_ONE / 10 };
            state.step(&Period { now_nanos, over, delivered, at_window: 100, ..HOPELESS });
            given_up |= state.has_given_up(now_nanos);
        }
        assert!(given_up, "{state:?}");
    }

    /// At three tenths of its speed the disk fills the window, and as many are late as may be.
    #[test]
    fn a_disk_that_became_slow_is_not_given_up_where_the_target_holds() {
        let mut state = State::BEGIN;
        let mut now_nanos = Period::WELL.now_nanos;
        for turn in 0..50_u64 {
            now_nanos += HOPELESS.nanos;
            let (over, delivered) = if turn < 2 { (70, SPEED_ONE) } else { (50, SPEED_ONE / 3) };
            let full =
                Period { at_window: 100, window_at_min: false, mean_nanos: 400_000, ..HOPELESS };
            state.step(&Period { now_nanos, over, delivered, ..full });
            assert!(!state.has_given_up(now_nanos), "after {turn}: {state:?}");
        }
    }

    #[test]
    fn cuts_that_help_go_on() {
        let mut state = State::BEGIN;
        let mut now_nanos = Period::WELL.now_nanos;
        for step in 0..30_u64 {
            now_nanos += HOPELESS.nanos;
            let over = 1000_u64.saturating_sub(step * 80).max(20);
            state.step(&Period { now_nanos, over, delivered: state.speed / 3, ..HOPELESS });
            assert!(!state.has_given_up(now_nanos), "after {step}: {state:?}");
        }
    }
}
