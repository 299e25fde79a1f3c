//! The search for the window at the knee, beyond which a larger one adds more latency than throughput.
//!
//! Shards report completed requests. The report that ends an interval also evaluates it: see [`trials`].

mod measured;
mod target;
mod trials;

use alloc::vec::Vec;

use crate::sync::{AtomicBool, AtomicU64, Ordering, add, get, set};
use crate::{DiskTime, Op, Time};
use measured::Measured;
use target::Target;
use trials::{Interval, ONE_GOAL, Phase, TRIALS, Trials};

/// The shortest interval of the search, in nanoseconds (5 ms). In a shorter one fewer requests complete, so
/// that noise decides; a longer one makes the search of a fast disk slower.
const INTERVAL_NANOS_MIN: u64 = 5_000_000;
/// The number of requests that complete in an interval before it may end. With fewer, rate and latency are
/// noise; with more, the search of a slow disk is slower.
const COMPLETED_MIN: u64 = 50;
/// The disk time that the disk serves in an interval before it may end, in windows. With less, many of the
/// requests still belong to the window before; with more, the search is slower.
const WINDOWS_MIN: u64 = 3;
/// The longest interval, in nanoseconds (500 ms), however few requests complete. In 200 ms a hard disk
/// completes 60 requests, which are too few to compare windows. A longer interval makes its search slower.
const INTERVAL_NANOS_MAX: u64 = 500_000_000;
/// The longest interval that is evaluated, in nanoseconds (1 s); a longer one contains a pause between
/// reports. It is twice `INTERVAL_NANOS_MAX`, because the report that ends an interval may come late.
const STALE_NANOS: u64 = 1_000_000_000;
/// The least and the most time after a change of the window in which nothing is measured, in nanoseconds. The
/// disk serves one window in it, and completes the fresh requests from before the change. The upper bound is
/// a tenth of the longest interval, so that a slow disk is still measured most of the time.
const SETTLE_NANOS: (u64, u64) = (400_000, 50_000_000);
/// The time in which nothing is measured is at least this multiple of the mean latency of fresh requests. By
/// then nearly all fresh requests from before the change are completed. Earlier they would count for the new
/// window.
const SETTLE_LATENCIES: u64 = 2;
/// A trial ends early if the mean latency of fresh requests exceeds this multiple of the mean before it. With
/// a smaller factor, noise ends trials; with a larger one, a trial that harms users lasts longer.
const CUT_SHORT_TIMES: u64 = 2;
/// The least number of fresh requests of a direction whose mean latency may end a trial early. With fewer, a
/// single slow request ends a trial; with more, a trial that harms lasts longer.
const CUT_SHORT_MIN: u64 = 8;
/// A shard reports once it has completed this many requests. A report writes counters that all shards share,
/// so with a smaller number each request costs more; with a larger one intervals end later.
const REPORT_REQUESTS: u64 = 16;
/// A shard that completes fewer than `REPORT_REQUESTS` reports after this time, in nanoseconds (1 ms). It is
/// a fifth of the shortest interval, so that little of an interval is reported in the next one.
const REPORT_NANOS: u64 = 1_000_000;

/// Several classes are served if more than one part in this many (2 %) of the disk time belongs to requests
/// that follow a request of another class. A class that its limit holds to less does not count.
const OTHER_CLASSES_PART: i64 = 50;

/// The largest number of an interval, in its own unit: nanoseconds, units of disk time or requests. Larger
/// numbers are errors of the clock. This number times 1,000 still fits into a word.
const NUMBER_MAX: i64 = 1 << 50;

/// What a shard has completed since its last report.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WindowSample {
    reported_at: Time,
    completed: u64,
    /// Disk time in units, by direction: reads, and everything else.
    served: [u64; 2],
    fresh: [u64; 2],
    latency_nanos: [u64; 2],
    nearly_idle: u64,
    waited_nanos: u64,
    /// Disk time, in units, of requests that follow a request of another class.
    of_other_classes: u64,
    class: u16,
    /// Requests that the latency target is about, and the number of them that took longer than the target.
    targeted: u64,
    over: u64,
}

