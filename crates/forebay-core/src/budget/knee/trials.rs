//! Trials of other windows.
//!
//! An interval with another window is compared with the intervals before and after it. The other window is
//! adopted if 1 % more rate costs less than 4.5 % more latency. The latency is that of fresh requests, from
//! enqueueing to completion. No threshold is a time.
//!
//! Decision: `docs/decisions/0007-window-by-trials.md`.

use super::measured::{MILLION, Measured, ln_ratio};
use super::target::Target;

/// One effective goal in the unit of windows, which are counted in thousandths of it. The smallest
/// window is 250 of them, so rounding changes a window by 0.4 % at most.
pub(super) const ONE_GOAL: i64 = 1000;
/// The first window, in thousandths of an effective goal. One goal is the best window of disks that
/// serve one request after the other.
const BEGIN: i64 = ONE_GOAL;
/// The smallest window while the disk has idle moments, in thousandths of an effective goal. Then no
/// scheduler is needed, and a smaller window makes requests of small shares wait needlessly.
const FREE: i64 = 8 * ONE_GOAL;
/// The smallest and the largest window, in thousandths of an effective goal. They bound the search:
/// one request always enters, however small the window, and the largest one is eight doublings of
/// the first.
const WINDOWS: (i64, i64) = (ONE_GOAL / 4, 256 * ONE_GOAL);
/// The factor on the window while all classes are backlogged, in thousandths. Then no latency depends on the
/// window, and several shards have room at once. With a smaller window they take turns, and p99 is twice the
/// mean.
const BACKLOGGED: i64 = 2500;

/// The trials in turn, as factors on the window in thousandths: a doubling, a step down, a step up that
/// undoes it, and a wide window. Steps of 1.4 alone find nothing if the window holds one request of 128 KiB,
/// because 1.4 times the window holds one too.
const FACTORS: [i64; TRIALS] = [2000, 714, 1400, 8000];
/// The number of trials, which is the length of `FACTORS`.
pub(super) const TRIALS: usize = 4;
/// Encoding: The index in `FACTORS` of the only trial of a smaller window.
const DOWN: usize = 1;
/// Encoding: The index in `FACTORS` of the trial that undoes a smaller window.
const UP: usize = 2;
/// Encoding: The index in `FACTORS` of a trial for arrays, whose members are all busy only at a window far
/// above that of one disk. It runs only where a single class is always backlogged, so it harms no other
/// class.
const WIDE: usize = 3;

/// The weight of latency against rate in a score, in thousandths: 1 % more rate is worth 4.5 % more
/// latency. With a larger weight the window is smaller and the rate lower; with a smaller one
/// requests wait longer for little rate.
const LATENCY_WEIGHT: i64 = 220;
/// The score that a larger window needs, in millionths of rate (2 %). With a smaller margin, noise raises the
/// window; a larger one leaves rate unused.
const UP_MARGIN: i64 = 20_000;
/// How far below zero the score of a smaller window may be, in millionths of rate (1 %). So the window
/// shrinks if it loses less than that. A larger margin gives rate away in many small steps.
const DOWN_MARGIN: i64 = 10_000;
/// The distance of a mean score from zero, in thousandths of a standard error, from which it is clear (1.5).
/// With a smaller one, noise decides; with a larger one, each step takes more trials.
const ERRORS: i64 = 1500;
/// The difference of two intervals at the same window that is assumed before any are compared, in millionths
/// (15 %). With a smaller one, the first steps are taken by chance; with a larger one, they are taken later.
const NOISE_BEGIN: i64 = 150_000;
/// The least difference of two intervals at the same window that is believed, in millionths (1 %). A few
/// intervals may be alike by chance, and noise would then count as a clear score.
const NOISE_MIN: i64 = 10_000;
/// With each trial, the mean squared difference moves towards the latest one by one part in this many. With a
/// smaller number, it may be small by chance; with a larger one, it follows the load later.
const NOISE_PART: i64 = 16;

/// The part of the best recent rate that a smaller window must keep, in hundredths. The first number applies
/// where latencies are known, the second where they are not. With smaller parts, many small losses of rate
/// add up; with larger ones, the window stays too large.
const KEPT: (i64, i64) = (85, 95);
/// The best recent rate falls by one part in this many with each interval. With a smaller number, many small
/// losses add up again; with a larger one, an old rate keeps the window large.
const BEST_PART: i64 = 4096;

