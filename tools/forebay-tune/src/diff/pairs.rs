//! The same phases of two runs, side by side.

use forebay_core::SATURATION_LENGTH_DEFAULT;

use crate::fit::{DISCARDS_MIN, knee, saturation};
use crate::phase::{FileState, Pattern, Purpose, Work};
use crate::run::{MeasuredPhase, Run};
use crate::statistics::{deviation, mean};

/// Neighbouring intervals are alike, so means of this many batches are compared.
const BATCHES: usize = 20;
/// Where moments when a disk stands still are left out, this many batches at either end are,
const TRIMMED: usize = 4;
/// which a phase of fewer requests is too coarse for: one more or less in a batch would count.
const REQUESTS_MIN: u64 = 20 * BATCHES as u64;

/// A moment in which a disk stands still takes such a part of the two thirds of a second of
/// discards.
const STANDS_STILL: f64 = 0.1;

/// Phases of the one run that follow each other, and the same of the other: a moment of each.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Pair {
    /// The logarithm of the rate, requests per second or in sequence bytes: the mean of the phases.
    pub(super) old: f64,
    /// The same in the newer run.
    pub(super) new: f64,
    /// The variance of their difference, as far as it is seen within the phases.
    pub(super) variance: f64,
    /// How many phases these are.
    pub(super) phases: usize,
}

impl Pair {
    /// The logarithm of the ratio.
    pub(super) fn change(&self) -> f64 {
        self.new - self.old
    }

    fn of(old: &MeasuredPhase, new: &MeasuredPhase, speed: Speed) -> Option<Self> {
        let (old_rate, old_variance) = speed.of(old)?;
        let (new_rate, new_variance) = speed.of(new)?;
        let variance = old_variance + new_variance;
        Some(Self { old: old_rate.ln(), new: new_rate.ln(), variance, phases: 1 })
    }

    /// Both as one: what disturbs a phase disturbs the next one too, so they say no more together
    /// about the time between.
    fn with(&self, next: &Self) -> Self {
        let [one, other] = [self.phases, next.phases].map(|phases| phases as f64);
        let mean = |here: f64, there: f64| (here * one + there * other) / (one + other);
        let variance = (self.variance * one * one + next.variance * other * other)
            / ((one + other) * (one + other));
        Self {
            old: mean(self.old, next.old),
            new: mean(self.new, next.new),
            variance,
            phases: self.phases + next.phases,
        }
    }
}

/// What the rate of a phase is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Speed {
    /// All that was done in all of its time.
    Mean,
    /// The same without a fifth of its time at either end, the slowest and the fastest: of a short
    /// phase, a moment in which the disk stood still is a tenth, and chance.
    Usual,
}

impl Speed {
    /// The rate of a phase, and the variance of its logarithm; none where too little was counted.
    fn of(self, measured: &MeasuredPhase) -> Option<(f64, f64)> {
        let MeasuredPhase { phase, samples, .. } = measured;
        let unit = match phase.pattern {
            Pattern::Sequential => f64::from(phase.request_bytes),
            Pattern::Random | Pattern::Cached => 1.0,
        };
        let rates = samples.rates();
        // a count may be off by the one at its ends
        let counting = (samples.requests.max(1) as f64).recip().powi(2);
        if phase.work == Work::Discard {
            // too few for batches to say anything but how many happen to end in each
            let rate = mean(&rates);
            let variance = counting + STANDS_STILL.powi(2);
            return (samples.requests >= DISCARDS_MIN && rate > 0.0).then_some((rate, variance));
        }
        let per_batch = (rates.len() / BATCHES).max(1);
        let mut batches: Vec<f64> = rates.chunks_exact(per_batch).take(BATCHES).map(mean).collect();
        batches.sort_by(f64::total_cmp);
        let is_trimmed = self == Self::Usual && samples.requests >= REQUESTS_MIN;
        let trimmed = if is_trimmed { batches.len() * TRIMMED / BATCHES } else { 0 };
        let kept = batches.get(trimmed..batches.len() - trimmed)?;
        let (rate, count) = (mean(kept), batches.len() as f64);
        // the variance of a trimmed mean (Tukey and McLaughlin 1963): what is left out counts as
        // what is next to it
        let (least, most) = (*kept.first()?, *kept.last()?);
        let spread: Vec<f64> = batches.iter().map(|batch| batch.clamp(least, most)).collect();
        let part = kept.len() as f64 / count;
        let variance = (deviation(&spread) / rate / part).powi(2) / count;
        (rate > 0.0).then(|| (rate * unit, variance.max(counting)))
    }
}

