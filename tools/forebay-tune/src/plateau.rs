//! The last rounds of a figure that are alike: their rate, and how far it can be trusted.

use crate::phase::{Pattern, Purpose, Work};
use crate::run::{MeasuredPhase, Run};
use crate::samples::Rate;
use crate::stalls::Stalls;
use crate::statistics::{Spread, mean, slope};

/// This many rounds at one level make a rate.
pub(crate) const LEVEL_ROUNDS: usize = 5;
/// Two levels are further apart than this part of the lower one.
const STEP_MIN: f64 = 0.05;
/// And than this many standard errors.
const STEP_ERRORS: f64 = 3.0;
/// A level that rises or falls by more than this part, and by this many standard errors, is none
/// yet.
const DRIFT_MAX: f64 = 0.025;
const DRIFT_ERRORS: f64 = 5.0;
const TWO_DEVIATIONS: f64 = 2.0;
/// A rate that is known no better is still one.
const STALLS_MOST: f64 = 0.9;
/// The four figures.
const FIGURES: [(Work, Pattern); 4] = [
    (Work::Read, Pattern::Random),
    (Work::Write, Pattern::Random),
    (Work::Read, Pattern::Sequential),
    (Work::Write, Pattern::Sequential),
];

/// The last rounds that are alike.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Level {
    /// How many.
    pub(crate) rounds: usize,
    /// Requests per second.
    pub(crate) rate: f64,
    /// Half of its 95 % confidence interval, by how these rounds differ.
    pub(crate) margin: f64,
    /// How they differ.
    spread: Spread,
    /// The margin by how often the disk stood still, as a part of the rate.
    stalled: f64,
    /// Whether they rise or fall.
    pub(crate) drifts: bool,
}

/// The rounds of one figure.
pub(crate) fn rounds(run: &Run, work: Work, pattern: Pattern) -> Vec<&MeasuredPhase> {
    let rounds = run.of(Purpose::Steady, work);
    rounds.filter(|round| round.phase.pattern == pattern && round.samples.requests > 0).collect()
}

/// One figure at the beginning.
pub(crate) fn first(run: &Run, work: Work, pattern: Pattern) -> Option<&MeasuredPhase> {
    run.of(Purpose::First, work).find(|first| first.phase.pattern == pattern)
}

/// The last rounds of one figure that are alike.
pub(crate) fn level(run: &Run, work: Work, pattern: Pattern) -> Level {
    let rounds = rounds(run, work, pattern);
    let rates: Vec<Rate> = rounds.iter().map(|round| round.samples.rate_in_all()).collect();
    let means: Vec<f64> = rates.iter().map(|rate| rate.mean).collect();
    let from = last_step(&rates);
    let alike = means.get(from..).unwrap_or_default();
    let rounds = rounds.get(from..).unwrap_or_default();
    // a round in which the disk stood still took longer, and counts for as long
    let lengths: Vec<f64> = rounds.iter().map(|round| round.samples.span_seconds()).collect();
    let usual = mean(&lengths).max(f64::MIN_POSITIVE);
    let done = alike.iter().zip(&lengths).map(|(one, length)| one * length);
    let rate = mean(&done.collect::<Vec<_>>()) / usual;
    let off = alike.iter().zip(&lengths).map(|(one, length)| rate + (one - rate) * length / usual);
    let spread = Spread::of_rounds(&off.collect::<Vec<_>>());
    let both = FIGURES.into_iter().filter(|&(other, _)| other == work);
    let both: Vec<&MeasuredPhase> =
        both.flat_map(|(work, pattern)| self::rounds(run, work, pattern)).collect();
    let stalled = by_stalls(rounds, &both);
    let margin = match (alike, rates.last()) {
        ([_], Some(only)) => only.margin,
        _ => spread.margin(alike.len()).max(stalled) * rate,
    };
    Level { rounds: alike.len(), rate, margin, spread, stalled, drifts: drifts(alike) }
}

/// Half of the 95 % confidence interval of a rate in whose rounds the disk stood still, as a part
/// of it: by how few stalls there were in `all` rounds of its direction, and by how unlike those its
/// own are, for stalls at regular times may all be in the rounds of the other pattern.
fn by_stalls(own: &[&MeasuredPhase], all: &[&MeasuredPhase]) -> f64 {
    let [(own, _), (part, count)] = [own, all].map(stalled_part);
    let by_chance = TWO_DEVIATIONS * part / f64::from(count.max(1)).sqrt();
    (by_chance + (own - part).abs()).min(STALLS_MOST)
}

/// For which part of the time between them a disk stood still in these rounds, and how often.
fn stalled_part(rounds: &[&MeasuredPhase]) -> (f64, u32) {
    let stalls = rounds.iter().map(|round| round.samples.stalls);
    let Stalls { count, seconds, .. } = stalls.fold(Stalls::default(), Stalls::and);
    let all: f64 = rounds.iter().map(|round| round.samples.span_seconds()).sum();
    (seconds / (all - seconds).max(f64::MIN_POSITIVE), count)
}

