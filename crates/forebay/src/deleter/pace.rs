//! The time at which the next step may begin.

use forebay_core::Time;

/// Nanoseconds per second.
const SECOND: u64 = 1_000_000_000;

/// The most delay that later steps make up for, in nanoseconds. Steps wait for the disk, but should
/// keep the rate on average.
const CREDIT_MAX: u64 = SECOND / 2;

/// Keeps a rate of bytes and of commands. Each step is charged the time that it takes at these
/// rates.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// The time up to which all steps are paid for.
    pub(super) next: Option<Time>,
}

impl Pace {
    /// Whether a step may begin.
    pub(super) fn is_open(&self, now: Time) -> bool {
        self.next.is_none_or(|next| next <= now)
    }

    /// Charges a step that ends at `now`, with counts and rates per second of bytes and commands.
    pub(super) fn pay(
        &mut self,
        now: Time,
        bytes: (u64, Option<u64>),
        commands: (u64, Option<u64>),
    ) {
        let nanos = [bytes, commands].into_iter().map(|(count, rate)| nanos(count, rate)).max();
        let earliest = Time::from_nanos(now.as_nanos().saturating_sub(CREDIT_MAX));
        let from = self.next.map_or(now, |next| next.max(earliest));
        let nanos = nanos.unwrap_or(0);
        // Delays are made up for gradually: a step takes at least three quarters of its time.
        self.next = Some(from.plus_nanos(nanos).max(now.plus_nanos(nanos / 4 * 3)));
    }

    /// Notes that there is nothing to do. Idle time is not made up for.
    pub(super) fn rest(&mut self, now: Time) {
        if self.is_open(now) {
            self.next = None;
        }
    }

    /// Limits the wait after a change of the rate to one step.
    pub(super) fn hurry(&mut self, latest: Time) {
        self.next = self.next.map(|next| next.min(latest));
    }
}

/// The time that `count` units take at `rate`, in nanoseconds; 0 without a rate.
fn nanos(count: u64, rate: Option<u64>) -> u64 {
    let Some(rate) = rate else { return 0 };
    let nanos = u128::from(count) * u128::from(SECOND) / u128::from(rate.max(1));
    u64::try_from(nanos).unwrap_or(u64::MAX / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    use forebay_load::Rng;

    const MIB: u64 = 1 << 20;

    /// The bytes freed in ten seconds, in steps that take at most this many nanoseconds each.
    fn freed(rate: (u64, u64), step: (u64, u64), takes: u64) -> (u64, u64) {
        let (mut rng, mut pace) = (Rng::new(1, &[]), Pace::default());
        let (mut now, mut bytes, mut commands) = (Time::from_nanos(SECOND), 0, 0);
        let end = now.plus_nanos(10 * SECOND);
        loop {
            if let Some(next) = pace.next {
                now = now.max(next);
            }
            if now >= end {
                return (bytes, commands);
            }
            // Paid before the step is done, so that its duration is not added.
            pace.pay(now, (step.0, Some(rate.0)), (step.1, Some(rate.1)));
            now = now.plus_nanos(rng.below(takes));
            bytes += step.0;
            commands += step.1;
        }
    }

    #[test]
    fn bytes_and_commands_per_second_are_held_within_five_percent() {
        for rate in [10 * MIB, 512 * MIB, 3 << 30] {
            for takes in [1, SECOND / 50, SECOND / 13] {
                let (bytes, _) = freed((rate, 1 << 40), (rate / 13, 1), takes);
                let share = bytes as f64 / (10 * rate) as f64;
                assert!((0.95..1.05).contains(&share), "{rate}, {takes}: {share}");
            }
        }
        let (_, commands) = freed((1 << 50, 500), (MIB, 8), SECOND / 100);
        assert!((4750..5250).contains(&commands), "{commands}");
    }

    #[test]
    fn time_without_work_is_not_made_up_for() {
        let mut pace = Pace::default();
        let at = |second: u64| Time::from_nanos(second * SECOND);
        pace.pay(at(1), (100, Some(100)), (1, None));
        assert!(!pace.is_open(at(1)) && pace.is_open(at(2)));
        pace.rest(at(60));
        pace.pay(at(60), (100, Some(100)), (1, None));
        assert_eq!(pace.next, Some(at(61)));
        pace.pay(at(90), (100, Some(100)), (1, None));
        assert_eq!(pace.next, Some(Time::from_nanos(90 * SECOND + SECOND / 4 * 3)));
        pace.hurry(at(90));
        assert!(pace.is_open(at(90)));
    }
}
