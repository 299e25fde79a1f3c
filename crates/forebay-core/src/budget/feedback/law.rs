//! How speed and window follow what was measured.
//!
//! The window tracks the percentile: completions move it, so at a cliff, where
//! they come late, it bounds the damage. The speed, a factor on the pace, only
//! follows the rate that was delivered while the window was full, and grows
//! while the pace is what holds work back.

use super::period::{COUNTED_MIN, CUT_PERMILLE, Period, SPEED_ONE};

/// The disk may be this many times as fast as its model,
const SPEED_MAX: u64 = 4 * SPEED_ONE;
/// or this part of it.
const SPEED_MIN: u64 = SPEED_ONE / 20;
/// After a cut the disk settles for so long.
const SETTLE_NANOS: u64 = 20_000_000;
/// Growth per millisecond, in parts of [`SPEED_ONE`]: at first 4 % in a second,
/// doubled in 360 ms, up to 200 %.
const GROWTH: (u64, u64) = (42, 2097);
const GROWTH_DOUBLES_MILLIS: u64 = 360;
/// So many periods after a cut say what is usual.
const USUAL_PERIODS: u64 = 5;
/// Beyond the knee requests take this many times the latency of the idle disk.
const KNEE_BASES: u64 = 5;
/// Cuts that have not helped for this long are given up,
const FUTILE_NANOS_MAX: u64 = 1_000_000_000;
/// for as long at first, and twice as long each further time,
const GIVEN_UP_NANOS: (u64, u64) = (8_000_000_000, 256_000_000_000);
/// or until the target has held for so long.
const CALM_NANOS: u64 = 200_000_000;
/// After this long all is forgotten of what was given up.
const LONG_CALM_NANOS: u64 = 60_000_000_000;

/// What is remembered from period to period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct State {
    pub(super) speed: u64,
    pub(super) growth: u64,
    /// Growth is quick to a little below this: there the disk had enough.
    pub(super) cap: u64,
    /// What was delivered when the window was last full.
    pub(super) saturated_speed: u64,
    /// Periods since the last cut, and the sum of their means.
    pub(super) usual_periods: u64,
    pub(super) usual_nanos: u64,
    pub(super) settles_until: u64,
    pub(super) given_up_until: u64,
    pub(super) given_up_nanos: u64,
    pub(super) futile_nanos: u64,
    pub(super) calm_nanos: u64,
}

/// What follows from a period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Stay,
    Grow,
    /// The disk delivers no more than it did.
    CutToDelivered,
    /// Less would keep the target, as nothing else does.
    CutByExcess,
}

impl State {
    pub(super) const BEGIN: Self = Self {
        speed: SPEED_ONE,
        growth: GROWTH.1,
        cap: u64::MAX,
        saturated_speed: 0,
        usual_periods: 0,
        usual_nanos: 0,
        settles_until: 0,
        given_up_until: 0,
        given_up_nanos: 0,
        futile_nanos: 0,
        calm_nanos: 0,
    };

    /// The numbers in the order of their declaration.
    pub(super) fn to_words(self) -> [u64; 11] {
        [
            self.speed,
            self.growth,
            self.cap,
            self.saturated_speed,
            self.usual_periods,
            self.usual_nanos,
            self.settles_until,
            self.given_up_until,
            self.given_up_nanos,
            self.futile_nanos,
            self.calm_nanos,
        ]
    }

    /// What [`State::to_words`] made words of; whatever they are, the speed and
    /// its growth are in range.
    pub(super) fn from_words(words: [u64; 11]) -> Self {
        let [
            speed,
            growth,
            cap,
            saturated_speed,
            usual_periods,
            usual_nanos,
            settles_until,
            given_up_until,
            given_up_nanos,
            futile_nanos,
            calm_nanos,
        ] = words;
        Self {
            speed: speed.clamp(SPEED_MIN, SPEED_MAX),
            growth: growth.clamp(GROWTH.0, GROWTH.1),
            cap,
            saturated_speed,
            usual_periods,
            usual_nanos,
            settles_until,
            given_up_until,
            given_up_nanos: given_up_nanos.min(GIVEN_UP_NANOS.1),
            futile_nanos,
            calm_nanos,
        }
    }

    /// Whether cuts were found not to help.
    pub(super) fn has_given_up(&self, now_nanos: u64) -> bool {
        now_nanos < self.given_up_until
    }

