//! The flow ratio: dispatched requests per completed request, smoothed (a term of Seastar).

use crate::Time;

/// The length of a period in effective goals, as in Seastar: 75 ms at the default goal. In a shorter
/// period few requests complete.
const PERIOD_GOALS: u64 = 100;
/// The weight of the latest period, in percent, as in Seastar. With a larger weight a single slow
/// period changes the ratio; with a smaller one it follows the disk later.
const LATEST_PERCENT: u64 = 5;
/// The ratio of one, in the unit of the average: millionths. The unit is a thousand times finer than
/// the reported one, so the average is not rounded to that.
const SCALE: u64 = 1_000_000;

/// The average of the ratio over periods. It is 1 while the disk keeps up. It is also 1 under a window,
/// which admits requests only as others complete.
#[derive(Debug)]
pub(crate) struct FlowRatio {
    period_ends: Time,
    dispatched: u64,
    completed: u64,
    scaled: u64,
}

impl FlowRatio {
    pub(crate) fn new() -> Self {
        Self { period_ends: Time::ZERO, dispatched: 0, completed: 0, scaled: SCALE }
    }

    #[cfg(test)]
    pub(crate) fn of_permille(permille: u64) -> Self {
        Self { scaled: permille * (SCALE / 1000), ..Self::new() }
    }

    /// Updates the average with new totals, at most once per period.
    pub(crate) fn update(&mut self, now: Time, goal_nanos: u64, dispatched: u64, completed: u64) {
        if now < self.period_ends {
            return;
        }
        self.period_ends = now.plus_nanos(goal_nanos.saturating_mul(PERIOD_GOALS));
        let (sent, done) = (dispatched - self.dispatched, completed - self.completed);
        if let Some(latest) = sent.saturating_mul(SCALE).checked_div(done) {
            let kept = (100 - LATEST_PERCENT) * self.scaled;
            self.scaled = kept.saturating_add(LATEST_PERCENT.saturating_mul(latest)) / 100;
            (self.dispatched, self.completed) = (dispatched, completed);
        }
    }

    pub(crate) fn permille(&self) -> u64 {
        self.scaled / (SCALE / 1000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_that_completes_half_of_what_it_gets_shows() {
        let mut flow = FlowRatio::new();
        let (mut sent, mut done) = (0, 0);
        for period in 0..200 {
            (sent, done) = (sent + 20, done + 10);
            flow.update(Time::from_nanos(period * 75_000_000), 750_000, sent, done);
        }
        assert!((1_990..=2_000).contains(&flow.permille()), "{}", flow.permille());
    }

    #[test]
    fn silence_changes_nothing() {
        let mut flow = FlowRatio::new();
        flow.update(Time::from_nanos(1), 750_000, 50, 0);
        assert_eq!(flow.permille(), 1_000);
    }
}