/// The gain in rate for which a single trial of a larger window is enough, in millionths. So the window of a
/// disk that answers late, or has many members, is found in few steps. A doubled rate is two thirds of a
/// million by `ln_ratio`.
const GREAT_GAIN: i64 = 500_000;

/// The intervals after a step before the opposite trial. With fewer, the noise of the first intervals undoes
/// a step; with more, a wrong step lasts longer.
const WAIT_BACK: i64 = 4;

/// The time over which waiting and idleness are averaged, in nanoseconds (100 ms). Over a shorter
/// time a short burst makes the disk busy; over a longer one the search begins later.
const AVERAGED_NANOS: i64 = 100_000_000;
/// The disk is busy if work waits for more than this part of the time, in thousandths: the first number to
/// become busy, the second to remain so. Without the gap, a disk near the bound would change at each
/// interval, which voids all evidence.
const WAITING: (i64, i64) = (600, 500);
/// The disk is also busy if less than this part of requests finds it nearly idle, in thousandths: the first
/// number to become busy, the second to remain so. The gap serves the same purpose as that of `WAITING`.
const NEARLY_IDLE: (i64, i64) = (50, 100);
/// All classes are backlogged if less than this part of requests is fresh, in thousandths: the first number
/// to become backlogged, the second to remain so. The gap serves the same purpose as that of `WAITING`.
const FRESH: (i64, i64) = (50, 150);
/// Fresh requests of several classes find no larger window while more than this part of requests is fresh, in
/// thousandths, and the window is larger than `FULL`. Otherwise all requests would be in the disk, which
/// knows no shares. A smaller part takes the reserve from loads that have a backlog.
const FRESH_MAX: i64 = 950;
/// The window up to which fresh requests always find a larger one, in thousandths of an effective goal. The
/// requests of a load with few at a time are all fresh too, and its window is smaller than this.
const FULL: i64 = 4 * ONE_GOAL;
/// Encoding: The part of fresh requests before it is measured at the present window.
const UNKNOWN: i64 = -1;
/// The difference from the usual rate, and from the usual latency, that shows a change of the disk or load,
/// in millionths. With smaller numbers, noise voids all evidence; with larger ones, a window stays that was
/// found for another load.
const CHANGED: (i64, i64) = (250_000, 500_000);
/// The number of intervals in a row that must differ by `CHANGED`. With fewer, a single outlier voids all
/// evidence; with more, a change is found later.
const CHANGED_INTERVALS: i64 = 3;

/// The intervals in a row without another class after which a class counts as alone. Classes that take turns
/// of a few intervals are several; with a smaller number the wide trial would run for them. With a larger
/// one, a class that is alone gets a large window later.
const ALONE_INTERVALS: i64 = 16;

/// One interval.
#[derive(Clone, Copy, Debug)]
pub(super) struct Interval {
    pub(super) measured: Measured,
    pub(super) completed: i64,
    /// Requests that found the disk nearly idle.
    pub(super) nearly_idle: i64,
    /// The time for which work waited, in nanoseconds, a sum over shards.
    pub(super) waited_nanos: i64,
    pub(super) has_several_classes: bool,
    /// Whether it ended early: latency doubled, or another class came during a wide trial.
    pub(super) is_cut_short: bool,
    /// Requests that the latency target is about, and the number of them that took longer.
    pub(super) targeted: i64,
    pub(super) over: i64,
    /// How many of 1000 of them may take longer; 1000 without a target.
    pub(super) allowed_permille: i64,
}

impl Interval {
    fn fresh_permille(&self) -> i64 {
        permille(self.measured.fresh[0] + self.measured.fresh[1], self.completed)
    }
}

fn permille(part: i64, whole: i64) -> i64 {
    (part * 1000 / whole.max(1)).clamp(0, 1000)
}

/// The phase of the present interval: before, during or after a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Before,
    Trial,
    After,
}

