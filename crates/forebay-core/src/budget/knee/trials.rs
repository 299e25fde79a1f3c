//! Trials of other windows, and what follows from them.
//!
//! An interval with another window is compared with those before and after it. The other window
//! is taken where 1 % more rate costs less than 4.5 % more latency of fresh requests, the latency
//! from their enqueueing to their completion. No threshold is in milliseconds.

use super::evidence::Evidence;
use super::measured::{MILLION, Measured, ln_ratio};

/// Windows are counted in thousandths of an effective goal.
pub(super) const ONE_GOAL: i64 = 1000;
/// The first window. On disks that serve one request after the other it is the best one.
const BEGIN: i64 = ONE_GOAL;
/// The window while the disk has idle moments: a scheduler that is not needed is not felt.
const FREE: i64 = 8 * ONE_GOAL;
/// No window is smaller or larger than this.
const WINDOWS: (i64, i64) = (ONE_GOAL / 4, 256 * ONE_GOAL);
/// Where everybody waits all the time nobody's latency depends on the window: it is larger by
/// this factor, in thousandths, so that several shards have room at once.
const BACKLOGGED: i64 = 2500;

/// The trials, in turn: factors on the window, in thousandths.
const FACTORS: [i64; TRIALS] = [2000, 714, 1400, 8000];
pub(super) const TRIALS: usize = 4;
/// The only one that makes the window smaller.
const DOWN: usize = 1;
/// The usual one that makes it larger.
const UP: usize = 2;
/// Members of an array are busy at windows far above the present one. Tried only where a single
/// class is served and waits all the time, so that it harms nobody.
const WIDE: usize = 3;

/// What 1 of latency costs, in thousandths of rate: 1 % of rate is worth 4.5 % of latency.
const LATENCY_WEIGHT: i64 = 220;
/// A larger window must be better by this, in millionths of rate.
const UP_MARGIN: i64 = 20_000;
/// A smaller one may be worse by this.
const DOWN_MARGIN: i64 = 10_000;
/// What is believed is this many standard errors from zero, in thousandths.
const ERRORS: i64 = 1500;
/// By how much two measurements differ before any have been compared, and at the least.
const NOISE_BEGIN: i64 = 150_000;
const NOISE_MIN: i64 = 10_000;
/// The noise follows by this part with each trial.
const NOISE_PART: i64 = 16;
/// A smaller window must keep this many hundredths of the most that was delivered lately, where
/// latencies are known and where they are not: or many small losses would add up.
const KEPT: (i64, i64) = (85, 95);
/// The most that was delivered is forgotten by this part with each interval.
const BEST_PART: i64 = 4096;

/// After a step the way back is not tried for so many intervals.
const WAIT_BACK: i64 = 4;

/// Requests wait, or the disk is idle, as an average over so long.
const AVERAGED_NANOS: i64 = 100_000_000;
/// Work that waits for this part of the time is held up by the disk, in thousandths: to begin
/// with, and to go on.
const WAITING: (i64, i64) = (600, 500);
/// A disk that fewer requests than this find nearly idle is busy, in thousandths.
const NEARLY_IDLE: (i64, i64) = (50, 100);
/// Where fewer requests than this are fresh everybody waits all the time, in thousandths.
const FRESH: (i64, i64) = (50, 150);
/// A rate, and a latency, that differ by this from what is usual are of another disk or load.
const OTHER: (i64, i64) = (250_000, 500_000);
/// It is another after so many intervals.
const OTHER_INTERVALS: i64 = 3;

/// What an interval has shown beside what is compared.
#[derive(Clone, Copy, Debug)]
pub(super) struct Interval {
    pub(super) measured: Measured,
    pub(super) completed: i64,
    /// Requests that found the disk nearly idle.
    pub(super) nearly_idle: i64,
    /// For how long work waited, in nanoseconds over all shards.
    pub(super) waited_nanos: i64,
    pub(super) has_several_classes: bool,
    /// It ended early, since latency doubled.
    pub(super) is_cut_short: bool,
}

