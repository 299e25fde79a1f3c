//! How a goal is kept while the load changes: which weight the class of the goal has, and how fast the
//! kernel hands out disk time. Pure: time and samples are passed in, once a second.
//!
//! A weight costs nothing to write, so a missed goal raises it at once. `io.cost.qos` holds up the disk
//! for tens of milliseconds, so it is written at most once in [`WRITE_GAP`]. The rate goes down to what
//! the disk has really served, and up in steps where others wait and disk time is left unused.

use std::collections::VecDeque;
use std::time::Duration;

/// Between two writes of `io.cost.qos`.
pub(crate) const WRITE_GAP: Duration = Duration::from_secs(10);
/// What is looked at for unused disk time: so many samples.
const SAMPLES: usize = 5;
/// Less than this part of the disk is "unused", and so is a latency below this part of the goal.
const USED_MIN: f64 = 0.9;
const ROOM: f64 = 0.8;
const GROWTH: f64 = 1.05;
/// Up to a rate that has held before, the growth is this.
const FAST_GROWTH: f64 = 1.5;
/// A rate that was too high is lowered to this part of itself. Where the disk did not keep up, it is
/// this part of what was served, so that what waits in the disk is done soon.
const LOWERED: f64 = 0.85;
const LOWERED_BEHIND: f64 = 0.5;
const RATES: [u32; 2] = [5, 150];
const WEIGHT_MAX: u32 = 10_000;
/// So long no rate grows beyond what has held after one was lowered.
const PATIENCE: Duration = Duration::from_secs(30);
/// So long no rate grows to this part of one that was too high; doubled each time it was again.
const REMEMBERED: Duration = Duration::from_secs(300);
const BELOW_FAILED: f64 = 0.95;
/// A miss so soon after a change is its fault.
const BLAMED: Duration = Duration::from_secs(15);
/// A weight goes back by half after so long a time without a miss; doubled, up to the second, each time
/// that leads to one.
const CALM: [Duration; 2] = [Duration::from_secs(30), Duration::from_secs(120)];
/// A miss of so many samples with nothing left to do is said.
const HOPELESS: u32 = 10;

/// What was seen in a second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Sample {
    /// The latency of the class of the goal as a part of the goal; `None` without requests of it.
    pub(crate) latency: Option<f64>,
    /// What the disk has served, as a part of what its model says.
    pub(crate) used: f64,
    /// Whether requests waited all the time.
    pub(crate) waits: bool,
}

/// What to change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// The weight of the class of the goal.
    Weight(u32),
    /// The rate, in percent of the model.
    Rate(u32),
    /// The goal cannot be kept: to be said once.
    Cannot,
}

/// The state of one disk.
#[derive(Clone, Debug)]
pub(crate) struct Steering {
    rate: u32,
    weight: u32,
    stated_weight: u32,
    samples: VecDeque<Sample>,
    missed: u32,
    /// When the goal was missed last, the rate was written, grew, and the weight was lowered.
    last_miss: Option<Duration>,
    last_write: Option<Duration>,
    last_growth: Option<Duration>,
    before_growth: u32,
    last_relief: Option<Duration>,
    grows_from: Duration,
    /// The rate that was too high after it grew, and until when that is remembered.
    failed: Option<(u32, Duration)>,
    /// The highest rate that has held.
    held: u32,
    remembered: Duration,
    calm: Duration,
}

impl Steering {
    /// Begins with a rate that was written just now, and the weight that the class was given.
    pub(crate) fn new(rate: u32, weight: u32, now: Duration) -> Self {
        Self {
            rate,
            weight,
            stated_weight: weight,
            samples: VecDeque::new(),
            missed: 0,
            last_miss: None,
            last_write: Some(now),
            last_growth: None,
            before_growth: rate,
            last_relief: None,
            grows_from: now,
            failed: None,
            held: rate,
            remembered: REMEMBERED,
            calm: CALM[0],
        }
    }

    /// The next second.
    pub(crate) fn step(&mut self, now: Duration, sample: Sample) -> Vec<Action> {
        if self.samples.len() == SAMPLES {
            self.samples.pop_front();
        }
        self.samples.push_back(sample);
        match sample.latency {
            Some(latency) if latency > 1.0 => self.miss(now),
            Some(_) => self.hold(now),
            // nobody waits for a goal
            None => Vec::new(),
        }
    }

