//! How speed and window follow what was measured.
//!
//! The window tracks the percentile: completions move it, so at a cliff, where
//! they come late, it bounds the damage. The speed, a factor on the pace, only
//! follows the rate that was delivered while the window was full, and grows
//! while the pace is what holds work back.

use super::period::{COUNTED_MIN, CUT_PERMILLE, Period, SPEED_ONE};
use super::recent::Recent;
use super::state::{GIVEN_UP_NANOS, GROWTH, SPEED_MAX, SPEED_MIN, State};

/// What waits in a full disk drains at this rate.
const DRAIN_PERMILLE: u64 = 8;
/// After a cut the disk settles for so long.
const SETTLE_NANOS: u64 = 20_000_000;
/// Growth doubles in so long.
const GROWTH_DOUBLES_MILLIS: u64 = 300;
/// Without any request of the target's kind, growth per millisecond up to the
/// rate of the model: a part of so many.
const ALONE_PART: u64 = 200;
/// While the target holds, cuts cost at most this part of what was delivered.
const BEST_PART: u64 = 8;
/// A full disk is let to drain for so long before more is tried,
const DRAIN_NANOS: u64 = 400_000_000;
/// and one beyond its knee for so long before more is cut.
const KNEE_DRAIN_NANOS: u64 = DRAIN_NANOS / 4;
/// Growth beyond the model that was taken back is tried again after so long at most.
const HELD_NANOS_MAX: u64 = 8 * DRAIN_NANOS;
/// Cuts follow from what was measured for at least so long,
const EVIDENCE_NANOS: u64 = 60_000_000;
/// and the first after so long may have been for what has passed.
const CUTS_APART_NANOS: u64 = 2_000_000_000;
/// Where a smaller part of what is let through is delivered, the load is light.
const UNORDERED_PART: u64 = 4;
/// If nothing has to wait for so long, what was cut is given back.
const FORGET_NANOS: u64 = 1_000_000_000;

/// What follows from a period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Stay,
    Grow,
    /// The disk delivers no more than it did.
    CutToDelivered,
    /// It does not, by a little: what waits in it is to drain.
    Drain,
    /// More for others is less for those that the target is about.
    Revert,
    /// Less would keep the target, as nothing else does.
    CutByExcess,
}

impl State {
    /// One period has ended in which work waited.
    pub(super) fn step(&mut self, period: &Period) {
        self.unrefused_nanos = 0;
        if period.now_nanos < self.settles_until {
            self.recent = Recent::NOTHING;
            return;
        }
        if period.counted == 0 {
            return self.serve_others(period);
        }
        let seen = &self.recent.add(period);
        if seen.is_saturated() && !seen.window_at_min && seen.delivered > self.speed / 5 {
            self.saturated_speed = seen.delivered.min(self.speed);
        }
        // what is beyond the model is taken back at the first sign
        let is_beyond_knee = self.is_beyond_knee(seen)
            || (self.speed > SPEED_ONE
                && period.counted >= 4 * COUNTED_MIN
                && self.is_beyond_knee_now(period));
        let is_full = self.is_full(period);
        self.note_miss(seen);
        match self.judge(seen, is_beyond_knee, is_full) {
            Verdict::Stay => {}
            Verdict::Grow => self.grow(seen),
            Verdict::CutToDelivered if seen.is_high() => self.cut_while_missed(seen),
            Verdict::CutToDelivered => self.cut_while_well(seen, is_beyond_knee),
            Verdict::Drain => {
                let cap = self.full_speed();
                self.hold_growth(period.now_nanos);
                self.cut_to_model(seen, cap, DRAIN_PERMILLE);
            }
            Verdict::Revert => {
                self.hold_growth(period.now_nanos);
                self.growth = GROWTH.0;
                self.cap = self.speed;
                self.speed = self.usual_speed.max(SPEED_ONE).min(self.speed);
                self.settles_until = period.now_nanos.saturating_add(SETTLE_NANOS);
            }
            Verdict::CutByExcess => {
                self.cut(seen, self.speed, seen.excess_permille());
                self.best = 0;
            }
        }
    }