/// The search for the window, without clocks and threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Trials {
    pub(super) window: i64,
    pub(super) phase: Phase,
    pub(super) turn: usize,
    pub(super) evidence: [Evidence; TRIALS],
    pub(super) before: Measured,
    /// The interval just before the trial.
    pub(super) last: Measured,
    pub(super) trial: Measured,
    pub(super) is_cut_short: bool,
    /// Whether the classes lost their backlog in the trial.
    pub(super) was_fresh: bool,
    pub(super) is_busy: bool,
    pub(super) is_backlogged: bool,
    /// Averages in thousandths: the part of the time in which work waits, and the parts of requests that find
    /// the disk nearly idle or are fresh.
    pub(super) waiting: i64,
    pub(super) nearly_idle: i64,
    /// [`UNKNOWN`] before it was measured.
    pub(super) fresh: i64,
    /// The mean squared difference of two intervals at the same window.
    pub(super) noise: i64,
    /// The best recent rate, in units of disk time per microsecond.
    pub(super) best: i64,
    pub(super) usual_rate: i64,
    pub(super) usual_latency: i64,
    pub(super) changed_intervals: i64,
    pub(super) regret: Regret,
    /// Intervals in a row without a second class, up to [`ALONE_INTERVALS`].
    pub(super) alone_intervals: i64,
    pub(super) target: Target,
}

impl Trials {
    pub(super) const fn new() -> Self {
        Self {
            window: BEGIN,
            phase: Phase::Before,
            turn: 0,
            evidence: [Evidence::NONE; TRIALS],
            before: Measured::NOTHING,
            last: Measured::NOTHING,
            trial: Measured::NOTHING,
            is_cut_short: false,
            was_fresh: false,
            is_busy: false,
            is_backlogged: false,
            waiting: 0,
            nearly_idle: 1000,
            fresh: 1000,
            noise: NOISE_BEGIN * NOISE_BEGIN,
            best: 0,
            usual_rate: 0,
            usual_latency: 0,
            changed_intervals: 0,
            regret: Regret::NONE,
            alone_intervals: 0,
            target: Target::NONE,
        }
    }

    /// The window for the next interval, in thousandths of an effective goal.
    pub(super) fn window(&self) -> i64 {
        self.free_window().min(self.target.cap())
    }

    /// The window without the cap of a latency target, in the same unit.
    fn free_window(&self) -> i64 {
        let trial = if self.phase == Phase::Trial { FACTORS[self.turn] } else { 1000 };
        let backlogged = if self.is_backlogged { BACKLOGGED } else { 1000 };
        let window = self.window * trial / 1000 * backlogged / 1000;
        if self.is_busy { window.max(1) } else { window.max(FREE) }
    }

    /// Whether fresh requests find a larger window than others.
    pub(super) fn reserves_for_fresh(&self) -> bool {
        let is_full = self.is_busy && self.fresh > FRESH_MAX && self.window > FULL;
        !is_full || !self.has_several_classes()
    }

    /// Whether the present interval tries a window for a class that is alone.
    pub(super) fn is_wide_trial(&self) -> bool {
        self.phase == Phase::Trial && self.turn == WIDE
    }

    /// The mean latency of fresh requests before the present trial, in nanoseconds; `None` outside of trials.
    pub(super) fn usual_latency(&self, direction: usize) -> Option<i64> {
        if self.phase == Phase::Trial { self.before.mean_latency(direction) } else { None }
    }

    /// Discards the intervals before, so that the next ones are not compared with them.
    pub(super) fn begin_again(&mut self) {
        self.phase = Phase::Before;
        self.before = Measured::NOTHING;
        self.last = Measured::NOTHING;
    }

    fn forget(&mut self) {
        self.evidence = [Evidence::NONE; TRIALS];
        self.begin_again();
    }