/// A completed request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Completed {
    pub(crate) op: Op,
    pub(crate) cost: DiskTime,
    pub(crate) class: u16,
    pub(crate) nearly_idle: bool,
    /// The time from enqueueing to completion in nanoseconds, if it was fresh and successful.
    pub(crate) fresh_nanos: Option<u64>,
}

impl WindowSample {
    /// Counts a completed request. Returns whether a report is due.
    #[inline]
    pub(crate) fn add(&mut self, now: Time, completed: Completed) -> bool {
        let direction = usize::from(completed.op != Op::Read);
        self.completed += 1;
        self.served[direction] = self.served[direction].saturating_add(completed.cost.units());
        self.nearly_idle += u64::from(completed.nearly_idle);
        if let Some(nanos) = completed.fresh_nanos {
            self.fresh[direction] += 1;
            self.latency_nanos[direction] = self.latency_nanos[direction].saturating_add(nanos);
        }
        if self.class != completed.class {
            self.class = completed.class;
            self.of_other_classes = self.of_other_classes.saturating_add(completed.cost.units());
        }
        self.completed >= REPORT_REQUESTS || now.nanos_since(self.reported_at) >= REPORT_NANOS
    }

    /// Counts a request that the latency target is about.
    #[inline]
    pub(crate) fn target(&mut self, is_over: bool) {
        self.targeted += 1;
        self.over += u64::from(is_over);
    }

    /// Counts time, in nanoseconds, for which work waited for the disk or for other shards.
    pub(crate) fn waited(&mut self, nanos: u64) {
        self.waited_nanos = self.waited_nanos.saturating_add(nanos);
    }

    /// The part of the sample that falls into the last `nanos` of the `whole` nanoseconds that it covers.
    fn part(self, nanos: u64, whole: u64) -> Self {
        if nanos >= whole {
            return self;
        }
        let part = |number: u64| {
            let part = u128::from(number) * u128::from(nanos) / u128::from(whole.max(1));
            u64::try_from(part).unwrap_or(u64::MAX)
        };
        Self {
            completed: part(self.completed),
            served: self.served.map(part),
            fresh: self.fresh.map(part),
            latency_nanos: self.latency_nanos.map(part),
            nearly_idle: part(self.nearly_idle),
            waited_nanos: part(self.waited_nanos),
            of_other_classes: part(self.of_other_classes),
            targeted: part(self.targeted),
            over: part(self.over),
            ..self
        }
    }

    fn take(&mut self, now: Time) -> Self {
        let next = Self { reported_at: now, class: self.class, ..Self::default() };
        core::mem::replace(self, next)
    }
}

/// Finds the window of one disk.
#[derive(Debug)]
pub(crate) struct Knee {
    /// The window now, in thousandths of an effective goal.
    window: AtomicU64,
    began_at: AtomicU64,
    /// The mean latencies above which a trial ends early, in nanoseconds by direction; `u64::MAX` while there
    /// is no trial.
    cut_short_at: [AtomicU64; 2],
    /// Whether fresh requests find a larger window than others.
    reserves_for_fresh: AtomicBool,
    /// Whether the present trial has a window that only a class alone may have.
    is_wide: AtomicBool,
    sums: Sums,
    /// How many of 1000 requests may take longer than the latency target; 1000 without a target.
    allowed_permille: AtomicU64,
    has_new_target: AtomicBool,
    /// Whether no smaller window kept the latency target.
    has_given_up: AtomicBool,
    /// A lock of the shard that evaluates an interval. Only its owner uses the state.
    is_judging: AtomicBool,
    state: Vec<AtomicU64>,
}

/// The reports of all shards in the present interval.
#[derive(Debug, Default)]
struct Sums {
    completed: AtomicU64,
    served: [AtomicU64; 2],
    fresh: [AtomicU64; 2],
    latency_nanos: [AtomicU64; 2],
    nearly_idle: AtomicU64,
    waited_nanos: AtomicU64,
    of_other_classes: AtomicU64,
    targeted: AtomicU64,
    over: AtomicU64,
    /// The class of the latest report, from whichever shard.
    class: AtomicU64,
}

