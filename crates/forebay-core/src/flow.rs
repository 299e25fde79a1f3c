//! Dispatched requests per completed request, smoothed (Seastar's flow ratio).

use crate::Time;

/// The effective goals of a period, as in Seastar: 75 ms at the default goal. In a shorter period
/// few requests complete.
const PERIOD_GOALS: u64 = 100;
/// The weight of the latest period, in percent, as in Seastar. A larger weight lets a single slow
/// period change the ratio; a smaller one follows the disk later.
const LATEST_PERCENT: u64 = 5;
/// The ratio one in millionths, the unit in which the ratio is averaged. It is a thousand times
/// finer than what is reported, so that the average is not rounded there.
const SCALE: u64 = 1_000_000;

/// Averages the ratio over periods; 1 while the disk keeps up, and under a
/// window, which lets in what has room, whether it does or not.
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

    /// Takes the totals into account, once per period.
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