    /// Evaluates an interval that has ended.
    pub(super) fn step(&mut self, interval: &Interval) {
        let measured = &interval.measured;
        self.alone_intervals = match interval.has_several_classes {
            true => 0,
            false => (self.alone_intervals + 1).min(ALONE_INTERVALS),
        };
        if self.phase != Phase::Trial {
            let Interval { targeted, over, allowed_permille, .. } = *interval;
            self.target.follow(targeted, over, allowed_permille, self.free_window());
        }
        let has_changed_regime = self.has_changed_regime(interval);
        let fresh = if self.has_several_classes() { self.fresh } else { 0 };
        if let Some(before) = self.regret.follow(fresh) {
            (self.window, self.fresh) = (before, UNKNOWN);
            return self.forget();
        }
        if has_changed_regime {
            return self.forget();
        }
        if self.target.cap() < self.free_window() {
            return self.begin_again();
        }
        if !self.is_busy {
            return;
        }
        if self.is_wide_trial() && interval.has_several_classes {
            return self.forget();
        }
        if self.phase == Phase::Trial {
            self.trial = *measured;
            self.is_cut_short = interval.is_cut_short;
            self.was_fresh = self.fresh < FRESH.1 && interval.fresh_permille() > FRESH.1;
            self.phase = Phase::After;
            return;
        }
        if self.has_changed(measured) {
            return self.forget();
        }
        if self.phase == Phase::After && self.judge(measured) {
            return;
        }
        self.before = self.before.halved().plus(measured);
        self.last = *measured;
        self.phase = Phase::Before;
        self.begin_trial();
    }

    /// Whether the disk has become busy or idle, or the classes backlogged or not.
    fn has_changed_regime(&mut self, interval: &Interval) -> bool {
        let Interval { measured, completed, nearly_idle, waited_nanos, .. } = *interval;
        let nanos = measured.nanos.clamp(1, AVERAGED_NANOS);
        let follow = |average: i64, now: i64| average + (now - average) * nanos / AVERAGED_NANOS;
        self.waiting = follow(self.waiting, permille(waited_nanos, measured.nanos));
        self.nearly_idle = follow(self.nearly_idle, permille(nearly_idle, completed));
        // a trial does not show how many requests are fresh at the present window
        if self.phase != Phase::Trial {
            let now = interval.fresh_permille();
            let before = if self.fresh == UNKNOWN { now } else { self.fresh };
            self.fresh = before + (now - before) / 4;
        }
        let is_busy = match self.is_busy {
            false => self.waiting > WAITING.0 || self.nearly_idle < NEARLY_IDLE.0,
            true => self.waiting > WAITING.1 || self.nearly_idle < NEARLY_IDLE.1,
        };
        let bound = if self.is_backlogged { FRESH.1 } else { FRESH.0 };
        let is_backlogged = is_busy && self.is_busy && self.fresh < bound;
        if is_busy && !self.is_busy {
            // measured at the window of an idle disk, which is not the present one
            self.fresh = UNKNOWN;
        }
        let before = (self.is_busy, self.is_backlogged);
        (self.is_busy, self.is_backlogged) = (is_busy, is_backlogged);
        before != (is_busy, is_backlogged)
    }

    /// Whether the disk or the load has changed since the evidence was measured.
    fn has_changed(&mut self, measured: &Measured) -> bool {
        let (rate, latency) = (measured.rate(), measured.mean_latency(0).unwrap_or(0));
        if self.usual_rate == 0 {
            self.usual_rate = rate;
        }
        if self.usual_latency == 0 {
            self.usual_latency = latency;
        }
        let differs = ln_ratio(rate, self.usual_rate).abs() > CHANGED.0
            || latency > 0 && ln_ratio(latency, self.usual_latency).abs() > CHANGED.1;
        self.changed_intervals = if differs { self.changed_intervals + 1 } else { 0 };
        if self.changed_intervals >= CHANGED_INTERVALS {
            self.changed_intervals = 0;
            (self.usual_rate, self.usual_latency, self.best) = (rate, latency, rate);
            return true;
        }
        self.usual_rate += (rate - self.usual_rate) / 8;
        if latency > 0 {
            self.usual_latency += (latency - self.usual_latency) / 8;
        }
        self.best = (self.best - self.best / BEST_PART).max(self.usual_rate);
        false
    }

    fn begin_trial(&mut self) {
        for evidence in &mut self.evidence {
            evidence.wait = (evidence.wait - 1).max(0);
        }
        let may_be_wide = self.is_backlogged && !self.has_several_classes();
        let is_ready = |trial: usize| {
            let is_allowed = trial == DOWN || self.regret.allows_growth();
            is_allowed && self.evidence[trial].wait == 0 && (trial != WIDE || may_be_wide)
        };
        let mut turns = (0..TRIALS).map(|turn| (self.turn + turn) % TRIALS);
        if let Some(ready) = turns.find(|&turn| is_ready(turn)) {
            self.turn = ready;
            self.phase = Phase::Trial;
        }
    }