    fn miss(&mut self, now: Duration) -> Vec<Action> {
        if self.missed == 0 {
            let is_blamed = |at: Option<Duration>| at.is_some_and(|at| now - at <= BLAMED);
            if is_blamed(self.last_growth.take()) {
                self.failed = Some((self.rate, now + self.remembered));
                self.held = self.before_growth;
                self.remembered *= 2;
            }
            if is_blamed(self.last_relief.take()) {
                self.calm = (2 * self.calm).min(CALM[1]);
            }
        }
        self.missed += 1;
        self.last_miss = Some(now);
        let mut actions = Vec::new();
        if self.weight < WEIGHT_MAX {
            self.weight = (2 * self.weight).min(WEIGHT_MAX);
            actions.push(Action::Weight(self.weight));
        }
        let lower = self.lower_rate();
        // the second one is wholly of the new state
        if self.missed > 1 && lower < self.rate && self.may_write(now) {
            self.write(lower, now);
            self.grows_from = now + PATIENCE;
            actions.push(Action::Rate(lower));
        } else if actions.is_empty()
            && self.missed.is_multiple_of(HOPELESS)
            && self.rate == RATES[0]
        {
            actions.push(Action::Cannot);
        }
        actions
    }

    /// A rate that the disk keeps up with, by what it has served of late.
    fn lower_rate(&self) -> u32 {
        let Some(last) = self.samples.back() else { return self.rate };
        let own = f64::from(self.rate) / 100.0;
        let is_behind = last.waits && last.used < own * USED_MIN;
        let lower = if is_behind { last.used * LOWERED_BEHIND } else { own * LOWERED };
        ((100.0 * lower) as u32).max(RATES[0])
    }

    fn hold(&mut self, now: Duration) -> Vec<Action> {
        self.missed = 0;
        let mut actions = Vec::new();
        let is_calm = |since: Option<Duration>| since.is_none_or(|at| now - at >= self.calm);
        if self.weight > self.stated_weight && is_calm(self.last_miss) && is_calm(self.last_relief)
        {
            self.weight = (self.weight / 2).max(self.stated_weight);
            self.last_relief = Some(now);
            actions.push(Action::Weight(self.weight));
        }
        if self.may_write(now) && self.is_left_unused() {
            let higher = self.higher_rate(now);
            if higher > self.rate {
                (self.last_growth, self.before_growth) = (Some(now), self.rate);
                self.write(higher, now);
                actions.push(Action::Rate(higher));
            }
        }
        actions
    }

    /// Whether others waited for a disk that had time left, with the goal kept all the while.
    fn is_left_unused(&self) -> bool {
        let worst = self.samples.iter().filter_map(|sample| sample.latency).fold(0.0, f64::max);
        let used = self.samples.iter().map(|sample| sample.used).sum::<f64>() / SAMPLES as f64;
        let waits = self.samples.iter().all(|sample| sample.waits);
        self.samples.len() == SAMPLES && waits && worst < ROOM && used < USED_MIN
    }

    /// Fast up to what has held before, and in small steps beyond that.
    fn higher_rate(&mut self, now: Duration) -> u32 {
        let rate = f64::from(self.rate);
        let higher = if self.rate < self.held {
            ((rate * FAST_GROWTH) as u32).min(self.held)
        } else if now >= self.grows_from {
            self.held = self.rate;
            (rate * GROWTH) as u32
        } else {
            return self.rate;
        };
        let highest = match self.failed {
            Some((failed, until)) if now < until => (f64::from(failed) * BELOW_FAILED) as u32,
            _ => RATES[1],
        };
        higher.max(self.rate + 1).min(highest)
    }

    fn may_write(&self, now: Duration) -> bool {
        self.last_write.is_none_or(|at| now - at >= WRITE_GAP)
    }

