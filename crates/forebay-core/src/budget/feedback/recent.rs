//! What was measured lately, since a single period may have been a hang, or a
//! thread that was late.

use super::period::Period;

/// What lies back counts this part less with each period.
const FADE_PART: u64 = 4;

/// Sums over periods, of which those that lie back fade.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Recent {
    nanos: u64,
    counted: u64,
    over: u64,
    /// What those counted took,
    latency_nanos: u64,
    /// and what was delivered, as a speed in each microsecond.
    delivered: u64,
    at_pace: u64,
    at_window: u64,
}

impl Recent {
    pub(super) const WORDS: usize = 7;
    pub(super) const NOTHING: Self = Self::from_words([0; Self::WORDS]);

    /// One period more; what it shows together with those before it.
    pub(super) fn add(&mut self, period: &Period) -> Period {
        let micros = period.nanos / 1000;
        *self = Self {
            nanos: faded(self.nanos).saturating_add(period.nanos),
            counted: faded(self.counted).saturating_add(period.counted),
            over: faded(self.over).saturating_add(period.over),
            latency_nanos: faded(self.latency_nanos)
                .saturating_add(period.mean_nanos.saturating_mul(period.counted)),
            delivered: faded(self.delivered)
                .saturating_add(period.delivered.saturating_mul(micros)),
            at_pace: faded(self.at_pace).saturating_add(period.at_pace),
            at_window: faded(self.at_window).saturating_add(period.at_window),
        };
        Period {
            lately_nanos: self.nanos,
            counted: self.counted,
            over: self.over,
            mean_nanos: self.latency_nanos / self.counted.max(1),
            delivered: self.delivered / (self.nanos / 1000).max(1),
            at_pace: self.at_pace,
            at_window: self.at_window,
            ..*period
        }
    }

    pub(super) const fn to_words(self) -> [u64; Self::WORDS] {
        [
            self.nanos,
            self.counted,
            self.over,
            self.latency_nanos,
            self.delivered,
            self.at_pace,
            self.at_window,
        ]
    }

    pub(super) const fn from_words(words: [u64; Self::WORDS]) -> Self {
        let [nanos, counted, over, latency_nanos, delivered, at_pace, at_window] = words;
        Self { nanos, counted, over, latency_nanos, delivered, at_pace, at_window }
    }
}

fn faded(sum: u64) -> u64 {
    sum - sum / FADE_PART
}
