//! What the loop remembers from period to period.

use super::period::SPEED_ONE;

/// The disk may be this many times as fast as its model,
pub(super) const SPEED_MAX: u64 = 4 * SPEED_ONE;
/// or this part of it.
pub(super) const SPEED_MIN: u64 = SPEED_ONE / 20;
/// Growth per millisecond, in parts of [`SPEED_ONE`]: at first 4 % in a second,
/// doubled in 360 ms, up to 200 %.
pub(super) const GROWTH: (u64, u64) = (42, 2097);
/// for as long at first, and twice as long each further time,
pub(super) const GIVEN_UP_NANOS: (u64, u64) = (8_000_000_000, 256_000_000_000);

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
    /// What was let through and what was delivered in the periods before this
    /// one, in speed times milliseconds, fading.
    pub(super) let_through: u64,
    pub(super) delivered: u64,
    /// No growth until then.
    pub(super) drains_until: u64,
    /// In those usual periods: requests counted in a million milliseconds, added
    /// up, and the speed.
    pub(super) usual_rate: u64,
    pub(super) usual_speed: u64,
    /// The most that was delivered since the target was last missed: while it
    /// holds, cuts must not cost a sixteenth of that.
    pub(super) best: u64,
    /// No such cuts until then, since they did not help,
    pub(super) kept_until: u64,
    /// which they did not for so long the last time.
    pub(super) kept_nanos: u64,
    /// The speed when the target began to be missed.
    pub(super) missed_from: u64,
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
        let_through: 0,
        delivered: 0,
        drains_until: 0,
        usual_rate: 0,
        usual_speed: SPEED_ONE,
        best: 0,
        kept_until: 0,
        kept_nanos: 0,
        missed_from: SPEED_ONE,
    };

    /// The numbers in the order of their declaration.
    pub(super) fn to_words(self) -> [u64; 20] {
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
            self.let_through,
            self.delivered,
            self.drains_until,
            self.usual_rate,
            self.usual_speed,
            self.best,
            self.kept_until,
            self.kept_nanos,
            self.missed_from,
        ]
    }

    /// What [`State::to_words`] made words of; whatever they are, the speed and
    /// its growth are in range.
    pub(super) fn from_words(words: [u64; 20]) -> Self {
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
            let_through,
            delivered,
            drains_until,
            usual_rate,
            usual_speed,
            best,
            kept_until,
            kept_nanos,
            missed_from,
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
            let_through,
            delivered,
            drains_until,
            usual_rate,
            usual_speed,
            best,
            kept_until,
            kept_nanos: kept_nanos.min(GIVEN_UP_NANOS.1),
            missed_from: missed_from.clamp(SPEED_MIN, SPEED_MAX),
        }
    }
}
