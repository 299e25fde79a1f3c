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
        if !seen.is_high() {
            self.missed_nanos = self.missed_nanos.saturating_sub(seen.nanos);
            self.calm_nanos = self.calm_nanos.saturating_add(seen.nanos);
            if self.calm_nanos > self.given_up_nanos / CALM_PART {
                self.given_up_until = 0;
            }
            if self.calm_nanos > LONG_CALM_NANOS {
                self.given_up_nanos = 0;
            }
            return;
        }
        self.calm_nanos = 0;
        if self.has_given_up(seen.now_nanos) {
            return;
        }
        if self.missed_nanos == 0 {
            self.measure_misses_from(seen);
        }
        self.missed_nanos = self.missed_nanos.saturating_add(seen.nanos);
        self.missed_permille = self.missed_permille.max(seen.over_permille());
        let is_tried = seen.now_nanos.saturating_sub(self.missed_since) > TRIED_NANOS
            && seen.delivered < self.missed_delivered / 2;
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
        self.given_up_nanos =
            self.given_up_nanos.saturating_mul(2).clamp(GIVEN_UP_NANOS.0, GIVEN_UP_NANOS.1);
        self.given_up_until = now_nanos.saturating_add(self.given_up_nanos);
        self.speed = SPEED_ONE;
        self.growth = GROWTH.0;
    }
}
