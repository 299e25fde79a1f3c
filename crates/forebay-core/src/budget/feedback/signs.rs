//! What a period shows, beside those before it.

use super::period::{COUNTED_MIN, Period, SPEED_ONE};
use super::state::{SPEED_MAX, State};

/// What is delivered is compared with what is let through over so many periods,
/// and at least so long.
const COMPARED_PERIODS: u64 = 8;
const COMPARED_MILLIS: u64 = 100;
/// A disk that delivers this part less is full.
const FULL_PART: u64 = 128;
/// Those that the target is about get so much less: a part of so many.
const COST_PART: u64 = 16;
/// So many periods after a cut say what is usual.
const USUAL_PERIODS: u64 = 5;
/// Beyond the knee requests take this many times the latency of the idle disk,
const KNEE_BASES: u64 = 5;
/// but a mean of this part of the target is what was asked for.
const KNEE_PART: u64 = 8;

impl State {
    /// Whether requests take much longer than is usual after a cut, or than in
    /// the idle disk: more is delivered past that point, but to nobody's good.
    pub(super) fn is_beyond_knee(&mut self, period: &Period) -> bool {
        if period.counted < COUNTED_MIN {
            return false;
        }
        let settled = period.now_nanos >= self.settles_until;
        if settled && !period.is_saturated() && self.usual_periods < USUAL_PERIODS {
            self.usual_periods += 1;
            self.usual_nanos = self.usual_nanos.saturating_add(period.mean_nanos);
            self.usual_rate = self.usual_rate.saturating_add(period.rate());
            self.usual_speed = self.speed;
        }
        self.is_beyond_knee_now(period)
    }

    /// Whether those of this period do.
    pub(super) fn is_beyond_knee_now(&self, period: &Period) -> bool {
        if period.counted < COUNTED_MIN || period.mean_nanos <= period.threshold_nanos / KNEE_PART {
            return false;
        }
        let twice_usual = (self.usual_nanos / USUAL_PERIODS).saturating_mul(2);
        let is_unusual = self.usual_periods == USUAL_PERIODS && period.mean_nanos > twice_usual;
        let knee = period.base_nanos.saturating_mul(KNEE_BASES);
        is_unusual || (knee > 0 && period.mean_nanos > knee)
    }

    /// Whether the disk has delivered less than was let through for a while,
    /// and requests wait in it.
    pub(super) fn is_full(&mut self, period: &Period) -> bool {
        let millis = (period.nanos / 1_000_000).min(1000);
        let fade = |sum: u64| sum - sum / COMPARED_PERIODS;
        self.let_through = fade(self.let_through).saturating_add(self.speed * millis);
        let delivered = period.delivered.min(SPEED_MAX).saturating_mul(millis);
        self.delivered = fade(self.delivered).saturating_add(delivered);
        let compared = self.let_through >= self.speed.saturating_mul(COMPARED_MILLIS);
        if compared {
            self.best = self.best.max(self.full_speed().min(self.speed));
        }
        compared
            && self.speed > SPEED_ONE
            && !period.is_saturated()
            && self.waits_in_disk(period)
            && self.delivered < self.let_through - self.let_through / FULL_PART
    }

    /// Whether requests take longer than in the idle disk, or than is usual
    /// where that is not known.
    fn waits_in_disk(&self, period: &Period) -> bool {
        match period.base_nanos {
            0 => {
                let usual_nanos = self.usual_nanos / USUAL_PERIODS;
                self.usual_periods == USUAL_PERIODS && period.is_later_than(usual_nanos)
            }
            base_nanos => period.is_later_than(base_nanos),
        }
    }

    /// The speed that the disk delivered lately.
    pub(super) fn full_speed(&self) -> u64 {
        let speed = u128::from(self.speed) * u128::from(self.delivered);
        u64::try_from(speed / u128::from(self.let_through.max(1))).unwrap_or(u64::MAX)
    }

    /// Whether growth has served others at the cost of those that the target is
    /// about.
    pub(super) fn is_at_their_cost(&self, period: &Period) -> bool {
        let usual_nanos = self.usual_nanos / USUAL_PERIODS;
        let usual_rate = self.usual_rate / USUAL_PERIODS;
        self.usual_periods == USUAL_PERIODS
            && self.speed > self.usual_speed.max(SPEED_ONE)
            && period.counted >= COUNTED_MIN
            && period.is_later_than(usual_nanos)
            && period.rate() < usual_rate / COST_PART * (COST_PART - 1)
    }
}