/// What the present interval is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Before,
    Trial,
    After,
}

/// Finds the window; knows neither time nor threads.
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
    pub(super) is_busy: bool,
    pub(super) is_backlogged: bool,
    pub(super) has_several_classes: bool,
    /// Averages in thousandths: of the time that work waits, and of requests.
    pub(super) waiting: i64,
    pub(super) nearly_idle: i64,
    pub(super) fresh: i64,
    /// Square of what two measurements at the same window differ by.
    pub(super) noise: i64,
    pub(super) best: i64,
    pub(super) usual_rate: i64,
    pub(super) usual_latency: i64,
    pub(super) other_intervals: i64,
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
            is_busy: false,
            is_backlogged: false,
            has_several_classes: false,
            waiting: 0,
            nearly_idle: 1000,
            fresh: 1000,
            noise: NOISE_BEGIN * NOISE_BEGIN,
            best: 0,
            usual_rate: 0,
            usual_latency: 0,
            other_intervals: 0,
        }
    }

    /// The window for the next interval, in thousandths of an effective goal.
    pub(super) fn window(&self) -> i64 {
        let trial = if self.phase == Phase::Trial { FACTORS[self.turn] } else { 1000 };
        let backlogged = if self.is_backlogged { BACKLOGGED } else { 1000 };
        let window = self.window * trial / 1000 * backlogged / 1000;
        if self.is_busy { window.max(1) } else { window.max(FREE) }
    }

    /// The latency of fresh requests before the trial that runs, in nanoseconds by direction:
    /// where it doubles the trial may end.
    pub(super) fn usual_latency(&self, direction: usize) -> Option<i64> {
        if self.phase == Phase::Trial { self.before.mean_latency(direction) } else { None }
    }

    /// Nothing can be compared with what comes next.
    pub(super) fn begin_again(&mut self) {
        self.phase = Phase::Before;
        self.before = Measured::NOTHING;
        self.last = Measured::NOTHING;
    }

    fn forget(&mut self) {
        self.evidence = [Evidence::NONE; TRIALS];
        self.begin_again();
    }

    /// An interval has ended.
    pub(super) fn step(&mut self, interval: &Interval) {
        let measured = &interval.measured;
        self.has_several_classes = interval.has_several_classes;
        if self.has_changed_regime(interval) {
            return self.forget();
        }
        if !self.is_busy {
            return;
        }
        if self.phase == Phase::Trial {
            self.trial = *measured;
            self.is_cut_short = interval.is_cut_short;
            self.phase = Phase::After;
            return;
        }
        if self.is_other(measured) {
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

    /// Whether work waits for the disk now and did not, or the other way round; or whether
    /// everybody waits all the time.
    fn has_changed_regime(&mut self, interval: &Interval) -> bool {
        let Interval { measured, completed, nearly_idle, waited_nanos, .. } = *interval;
        let nanos = measured.nanos.clamp(1, AVERAGED_NANOS);
        let follow = |average: i64, now: i64| average + (now - average) * nanos / AVERAGED_NANOS;
        let permille = |part: i64, whole: i64| (part * 1000 / whole.max(1)).clamp(0, 1000);
        // several shards wait at once
        self.waiting = follow(self.waiting, permille(waited_nanos, measured.nanos));
        self.nearly_idle = follow(self.nearly_idle, permille(nearly_idle, completed));
        let fresh = permille(measured.fresh[0] + measured.fresh[1], completed);
        self.fresh += (fresh - self.fresh) / 4;
        let is_busy = match self.is_busy {
            false => self.waiting > WAITING.0 || self.nearly_idle < NEARLY_IDLE.0,
            true => self.waiting > WAITING.1 || self.nearly_idle < NEARLY_IDLE.1,
        };
        let bound = if self.is_backlogged { FRESH.1 } else { FRESH.0 };
        let is_backlogged = is_busy && self.fresh < bound;
        let before = (self.is_busy, self.is_backlogged);
        (self.is_busy, self.is_backlogged) = (is_busy, is_backlogged);
        before != (is_busy, is_backlogged)
    }

    /// Whether the disk, or the load, is another than that of the evidence.
    fn is_other(&mut self, measured: &Measured) -> bool {
        let (rate, latency) = (measured.rate(), measured.mean_latency(0).unwrap_or(0));
        if self.usual_rate == 0 {
            self.usual_rate = rate;
        }
        if self.usual_latency == 0 {
            self.usual_latency = latency;
        }
        let differs = ln_ratio(rate, self.usual_rate).abs() > OTHER.0
            || latency > 0 && ln_ratio(latency, self.usual_latency).abs() > OTHER.1;
        self.other_intervals = if differs { self.other_intervals + 1 } else { 0 };
        if self.other_intervals >= OTHER_INTERVALS {
            self.other_intervals = 0;
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
        let harms_nobody = self.is_backlogged && !self.has_several_classes;
        let is_ready =
            |trial: usize| self.evidence[trial].wait == 0 && (trial != WIDE || harms_nobody);
        let mut turns = (0..TRIALS).map(|turn| (self.turn + turn) % TRIALS);
        if let Some(ready) = turns.find(|&turn| is_ready(turn)) {
            self.turn = ready;
            self.phase = Phase::Trial;
        }
    }

    /// The interval after a trial has ended. Whether the window on trial is taken.
    fn judge(&mut self, after: &Measured) -> bool {
        let score =
            |gain: i64, latency: Option<i64>| gain - latency.unwrap_or(0) * LATENCY_WEIGHT / 1000;
        let same = score(after.gain_over(&self.last), after.latency_over(&self.last));
        let same = same.clamp(-MILLION / 2, MILLION / 2);
        self.noise += (same * same - self.noise) / NOISE_PART;

        let usual = self.before.plus(after);
        let latency = self.trial.latency_over(&usual);
        let gains = match latency {
            None if self.has_several_classes => self.trial.gains_over(&usual),
            _ => [self.trial.gain_over(&usual); 2],
        };
        let is_up = self.turn != DOWN;
        let margin = if is_up { UP_MARGIN } else { -DOWN_MARGIN };
        let bends = is_up && latency.is_none() && self.has_several_classes && self.frees_a_class();
        let better = gains.map(|gain| match () {
            () if bends => -MILLION,
            () if self.is_cut_short => score(gain.min(0), latency) - margin,
            () => score(gain, latency) - margin,
        });

        let evidence = &mut self.evidence[self.turn];
        evidence.count += 1;
        evidence.rounds += 1;
        evidence.sums = [evidence.sums[0] + better[0], evidence.sums[1] + better[1]];
        let mean = evidence.sums[0].min(evidence.sums[1]) / evidence.count;
        let error = self.noise.max(NOISE_MIN * NOISE_MIN).isqrt() * ERRORS / 1000;
        let is_clear = i128::from(mean) * i128::from(mean) * i128::from(evidence.count)
            > i128::from(error) * i128::from(error);
        let kept = if latency.is_some() { KEPT.0 } else { KEPT.1 };
        let keeps = is_up || self.trial.rate() > self.best / 100 * kept;
        if evidence.count >= 2 && is_clear && mean > 0 && keeps {
            self.take(is_up);
            return true;
        }
        if evidence.put_off(mean, is_clear, error) {
            self.turn = (self.turn + 1) % TRIALS;
        }
        false
    }

    /// Whether the trial let all of a class into the disk, where nobody orders it.
    fn frees_a_class(&self) -> bool {
        (0..2).any(|direction| self.trial.mean_latency(direction).is_some())
    }

    /// The window on trial is the window now.
    fn take(&mut self, is_up: bool) {
        self.window = (self.window * FACTORS[self.turn] / 1000).clamp(WINDOWS.0, WINDOWS.1);
        self.forget();
        let back = &mut self.evidence[if is_up { DOWN } else { UP }];
        (back.wait, back.next_wait) = (WAIT_BACK, WAIT_BACK);
    }
}

#[cfg(test)]
#[path = "trials_tests.rs"]
mod tests;