impl Knee {
    pub(crate) fn new() -> Self {
        let (mut trials, mut state) = (Trials::new(), Vec::new());
        trials.each_word(&mut |word| state.push(AtomicU64::new(*word as u64)));
        Self {
            window: AtomicU64::new(trials.window().unsigned_abs()),
            began_at: AtomicU64::new(0),
            cut_short_at: core::array::from_fn(|_| AtomicU64::new(u64::MAX)),
            reserves_for_fresh: AtomicBool::new(trials.reserves_for_fresh()),
            is_wide: AtomicBool::new(false),
            sums: Sums::default(),
            allowed_permille: AtomicU64::new(1000),
            has_new_target: AtomicBool::new(false),
            has_given_up: AtomicBool::new(false),
            is_judging: AtomicBool::new(false),
            state,
        }
    }

    /// The window at this effective goal, in units of disk time.
    #[inline]
    pub(crate) fn window(&self, goal: DiskTime) -> u64 {
        let (window, one_goal) = (get(&self.window), ONE_GOAL.unsigned_abs());
        match goal.units().checked_mul(window) {
            Some(product) => product / one_goal,
            None => (goal.units() / one_goal).saturating_mul(window),
        }
    }

    /// Whether fresh requests find a larger window than others.
    #[inline]
    pub(super) fn reserves_for_fresh(&self) -> bool {
        self.reserves_for_fresh.load(Ordering::Relaxed)
    }

    /// Sets a latency target that `allowed_permille` of 1000 requests may miss; 1000 removes it.
    pub(crate) fn set_target(&self, allowed_permille: u64) {
        set(&self.allowed_permille, allowed_permille);
        self.has_new_target.store(true, Ordering::Relaxed);
    }

    /// Whether no smaller window kept the latency target.
    pub(crate) fn has_given_up(&self) -> bool {
        self.has_given_up.load(Ordering::Relaxed)
    }

    /// Takes the report of a shard.
    pub(crate) fn report(&self, now: Time, sample: &mut WindowSample, goal: DiskTime) {
        let began_at = get(&self.began_at);
        let nanos = now.nanos_since(Time::from_nanos(began_at));
        let since = sample.reported_at;
        // completions before the interval began do not belong to its window
        self.sums.add(&sample.take(now).part(nanos, now.nanos_since(since)));
        if nanos == 0 {
            return;
        }
        let residence_nanos = self.residence_nanos(nanos, goal);
        let is_cut_short = self.is_cut_short();
        if !is_cut_short && !self.is_over(nanos, residence_nanos) {
            return;
        }
        if self.is_judging.swap(true, Ordering::Acquire) {
            return;
        }
        if get(&self.began_at) == began_at {
            self.end_interval(now, nanos, residence_nanos, is_cut_short);
        }
        self.is_judging.store(false, Ordering::Release);
    }

    /// The time that the disk takes for one window at the rate of this interval, in nanoseconds.
    fn residence_nanos(&self, nanos: u64, goal: DiskTime) -> u64 {
        let served = u128::from(self.served().max(1));
        let residence = u128::from(self.window(goal)) * u128::from(nanos) / served;
        u64::try_from(residence).unwrap_or(u64::MAX)
    }

    fn served(&self) -> u64 {
        get(&self.sums.served[0]).saturating_add(get(&self.sums.served[1]))
    }

    fn is_over(&self, nanos: u64, residence_nanos: u64) -> bool {
        let enough = get(&self.sums.completed) >= COMPLETED_MIN
            && nanos >= residence_nanos.saturating_mul(WINDOWS_MIN);
        nanos >= INTERVAL_NANOS_MAX || nanos >= INTERVAL_NANOS_MIN && enough
    }