    /// A period in which nothing had to wait, though the disk was busy: beyond
    /// the rate of the model, what is let through and not used is taken back.
    pub(super) fn step_unrefused(&mut self, period: &Period) {
        if self.is_unordered(period) {
            return self.cut_to_order(period);
        }
        self.unrefused_nanos = self.unrefused_nanos.saturating_add(period.nanos);
        if self.has_rested() {
            self.forget();
        }
        let is_busy = period.delivered > SPEED_ONE / 16 * 15;
        if self.speed > SPEED_ONE && is_busy && period.is_late() {
            self.hold_growth(period.now_nanos);
            self.cut_to_model(period, period.delivered.max(SPEED_ONE), DRAIN_PERMILLE);
        }
    }

    /// Whether all that is asked for is in the disk all the time, beyond its knee,
    /// where nobody orders it: the model is faster than the disk, and the target
    /// lenient.
    fn is_unordered(&self, period: &Period) -> bool {
        let has_asked_for_knee = period.speed_max > SPEED_ONE;
        let is_less = (self.speed / UNORDERED_PART..self.speed).contains(&period.delivered);
        has_asked_for_knee && is_less && period.emptied == 0 && self.is_beyond_knee_now(period)
    }

    /// No more is let through than the disk delivers: the rest waits in its turn.
    fn cut_to_order(&mut self, period: &Period) {
        self.unrefused_nanos = 0;
        let seen = &self.recent.add(period);
        if seen.lately_nanos >= EVIDENCE_NANOS && self.is_unordered(seen) {
            self.cut(seen, seen.delivered, CUT_PERMILLE.0);
        }
    }

    /// Beyond the rate of the model nothing was promised; at that rate less by
    /// little lets the disk drain.
    fn cut_to_model(&mut self, period: &Period, cap: u64, permille: u64) {
        self.cut(period, cap, permille);
        self.speed = self.speed.max(SPEED_ONE / 1000 * (1000 - DRAIN_PERMILLE));
    }

    /// No more than the model promises is tried for a while, and for twice as long
    /// where that was the end of it before.
    fn hold_growth(&mut self, now_nanos: u64) {
        let is_again = self.speed <= self.held_at.saturating_add(self.held_at / 64);
        let nanos = if is_again { self.held_nanos.saturating_mul(2) } else { 0 };
        self.held_nanos = nanos.clamp(DRAIN_NANOS, HELD_NANOS_MAX);
        self.held_at = self.speed;
        self.held_until = now_nanos.saturating_add(self.held_nanos);
    }

    /// Whether nothing has had to wait for long.
    pub(super) fn has_rested(&self) -> bool {
        self.unrefused_nanos > FORGET_NANOS
    }

    /// What was cut was for a load that is gone.
    fn forget(&mut self) {
        self.speed = self.speed.max(SPEED_ONE);
        self.missed_nanos = 0;
        self.recent = Recent::NOTHING;
    }

    /// What is let through is as much as the disk delivers. If it is the first such
    /// cut for long, the reason may be over: growth is quick to where it was.
    fn cut_while_missed(&mut self, period: &Period) {
        let before = self.speed;
        let is_first = period.now_nanos.saturating_sub(self.cut_at) > CUTS_APART_NANOS;
        self.cut(period, period.delivered.min(self.speed), CUT_PERMILLE.0);
        if is_first {
            self.cap = before;
        }
        self.cut_at = period.now_nanos;
        self.best = 0;
    }

    /// Requests wait in the disk though the target holds. What waits there drains
    /// at a little less than the disk delivers; where they wait for as long after
    /// that it is not for each other, and what it cost is given back.
    fn cut_while_well(&mut self, period: &Period, is_beyond_knee: bool) {
        let now_nanos = period.now_nanos;
        let (permille, drain_nanos) = match is_beyond_knee {
            true => (CUT_PERMILLE.0, KNEE_DRAIN_NANOS),
            false => (DRAIN_PERMILLE, DRAIN_NANOS),
        };
        if self.speed > SPEED_ONE {
            self.hold_growth(now_nanos);
            self.cut_to_model(period, period.delivered.min(self.speed), permille);
            return;
        }
        if now_nanos < self.drains_until.max(self.kept_until) || self.best == 0 {
            return;
        }
        self.drains_until = now_nanos.saturating_add(drain_nanos);
        let least = self.best / BEST_PART * (BEST_PART - 1);
        if self.speed > least {
            self.cut(period, period.delivered.max(least).min(self.speed), permille);
            return;
        }
        self.speed = self.best.clamp(self.speed, SPEED_MAX);
        self.kept_nanos =
            self.kept_nanos.saturating_mul(2).clamp(GIVEN_UP_NANOS.0, GIVEN_UP_NANOS.1);
        self.kept_until = now_nanos.saturating_add(self.kept_nanos);
    }