/// Half of the 95 % confidence interval of a figure, in requests per second. Few rounds may have
/// missed what makes a disk uneven; so how much the other figures differ counts too, as Smyth
/// (2004) does with what is seen of few.
pub(crate) fn margin(run: &Run, work: Work, pattern: Pattern) -> f64 {
    let own = level(run, work, pattern);
    if own.rounds < 2 {
        return own.margin;
    }
    let others = FIGURES.into_iter().filter(|&figure| figure != (work, pattern));
    let others = others.map(|(work, pattern)| level(run, work, pattern));
    // stalls count where they were
    let others: Vec<Spread> =
        others.filter(|other| other.stalled <= 0.0).map(|other| other.spread).collect();
    own.spread.moderated(&others).margin(own.rounds).max(own.stalled) * own.rate
}

/// Whether the rates rise or fall, by more than chance and more than matters.
fn drifts(rates: &[f64]) -> bool {
    if rates.len() < 3 {
        return false;
    }
    let (slope, middle, count) = (slope(rates), mean(rates), rates.len() as f64);
    let off =
        |(place, rate): (usize, &f64)| rate - middle - slope * (place as f64 - (count - 1.0) / 2.0);
    let rest: f64 = rates.iter().enumerate().map(|at| off(at).powi(2)).sum();
    let error = (rest / (count - 2.0).max(1.0) * 12.0 / (count.powi(3) - count).max(1.0)).sqrt();
    slope.abs() * (count - 1.0) > DRIFT_MAX * middle && slope.abs() > DRIFT_ERRORS * error
}

/// From where on there is one level: the rates are cut in two where that explains most, as long as
/// the parts are further apart than chance.
pub(crate) fn last_step(rates: &[Rate]) -> usize {
    let mut start = 0;
    while let Some(rest) = rates.get(start..)
        && let Some(step) = (1..rest.len())
            .max_by(|&one, &other| explained(rest, one).total_cmp(&explained(rest, other)))
        && is_step(rest, step)
    {
        start += step;
    }
    start
}

/// The means of what is before `at`, and of what is behind.
fn halves(rates: &[Rate], at: usize) -> [f64; 2] {
    let (before, behind) = rates.split_at(at);
    [before, behind].map(|part| mean(&part.iter().map(|rate| rate.mean).collect::<Vec<_>>()))
}

/// The sum of squares that a step at `at` explains.
fn explained(rates: &[Rate], at: usize) -> f64 {
    let [before, behind] = halves(rates, at);
    (before - behind).powi(2) * (at * (rates.len() - at)) as f64
}

fn is_step(rates: &[Rate], at: usize) -> bool {
    let [old, new] = halves(rates, at);
    let off =
        |(place, rate): (usize, &Rate)| (rate.mean - if place < at { old } else { new }).powi(2);
    let between: f64 = rates.iter().enumerate().map(off).sum();
    let between = between / rates.len().saturating_sub(2).max(1) as f64;
    // Where few rounds agree by chance, how uneven each of them is says more.
    let within: f64 = rates.iter().map(|rate| (rate.margin / 2.0).powi(2)).sum();
    let variance = between.max(within / rates.len() as f64);
    let error = (variance * (1.0 / at as f64 + 1.0 / (rates.len() - at) as f64)).sqrt();
    (old - new).abs() > STEP_MIN * old.min(new) + STEP_ERRORS * error
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(means: &[f64], margin: f64) -> usize {
        let rates: Vec<Rate> = means.iter().map(|&mean| Rate { mean, margin }).collect();
        last_step(&rates)
    }

    #[test]
    fn the_last_level_begins_behind_the_last_step() {
        assert_eq!(step(&[100.0; 8], 0.0), 0);
        assert_eq!(step(&[300.0, 300.0, 180.0, 100.0, 101.0, 99.0, 100.0], 1.0), 3);
        assert_eq!(step(&[100.0, 100.0, 60.0, 100.0, 101.0, 99.0, 100.0], 1.0), 0, "a pause");
        assert_eq!(step(&[100.0, 101.0, 100.0, 80.0], 1.0), 3);
        assert_eq!(step(&[100.0, 101.0, 80.0, 81.0], 40.0), 0, "as uneven inside");
        assert_eq!((step(&[], 0.0), step(&[1.0], 0.0)), (0, 0));
    }

    #[test]
    fn a_line_that_falls_is_no_level() {
        assert!(drifts(&[100.0, 99.0, 98.1, 97.0, 96.0]));
        assert!(!drifts(&[100.0, 99.7, 99.6, 99.2, 99.0]), "too little to matter");
        assert!(!drifts(&[100.0, 94.0, 103.0, 97.0, 95.0]), "chance");
        assert!(!drifts(&[]) && !drifts(&[1.0, 2.0]));
    }
}