    fn write(&mut self, rate: u32, now: Duration) {
        self.rate = rate;
        self.last_write = Some(now);
        self.samples.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A disk in virtual time, with a class of a goal and others that want all that is left.
    struct Plant {
        /// What the disk does, as a part of its model.
        speed: f64,
        rate: f64,
        weight: f64,
        others_weight: f64,
        /// What the class of the goal wants.
        demand: f64,
        /// Seconds of work that wait in the disk, and for the class's share.
        in_disk: f64,
        behind: f64,
        random: u64,
    }

    const GOAL: f64 = 0.004;
    /// What 128 requests of 128 KiB take at 100 MB/s.
    const IN_DISK_MAX: f64 = 0.17;

    impl Plant {
        fn new() -> Self {
            Self {
                speed: 1.0,
                rate: 0.8,
                weight: 1000.0,
                others_weight: 150.0,
                demand: 0.12,
                in_disk: 0.0,
                behind: 0.0,
                random: 7,
            }
        }

        /// A second of load.
        fn second(&mut self) -> Sample {
            let share = self.rate * self.weight / (self.weight + self.others_weight);
            self.behind = (self.behind + self.demand - share).clamp(0.0, 5.0);
            let queue = (self.in_disk + self.rate - 0.97 * self.speed).clamp(0.0, IN_DISK_MAX);
            let used = (self.rate + self.in_disk - queue).min(self.speed);
            self.in_disk = queue;
            let busy = (self.rate / self.speed).min(0.98);
            self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let noise = 0.9 + 0.2 * ((self.random >> 40) as f64 / (1u64 << 24) as f64);
            let latency = 0.0005 / (1.0 - busy) * noise + queue + self.behind;
            Sample { latency: Some(latency / GOAL), used, waits: true }
        }
    }

    /// What came of a run: seconds of misses, and when `io.cost.qos` was written.
    #[derive(Default)]
    struct Run {
        missed: Vec<u64>,
        written: Vec<u64>,
        used: Vec<f64>,
        said: u32,
    }

    fn run(plant: &mut Plant, seconds: u64, mut event: impl FnMut(u64, &mut Plant)) -> Run {
        let mut steering = Steering::new(80, 1000, Duration::ZERO);
        let mut run = Run::default();
        for second in 1..=seconds {
            event(second, plant);
            let sample = plant.second();
            if sample.latency.unwrap() > 1.0 {
                run.missed.push(second);
            }
            run.used.push(sample.used);
            for action in steering.step(Duration::from_secs(second), sample) {
                match action {
                    Action::Weight(weight) => plant.weight = f64::from(weight),
                    Action::Rate(rate) => {
                        plant.rate = f64::from(rate) / 100.0;
                        run.written.push(second);
                    }
                    Action::Cannot => run.said += 1,
                }
            }
        }
        let gaps = run.written.windows(2).map(|pair| pair[1] - pair[0]);
        assert!(gaps.min().unwrap_or(10) >= WRITE_GAP.as_secs(), "{:?}", run.written);
        run
    }

    #[test]
    fn a_quiet_disk_is_used_up_and_its_goal_kept() {
        let run = run(&mut Plant::new(), 600, |_, _| {});
        assert!(run.missed.len() <= 20, "{:?}", run.missed);
        let late = &run.used[300..];
        assert!(late.iter().sum::<f64>() / late.len() as f64 > 0.8);
        assert!(run.written.len() <= 20, "{:?}", run.written);
    }

    #[test]
    fn a_disk_at_a_third_of_its_speed_keeps_the_goal_within_ten_seconds() {
        let run = run(&mut Plant::new(), 200, |second, plant| {
            plant.speed = if (61..=80).contains(&second) { 0.3 } else { 1.0 };
        });
        let in_it: Vec<u64> =
            run.missed.iter().copied().filter(|at| (61..=80).contains(at)).collect();
        assert!(in_it.iter().all(|at| *at <= 70), "{in_it:?}");
        let last = &run.used[170..];
        assert!(last.iter().sum::<f64>() / last.len() as f64 > 0.7, "{last:?}");
    }

    #[test]
    fn another_mix_that_the_model_prices_too_low_is_followed() {
        let run = run(&mut Plant::new(), 600, |second, plant| {
            plant.speed = if second > 60 { 0.7 } else { 1.0 };
        });
        assert!(run.missed.iter().any(|at| *at > 60));
        let late = run.missed.iter().filter(|at| **at > 72).count();
        assert!(late <= 20, "{:?}", run.missed);
    }

    #[test]
    fn a_heavy_cgroup_that_comes_is_outweighed_until_it_goes() {
        let mut plant = Plant::new();
        let run = run(&mut plant, 800, |second, plant| {
            plant.others_weight = if (61..=120).contains(&second) { 40_150.0 } else { 150.0 };
        });
        let in_it: Vec<u64> =
            run.missed.iter().copied().filter(|at| (61..=120).contains(at)).collect();
        // and a second or two of each try whether less weight would do
        assert!(!in_it.is_empty() && in_it.iter().filter(|at| **at > 71).count() <= 4, "{in_it:?}");
        assert_eq!(plant.weight, 1000.0);
    }

    #[test]
    fn a_goal_that_cannot_be_kept_is_said() {
        let mut plant = Plant { speed: 0.01, ..Plant::new() };
        assert!(run(&mut plant, 300, |_, _| {}).said > 0);
    }

    #[test]
    fn without_requests_of_the_class_nothing_changes() {
        let mut steering = Steering::new(80, 100, Duration::ZERO);
        let idle = Sample { latency: None, used: 0.1, waits: true };
        assert!((1..100).all(|second| steering.step(Duration::from_secs(second), idle).is_empty()));
    }
}