    /// Judges a trial by the intervals before and after it. Returns whether its window is adopted.
    fn judge(&mut self, after: &Measured) -> bool {
        let score =
            |gain: i64, latency: Option<i64>| gain - latency.unwrap_or(0) * LATENCY_WEIGHT / 1000;
        let same = score(after.gain_over(&self.last), after.latency_over(&self.last));
        let same = same.clamp(-MILLION / 2, MILLION / 2);
        self.noise += (same * same - self.noise) / NOISE_PART;

        let usual = self.before.plus(after);
        let latency = self.trial.latency_over(&usual);
        let gain = self.trial.gain_over(&usual);
        let is_up = self.turn != DOWN;
        let margin = if is_up { UP_MARGIN } else { -DOWN_MARGIN };
        let is_backlogged = latency.is_none() && self.has_several_classes();
        let better = match () {
            () if is_up && (self.was_fresh || is_backlogged && self.leaves_no_backlog()) => {
                -MILLION
            }
            () if self.is_cut_short => score(gain.min(0), latency) - margin,
            () => score(gain, latency) - margin,
        };

        let evidence = &mut self.evidence[self.turn];
        evidence.count += 1;
        evidence.score += better;
        if is_backlogged {
            let surplus = self.trial.surplus_over(&usual);
            evidence.surplus = core::array::from_fn(|one| evidence.surplus[one] + surplus[one]);
        }
        let mean = if evidence.bends_shares() { -MILLION } else { evidence.mean() };
        let error = self.noise.max(NOISE_MIN * NOISE_MIN).isqrt() * ERRORS / 1000;
        let is_clear = i128::from(mean) * i128::from(mean) * i128::from(evidence.count)
            > i128::from(error) * i128::from(error);
        let kept = if latency.is_some() { KEPT.0 } else { KEPT.1 };
        let keeps = is_up || self.trial.rate() > self.best / 100 * kept;
        let is_known = latency.is_some() || self.is_backlogged;
        let is_great = is_up && is_known && gain > GREAT_GAIN;
        let is_evident = is_great || evidence.count >= 2 && is_clear;
        if is_evident && mean > 0 && keeps {
            self.adopt(is_up);
            return true;
        }
        if evidence.put_off(mean, is_clear, error) {
            self.turn = (self.turn + 1) % TRIALS;
        }
        false
    }

    fn has_several_classes(&self) -> bool {
        self.alone_intervals < ALONE_INTERVALS
    }

    /// Whether the trial sent all of a class to the disk, which knows no shares.
    fn leaves_no_backlog(&self) -> bool {
        (0..2).any(|direction| self.trial.mean_latency(direction).is_some())
    }

    /// Adopts the window on trial.
    fn adopt(&mut self, is_up: bool) {
        if is_up && self.fresh < FRESH.1 {
            self.regret.step(self.window, FRESH.1.max(self.fresh + FRESH.0));
        }
        self.window = (self.window * FACTORS[self.turn] / 1000).clamp(WINDOWS.0, WINDOWS.1);
        self.forget();
        let back = &mut self.evidence[if is_up { DOWN } else { UP }];
        (back.wait, back.next_wait) = (WAIT_BACK, WAIT_BACK);
    }
}

#[cfg(test)]
#[path = "trials_tests.rs"]
mod tests;

/// The runs of a promising trial before it has to wait. A trial is promising if its mean score is positive,
/// but not yet clear. With fewer, a gain that noise hides is not found; with more, an undecided trial takes
/// the time of others.
const PROMISING_COUNT: i64 = 8;
/// The runs of a trial that is not promising before it has to wait. After a single one, noise alone would put
/// it off.
const COUNT: i64 = 2;
/// The runs after which the evidence of a trial is halved, so that it follows the disk. With a smaller
/// number, evidence is forgotten sooner; with a larger one, it follows a change of the disk later.
const COUNT_MAX: i64 = 32;
/// The most intervals that a trial without a result waits. The wait doubles each time; after a clear loss it
/// is four times as long. At this number, trials that harm are less than 1 % of the time, and p99 does not
/// show them. A larger one finds a change of the disk later.
const WAIT_MAX: i64 = 512;
/// A direction may gain this much less than half of its part of the whole gain, in millionths of rate
/// (0.5 %). Noise stays within it, and so does a class that its limit keeps from gaining. With a larger number,
/// one direction gains at the cost of the other.
const LACK_MAX: i64 = 5_000;