    fn is_cut_short(&self) -> bool {
        let is_shared = self.is_wide.load(Ordering::Relaxed)
            && get(&self.sums.of_other_classes) > self.served() / OTHER_CLASSES_PART.unsigned_abs();
        is_shared
            || (0..2).any(|direction| {
                let fresh = get(&self.sums.fresh[direction]);
                fresh >= CUT_SHORT_MIN
                    && get(&self.sums.latency_nanos[direction]) / fresh
                        > get(&self.cut_short_at[direction])
            })
    }

    fn end_interval(&self, now: Time, nanos: u64, residence_nanos: u64, is_cut_short: bool) {
        let mut trials = self.trials();
        let interval = self.sums.take(nanos, is_cut_short, get(&self.allowed_permille));
        if self.has_new_target.swap(false, Ordering::Relaxed) {
            trials.target = Target::NONE;
        }
        if nanos > STALE_NANOS {
            trials.begin_again();
        } else {
            trials.step(&interval);
        }
        for (direction, at) in self.cut_short_at.iter().enumerate() {
            let usual = trials.usual_latency(direction).map(i64::unsigned_abs);
            set(at, usual.map_or(u64::MAX, |usual| usual.saturating_mul(CUT_SHORT_TIMES)));
        }
        self.has_given_up.store(trials.target.has_given_up(), Ordering::Relaxed);
        self.reserves_for_fresh.store(trials.reserves_for_fresh(), Ordering::Relaxed);
        self.is_wide.store(trials.is_wide_trial(), Ordering::Relaxed);
        let window = trials.window().unsigned_abs();
        let settles = get(&self.window) != window;
        set(&self.window, window);
        let latency = |direction| interval.measured.mean_latency(direction).unwrap_or(0);
        let latency_nanos = latency(0).max(latency(1)).unsigned_abs();
        let settle_nanos = residence_nanos.max(latency_nanos.saturating_mul(SETTLE_LATENCIES));
        let settle_nanos =
            if settles { settle_nanos.clamp(SETTLE_NANOS.0, SETTLE_NANOS.1) } else { 0 };
        set(&self.began_at, now.plus_nanos(settle_nanos).as_nanos());
        self.keep(trials);
    }

    fn trials(&self) -> Trials {
        let (mut trials, mut state) = (Trials::new(), self.state.iter());
        trials.each_word(&mut |word| *word = state.next().map_or(0, get) as i64);
        trials
    }

    fn keep(&self, mut trials: Trials) {
        let mut state = self.state.iter();
        trials.each_word(&mut |word| state.next().into_iter().for_each(|at| set(at, *word as u64)));
    }
}

impl Sums {
    fn add(&self, sample: &WindowSample) {
        add(&self.completed, sample.completed);
        for direction in 0..2 {
            add(&self.served[direction], sample.served[direction]);
            add(&self.fresh[direction], sample.fresh[direction]);
            add(&self.latency_nanos[direction], sample.latency_nanos[direction]);
        }
        add(&self.nearly_idle, sample.nearly_idle);
        add(&self.waited_nanos, sample.waited_nanos);
        add(&self.targeted, sample.targeted);
        add(&self.over, sample.over);
        let class = u64::from(sample.class);
        if get(&self.class) != class {
            set(&self.class, class);
            add(&self.of_other_classes, sample.served[0].saturating_add(sample.served[1]));
        } else {
            add(&self.of_other_classes, sample.of_other_classes);
        }
    }

    fn take(&self, nanos: u64, is_cut_short: bool, allowed_permille: u64) -> Interval {
        let take = |sum: &AtomicU64| {
            i64::try_from(sum.swap(0, Ordering::Relaxed)).unwrap_or(i64::MAX).min(NUMBER_MAX)
        };
        let take_both = |sums: &[AtomicU64; 2]| [take(&sums[0]), take(&sums[1])];
        let measured = Measured {
            nanos: i64::try_from(nanos).unwrap_or(i64::MAX).min(NUMBER_MAX),
            served: take_both(&self.served),
            fresh: take_both(&self.fresh),
            latency_nanos: take_both(&self.latency_nanos),
        };
        let served = measured.served[0].saturating_add(measured.served[1]);
        Interval {
            measured,
            completed: take(&self.completed),
            nearly_idle: take(&self.nearly_idle),
            waited_nanos: take(&self.waited_nanos),
            has_several_classes: take(&self.of_other_classes) > served / OTHER_CLASSES_PART,
            is_cut_short,
            targeted: take(&self.targeted),
            over: take(&self.over),
            allowed_permille: i64::try_from(allowed_permille).unwrap_or(1000).min(1000),
        }
    }
}