    /// One period has ended in which work waited.
    pub(super) fn step(&mut self, period: &Period) {
        if period.is_saturated && period.delivered > self.speed / 5 {
            self.saturated_speed = period.delivered.min(self.speed);
        }
        let is_beyond_knee = self.is_beyond_knee(period);
        if period.now_nanos < self.settles_until {
            return;
        }
        match self.judge(period, is_beyond_knee) {
            Verdict::Stay => {}
            Verdict::Grow => self.grow(period),
            Verdict::CutToDelivered => {
                self.cut(period, period.delivered.min(self.speed), CUT_PERMILLE.0);
            }
            Verdict::CutByExcess => self.cut(period, self.speed, period.excess_permille()),
        }
        self.consider_futility(period);
    }

    /// Whether requests take much longer than is usual after a cut, or than in
    /// the idle disk: more is delivered past that point, but to nobody's good.
    fn is_beyond_knee(&mut self, period: &Period) -> bool {
        if period.counted < COUNTED_MIN {
            return false;
        }
        let settled = period.now_nanos >= self.settles_until;
        if settled && !period.is_saturated && self.usual_periods < USUAL_PERIODS {
            self.usual_periods += 1;
            self.usual_nanos = self.usual_nanos.saturating_add(period.mean_nanos);
        }
        let twice_usual = (self.usual_nanos / USUAL_PERIODS).saturating_mul(2);
        let is_unusual = self.usual_periods == USUAL_PERIODS && period.mean_nanos > twice_usual;
        let knee = period.base_nanos.saturating_mul(KNEE_BASES);
        is_unusual || (knee > 0 && period.mean_nanos > knee)
    }

    fn judge(&self, period: &Period, is_beyond_knee: bool) -> Verdict {
        let Period { is_saturated, delivered, .. } = *period;
        let is_high = period.is_high();
        if self.has_given_up(period.now_nanos) {
            return if is_saturated { Verdict::CutToDelivered } else { self.growth_of(delivered) };
        }
        if is_beyond_knee || (is_saturated && (is_high || period.window_at_max)) {
            return Verdict::CutToDelivered;
        }
        match is_high {
            true if period.window_at_min => Verdict::CutByExcess,
            false if !is_saturated => self.growth_of(delivered),
            _ => Verdict::Stay,
        }
    }

    /// More is tried where what is let through now is also used.
    fn growth_of(&self, delivered: u64) -> Verdict {
        if delivered / 15 >= self.speed / 16 { Verdict::Grow } else { Verdict::Stay }
    }

    /// Cutting below half of what the disk delivered with a full window helps
    /// nobody.
    fn floor(&self) -> u64 {
        (self.saturated_speed / 2).max(SPEED_MIN)
    }

    fn cut(&mut self, period: &Period, cap: u64, permille: u64) {
        self.cap = cap;
        let least = if period.is_saturated { SPEED_MIN } else { self.floor() };
        let next = (cap / 1000 * (1000 - permille)).max(self.speed / 10 * 7).max(least);
        self.speed = self.speed.min(next);
        self.growth = GROWTH.0;
        self.usual_periods = 0;
        self.usual_nanos = 0;
        self.settles_until = period.now_nanos.saturating_add(SETTLE_NANOS);
    }

    fn grow(&mut self, period: &Period) {
        let millis = (period.nanos / 1_000_000).min(100);
        let below_cap = self.cap.saturating_sub(self.cap / 64);
        if period.counted == 0 {
            if self.speed < SPEED_ONE {
                self.speed = (self.speed + self.speed * millis / 1000).min(SPEED_ONE);
            }
        } else if self.cap != u64::MAX && self.speed < below_cap {
            self.speed = (self.speed + self.speed * 2 * millis / 1000).min(below_cap);
        } else {
            self.speed += (((self.speed * self.growth) >> 20) * millis).min(self.speed / 16);
            self.growth += self.growth * millis / GROWTH_DOUBLES_MILLIS;
            self.growth = self.growth.min(GROWTH.1);
        }
        self.speed = self.speed.min(SPEED_MAX);
    }