/// The evidence on one trial at the present window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Evidence {
    pub(super) count: i64,
    /// The sum of its scores, in millionths of rate.
    pub(super) score: i64,
    /// The sums of the surpluses of reads and of everything else, in millionths of rate: see
    /// [`Measured::surplus_over`].
    pub(super) surplus: [i64; 2],
    /// Intervals until the next run of the trial.
    pub(super) wait: i64,
    /// The latest wait in intervals, which grows with each run without a result.
    pub(super) next_wait: i64,
}

impl Evidence {
    pub(super) const NONE: Self =
        Self { count: 0, score: 0, surplus: [0; 2], wait: 0, next_wait: 1 };

    pub(super) fn each_word(&mut self, show: &mut impl FnMut(&mut i64)) {
        let Self { count, score, surplus, wait, next_wait } = self;
        [count, score, wait, next_wait].into_iter().chain(surplus).for_each(show);
    }

    /// The mean score, in millionths of rate.
    pub(super) fn mean(&self) -> i64 {
        self.score / self.count.max(1)
    }

    /// Whether one direction gains at the cost of the other, which distorts the shares.
    pub(super) fn bends_shares(&self) -> bool {
        self.surplus.iter().any(|&surplus| surplus < -LACK_MAX * self.count)
    }

    /// Decides when a trial that was not clearly better is repeated. Returns whether another trial is next.
    pub(super) fn put_off(&mut self, mean: i64, is_clear: bool, error: i64) -> bool {
        if mean > 0 && !is_clear && self.count < PROMISING_COUNT {
            return false;
        }
        if is_clear || mean > 0 || self.count >= COUNT {
            let times = if is_clear && mean < -2 * error { 4 } else { 2 };
            self.next_wait = (self.next_wait * times).min(WAIT_MAX);
            self.wait = self.next_wait;
        }
        if self.count >= COUNT_MAX {
            self.count /= 2;
            self.score /= 2;
            self.surplus = self.surplus.map(|sum| sum / 2);
        }
        true
    }
}

/// The intervals in which a step to a larger window may be taken back. A trial is too short to show that a
/// class loses its backlog, so a smaller number would miss it. It bounds for how long a change of the load
/// can be taken for an effect of the step.
const INTERVALS: i64 = 32;
/// The intervals after a step was taken back in which no larger window is tried. With fewer, a class loses
/// its backlog more often. With more, a disk that could do more is held at the smaller window for longer.
const REST: i64 = 256;

/// The latest step to a larger window, which may be taken back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Regret {
    /// The window before the step, in thousandths of an effective goal.
    before: i64,
    /// The part of fresh requests above which a class has lost its backlog, in thousandths.
    fresh_max: i64,
    /// The number of intervals in which the step may still be taken back. A negative number counts the
    /// intervals in which no larger window is tried.
    intervals: i64,
}

impl Regret {
    pub(super) const NONE: Self = Self { before: 0, fresh_max: 0, intervals: 0 };

    pub(super) fn each_word(&mut self, show: &mut impl FnMut(&mut i64)) {
        [&mut self.before, &mut self.fresh_max, &mut self.intervals].into_iter().for_each(show);
    }

    /// Notes that a larger window than `before` was adopted, at which all classes were backlogged.
    pub(super) fn step(&mut self, before: i64, fresh_max: i64) {
        *self = Self { before, fresh_max, intervals: INTERVALS };
    }

    /// Counts an interval. `fresh` is the part of fresh requests in thousandths; zero for a class that is
    /// alone. Returns the window before the step if the step is taken back.
    pub(super) fn follow(&mut self, fresh: i64) -> Option<i64> {
        self.intervals -= self.intervals.signum();
        (self.intervals > 0 && fresh > self.fresh_max).then(|| {
            self.intervals = -REST;
            self.before
        })
    }

    /// Whether a larger window may be tried.
    pub(super) const fn allows_growth(&self) -> bool {
        self.intervals >= 0
    }
}
