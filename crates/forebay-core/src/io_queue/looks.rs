//! How far apart an owner's looks at the disk are.

use crate::Time;

/// The usual gap follows by this part of it with each look: it ends at the median.
const STEP_PART: u64 = 16;
/// A gap this many times the usual one is of an owner that was away.
const AWAY_GAPS: u64 = 4;

/// What is usual of an owner's looks.
#[derive(Clone, Copy, Debug)]
pub(super) struct PollGapTracker {
    seen_at: Time,
    usual_nanos: u64,
}

impl PollGapTracker {
    pub(super) const BEGIN: Self = Self { seen_at: Time::ZERO, usual_nanos: 0 };

    /// An answer was found `now`, so long after the look before. Whether the owner was
    /// away meanwhile.
    pub(super) fn was_away(&mut self, now: Time, gap_nanos: u64) -> bool {
        if self.seen_at == Time::ZERO {
            self.usual_nanos = gap_nanos;
        }
        if now > self.seen_at {
            self.seen_at = now;
            let step = self.usual_nanos / STEP_PART + 1;
            self.usual_nanos = match gap_nanos > self.usual_nanos {
                true => self.usual_nanos.saturating_add(step),
                false => self.usual_nanos.saturating_sub(step),
            };
        }
        gap_nanos > self.usual_nanos.saturating_mul(AWAY_GAPS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of `looks` with such gaps, those that are of an owner that was away.
    fn away(looks: u64, gap_of: impl Fn(u64) -> u64) -> u64 {
        let (mut seen, mut now, mut away) = (PollGapTracker::BEGIN, Time::from_nanos(1), 0);
        for look in 0..looks {
            now = now.plus_nanos(gap_of(look));
            // several come back together
            for _ in 0..3 {
                away += u64::from(seen.was_away(now, gap_of(look)));
            }
        }
        away / 3
    }

    #[test]
    fn who_is_away_now_and_then_is_told_from_who_always_looks_so_rarely() {
        for usual in [10_000, 1_000_000, 20_000_000] {
            assert_eq!(away(1000, |_| usual), 0, "{usual}");
            for one_in in [3, 20, 50] {
                let gap_of = |look| if look % one_in == one_in - 1 { 50 * usual } else { usual };
                let (seen, all) = (away(1000, gap_of), 1000 / one_in);
                assert!(
                    seen >= all - 2 && seen <= all,
                    "{usual}, one in {one_in}: {seen} of {all}"
                );
            }
        }
    }
}