/// Which phases a figure is compared by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compared {
    /// All that keep the disk busy with the load of the figure.
    Whole(Work, Pattern),
    /// One small request at a time, or one discard alongside reads.
    Alone(Work),
    /// Requests of one size, in the ladder of sizes or of streams.
    Size(Purpose, Work, u32),
}

/// The phases that say how a figure has changed, in the order in which they ran.
pub(super) fn pairs(
    old: &Run,
    new: &Run,
    compared: Compared,
    speed: Speed,
) -> Vec<(Purpose, Pair)> {
    let phases_of = |run: &'_ Run| {
        let counts = |measured: &&MeasuredPhase| {
            [old, new].iter().all(|of| compared.is_measured_by(measured, of))
        };
        run.phases.iter().filter(counts).cloned().collect::<Vec<_>>()
    };
    let mut left = phases_of(new);
    let pair = |before: MeasuredPhase| {
        let place = left.iter().position(|after| is_same(&before, after))?;
        Some((before.purpose, Pair::of(&before, &left.remove(place), speed)?))
    };
    phases_of(old).into_iter().filter_map(pair).collect()
}

/// The same by moments: the phases of one ladder are one, rounds are one each.
pub(super) fn moments(pairs: &[(Purpose, Pair)]) -> Vec<Pair> {
    let mut moments: Vec<(Purpose, Pair)> = Vec::new();
    for &(purpose, pair) in pairs {
        match moments.last_mut() {
            Some((before, moment)) if *before == purpose && purpose != Purpose::Steady => {
                *moment = moment.with(&pair);
            }
            _ => moments.push((purpose, pair)),
        }
    }
    moments.into_iter().map(|(_, moment)| moment).collect()
}

impl Compared {
    /// Whether a phase says something of the figure, alongside what `run` says of the disk.
    fn is_measured_by(self, measured: &MeasuredPhase, run: &Run) -> bool {
        let MeasuredPhase { purpose, phase, .. } = measured;
        // what is discarded is in a file of its own
        if phase.file != FileState::Written && phase.work != Work::Discard {
            return false;
        }
        match self {
            Self::Whole(work, pattern) => {
                (phase.work, phase.pattern) == (work, pattern)
                    && keeps_busy(measured, work, pattern, run)
            }
            Self::Alone(Work::Flush) => *purpose == Purpose::Flush,
            Self::Alone(Work::Discard) => {
                *purpose == Purpose::Interference && phase.work == Work::Discard
            }
            Self::Alone(work) => {
                *purpose == Purpose::Concurrency && phase.work == work && phase.depth == 1
            }
            Self::Size(of, work, bytes) => {
                *purpose == of && phase.work == work && phase.request_bytes == bytes
            }
        }
    }
}

/// Whether a phase has requests enough in flight, and of a size, to reach the rate of the figure.
fn keeps_busy(measured: &MeasuredPhase, work: Work, pattern: Pattern, run: &Run) -> bool {
    let MeasuredPhase { purpose, phase, .. } = measured;
    let small = run.of(Purpose::Steady, work).find(|round| round.phase.pattern == Pattern::Random);
    let is_small = small.is_some_and(|round| round.phase.request_bytes == phase.request_bytes);
    match purpose {
        Purpose::First | Purpose::Steady => pattern == Pattern::Sequential || is_small,
        Purpose::Concurrency => is_small && phase.depth >= knee(run, work).depth_full,
        Purpose::Sizes | Purpose::Interference => is_small,
        Purpose::Stream => {
            let from = saturation(run, work).bytes.unwrap_or(SATURATION_LENGTH_DEFAULT);
            u64::from(phase.request_bytes) >= from
        }
        _ => false,
    }
}

/// Whether two phases are the same part of a measurement.
fn is_same(one: &MeasuredPhase, other: &MeasuredPhase) -> bool {
    let ladder = match one.purpose {
        Purpose::Concurrency => one.phase.depth == other.phase.depth,
        Purpose::Sizes | Purpose::Stream | Purpose::Interference => {
            one.phase.request_bytes == other.phase.request_bytes
        }
        _ => true,
    };
    one.purpose == other.purpose && ladder
}