/// The state of the trials as words, which shards share in atomics.
impl Trials {
    /// Passes all words of the state to `show`, always in the same order, to read or set them.
    fn each_word(&mut self, show: &mut impl FnMut(&mut i64)) {
        let (mut phase, mut turn) = (self.phase as i64, self.turn as i64);
        show(&mut phase);
        show(&mut turn);
        self.phase = match phase {
            0 => Phase::Before,
            1 => Phase::Trial,
            _ => Phase::After,
        };
        self.turn = usize::try_from(turn).unwrap_or(0) % TRIALS;
        let of_trial = [&mut self.is_cut_short, &mut self.was_fresh];
        for flag in of_trial.into_iter().chain([&mut self.is_busy, &mut self.is_backlogged]) {
            let mut word = i64::from(*flag);
            show(&mut word);
            *flag = word != 0;
        }
        let numbers = [
            &mut self.window,
            &mut self.waiting,
            &mut self.nearly_idle,
            &mut self.fresh,
            &mut self.noise,
            &mut self.best,
            &mut self.usual_rate,
            &mut self.usual_latency,
            &mut self.changed_intervals,
            &mut self.alone_intervals,
        ];
        numbers.into_iter().for_each(&mut *show);
        self.evidence.iter_mut().for_each(|evidence| evidence.each_word(show));
        for measured in [&mut self.before, &mut self.last, &mut self.trial] {
            measured.each_word(show);
        }
        self.regret.each_word(show);
        self.target.each_word(show);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn completions_before_an_interval_do_not_count() {
        let knee = Knee::new();
        set(&knee.began_at, 10_000_000);
        let mut sample = WindowSample::default();
        let mut report = |from_micros: u64, to_micros: u64| {
            let at = |micros: u64| Time::from_nanos(micros * 1000);
            sample.take(at(from_micros));
            for _ in 0..10 {
                let (op, cost) = (Op::Read, DiskTime::from_units(64));
                let completed =
                    Completed { op, cost, class: 0, nearly_idle: false, fresh_nanos: Some(100) };
                sample.add(at(to_micros), completed);
            }
            knee.report(at(to_micros), &mut sample, DiskTime::from_nanos(1_000_000));
            let sums = &knee.sums;
            (get(&sums.completed), get(&sums.served[0]), get(&sums.fresh[0]))
        };
        assert_eq!(report(8_000, 9_000), (0, 0, 0));
        assert_eq!(report(9_500, 10_500), (5, 320, 5));
        assert_eq!(report(10_500, 11_000), (15, 960, 15));
    }

    #[test]
    fn shards_with_a_class_each_have_several_classes_together() {
        let report = |sums: &Sums, class: u16| {
            let mut sample = WindowSample { class, ..WindowSample::default() };
            let (op, cost) = (Op::Read, DiskTime::from_units(1));
            let completed = Completed { op, cost, class, nearly_idle: false, fresh_nanos: None };
            sample.add(Time::from_nanos(1), completed);
            sums.add(&sample.take(Time::from_nanos(1)));
        };
        for (classes, several) in [([3, 3], false), ([3, 4], true)] {
            let sums = Sums::default();
            report(&sums, 3);
            sums.take(1, false, 1000);
            classes.iter().for_each(|&class| report(&sums, class));
            assert_eq!(sums.take(1, false, 1000).has_several_classes, several);
        }
        // one request in 100 of another class
        let sums = Sums::default();
        report(&sums, 3);
        sums.take(1, false, 1000);
        (0..99).for_each(|_| report(&sums, 3));
        report(&sums, 4);
        assert!(!sums.take(1, false, 1000).has_several_classes);
    }
}