    fn judge(&self, seen: &Period, is_beyond_knee: bool, is_full: bool) -> Verdict {
        let (is_high, is_saturated) = (seen.is_high(), seen.is_saturated());
        let is_evident = seen.lately_nanos >= EVIDENCE_NANOS || self.speed > SPEED_ONE;
        if self.has_given_up(seen.now_nanos) {
            return if self.speed < SPEED_ONE { Verdict::Grow } else { Verdict::Stay };
        }
        let too_much = is_saturated && (seen.fills_window() || (is_high && !seen.window_at_min));
        // who states a target gets the knee of the disk, others what they did without
        let is_well = seen.is_well_below() && !(is_beyond_knee && seen.speed_max > SPEED_ONE);
        let is_kept = !is_high && seen.now_nanos < self.kept_until;
        let keeps = (is_well || is_kept) && self.speed <= SPEED_ONE;
        let grows = is_well && self.speed < SPEED_ONE;
        if (is_beyond_knee || too_much) && !keeps {
            return if is_evident { Verdict::CutToDelivered } else { Verdict::Stay };
        }
        match is_high {
            true if seen.window_at_min && is_evident => Verdict::CutByExcess,
            _ if is_full => Verdict::Drain,
            _ if self.is_at_their_cost(seen) => Verdict::Revert,
            false if seen.now_nanos < self.drains_until => Verdict::Stay,
            false if !is_saturated || grows => self.growth_of(seen.delivered),
            _ => Verdict::Stay,
        }
    }

    /// What the model promises may be let through; more is tried where what is
    /// let through now is also used.
    fn growth_of(&self, delivered: u64) -> Verdict {
        let is_used = delivered / 15 >= self.speed / 16;
        if is_used || self.speed < SPEED_ONE { Verdict::Grow } else { Verdict::Stay }
    }

    /// Cutting below half of what the disk delivered with a full window helps
    /// nobody.
    fn floor(&self) -> u64 {
        (self.saturated_speed / 2).max(SPEED_MIN)
    }

    fn cut(&mut self, period: &Period, cap: u64, permille: u64) {
        self.cap = cap;
        let is_capacity = period.is_saturated() && !period.window_at_min;
        let least = if is_capacity { SPEED_MIN } else { self.floor() };
        let next = (cap / 1000 * (1000 - permille)).max(self.speed / 10 * 7).max(least);
        self.speed = self.speed.min(next);
        self.growth = GROWTH.0;
        if self.speed < SPEED_ONE / 8 * 7 {
            // the disk is another than the one that had no more
            self.held_until = 0;
            self.held_at = 0;
        }
        self.usual_periods = 0;
        self.usual_nanos = 0;
        self.usual_rate = 0;
        self.let_through = 0;
        self.delivered = 0;
        self.recent = Recent::NOTHING;
        self.settles_until = period.now_nanos.saturating_add(SETTLE_NANOS);
    }

    fn grow(&mut self, period: &Period) {
        let before = self.speed;
        let millis = (period.nanos / 1_000_000).min(100);
        let below_cap = self.cap.saturating_sub(self.cap / 64);
        let nothing_waits = period.base_nanos > 0 && !period.is_late();
        let quick_to = match self.speed < SPEED_ONE && nothing_waits {
            true => SPEED_ONE,
            false if self.cap != u64::MAX => below_cap,
            false => 0,
        };
        if self.speed < quick_to {
            self.speed = (self.speed + self.speed * 2 * millis / 1000).min(quick_to);
        } else {
            self.speed += (((self.speed * self.growth) >> 20) * millis).min(self.speed / 16);
            self.growth += self.growth * millis / GROWTH_DOUBLES_MILLIS;
            self.growth = self.growth.min(GROWTH.1);
        }
        let is_held = period.now_nanos < self.held_until;
        let most = if is_held { SPEED_ONE.max(before) } else { period.speed_max };
        self.speed = self.speed.min(most);
    }

    /// Nobody is there whom the target is about: the others get what the model
    /// promises.
    fn serve_others(&mut self, period: &Period) {
        let millis = (period.nanos / 1_000_000).min(1000);
        self.recent = Recent::NOTHING;
        if self.speed < SPEED_ONE {
            self.speed = (self.speed + self.speed * millis / ALONE_PART).min(SPEED_ONE);
        }
    }
}