    /// Where the least window and half the speed do not keep the target,
    /// nothing does: it is given up for a while.
    fn consider_futility(&mut self, period: &Period) {
        if !period.is_high() {
            self.futile_nanos = 0;
            self.calm_nanos = self.calm_nanos.saturating_add(period.nanos);
            if self.calm_nanos > CALM_NANOS {
                self.given_up_until = 0;
            }
            if self.calm_nanos > LONG_CALM_NANOS {
                self.given_up_nanos = 0;
            }
            return;
        }
        self.calm_nanos = 0;
        let at_end = period.window_at_min && self.speed <= self.floor() / 50 * 51;
        if at_end && !self.has_given_up(period.now_nanos) {
            self.futile_nanos = self.futile_nanos.saturating_add(period.nanos);
            if self.futile_nanos > FUTILE_NANOS_MAX {
                self.give_up(period.now_nanos);
            }
        }
    }

    fn give_up(&mut self, now_nanos: u64) {
        self.futile_nanos = 0;
        self.given_up_nanos =
            self.given_up_nanos.saturating_mul(2).clamp(GIVEN_UP_NANOS.0, GIVEN_UP_NANOS.1);
        self.given_up_until = now_nanos.saturating_add(self.given_up_nanos);
        self.speed = self.speed.max(self.saturated_speed.min(SPEED_MAX) / 20 * 19);
        self.growth = GROWTH.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WELL: Period = Period::WELL;

    fn after(state: &State, period: &Period) -> State {
        let mut state = *state;
        state.step(period);
        state
    }

    #[test]
    fn the_speed_grows_only_where_what_it_lets_through_is_used() {
        let begin = State::BEGIN;
        assert!(after(&begin, &WELL).speed > begin.speed);
        let unused = Period { delivered: SPEED_ONE / 10 * 9, ..WELL };
        assert_eq!(after(&begin, &unused).speed, begin.speed);
    }

    #[test]
    fn one_cut_takes_three_tenths_at_most_and_leaves_a_twentieth() {
        let hangs = Period { delivered: 0, over: 1000, is_saturated: true, ..WELL };
        let mut state = State::BEGIN;
        for step in 0..100_u64 {
            let before = state.speed;
            let now_nanos = WELL.now_nanos + step * 100_000_000;
            state.step(&Period { now_nanos, ..hangs });
            assert!(state.speed >= before / 10 * 7 && state.speed >= SPEED_MIN, "{state:?}");
        }
        assert_eq!(state.speed, SPEED_MIN);
    }

    #[test]
    fn growth_is_slow_beyond_where_the_disk_had_enough() {
        let cut = after(&State::BEGIN, &Period { is_saturated: true, over: 500, ..WELL });
        assert_eq!(cut.cap, SPEED_ONE);
        let later = Period { now_nanos: WELL.now_nanos + 30_000_000, ..WELL };
        let grown = after(&cut, &later);
        assert!(grown.speed > cut.speed && grown.speed < SPEED_ONE);
    }

    #[test]
    fn what_never_helps_is_given_up_and_taken_up_again_when_all_is_calm() {
        let hopeless = Period { over: 500, window_at_min: true, window_at_max: false, ..WELL };
        let mut state = State { saturated_speed: SPEED_ONE, ..State::BEGIN };
        let mut now_nanos = WELL.now_nanos;
        while !state.has_given_up(now_nanos) {
            now_nanos += 100_000_000;
            assert!(now_nanos < 10_000_000_000, "never given up: {state:?}");
            state.step(&Period { now_nanos, nanos: 100_000_000, ..hopeless });
        }
        assert!(state.speed >= SPEED_ONE / 20 * 19);
        for _ in 0..3 {
            now_nanos += 100_000_000;
            state.step(&Period { now_nanos, nanos: 100_000_000, ..WELL });
        }
        assert!(!state.has_given_up(now_nanos));
    }

    #[test]
    fn whatever_is_remembered_nothing_overflows() {
        let extremes = [0, 1, SPEED_ONE, u64::MAX];
        for word in extremes {
            for number in extremes {
                let mut state = State::from_words([word; 11]);
                let period = Period {
                    now_nanos: number,
                    nanos: number,
                    counted: number,
                    over: number,
                    mean_nanos: number,
                    delivered: number,
                    base_nanos: number,
                    ..WELL
                };
                state.step(&period);
                state.step(&Period { is_saturated: true, window_at_min: true, ..period });
                assert!((SPEED_MIN..=SPEED_MAX).contains(&state.speed));
            }
        }
    }
}
