//! Which rates last: what a disk does behind its buffers and credits, and whether that was seen.

use serde::Serialize;

use crate::budget::Budget;
use crate::phase::{Pattern, Purpose, Work};
use crate::run::{MeasuredPhase, Run};
use crate::samples::Rate;
use crate::statistics::{confidence_of_rounds, mean, slope};
use crate::steady::KNOWN_AFTER;

/// So many rounds at one level make a rate.
pub(crate) const LEVEL_ROUNDS: usize = 5;
/// No buffer holds more than a third of it: a stream of so many bytes fills one that is emptied at
/// up to two thirds of the rate at which it is filled.
pub(crate) const WATCHED_BYTES: u64 = 48_000_000_000;
/// Two levels are further apart than this part of the lower one.
const STEP_MIN: f64 = 0.05;
/// And than so many standard errors.
const STEP_ERRORS: f64 = 3.0;
/// A level that rises or falls by more than this part, and by so many standard errors, is none yet.
const DRIFT_MAX: f64 = 0.025;
const DRIFT_ERRORS: f64 = 5.0;
/// A buffer makes writes faster by at least this part.
const BUFFER_GAIN: f64 = 0.1;
/// The part of its time that a stream has to be watched.
const WATCHED_PART: f64 = 0.95;
/// Volumes with credits admit as many reads as writes, to so far a part,
const CREDITS_ALIKE: f64 = 0.02;
/// and none on sale more than so many per second.
const CREDITS_IOPS_MAX: f64 = 40_000.0;
/// Credits that are used up take more than this part of the rate.
const CREDITS_FALL: f64 = 0.2;
/// Only a disk with a head takes so long for a small read, in microseconds, and does so few.
const HEAD_US: f64 = 3000.0;
const HEAD_IOPS: f64 = 1000.0;

/// The last rounds that are alike.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Level {
    /// How many.
    pub(crate) rounds: usize,
    /// Requests per second.
    pub(crate) rate: f64,
    /// Half of its 95 % confidence interval, by how the rounds differ.
    pub(crate) margin: f64,
    /// Whether they rise or fall.
    pub(crate) drifts: bool,
}

/// What a disk takes faster than it can for long.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Buffer {
    /// How much it holds beyond what it is emptied of meanwhile, in bytes.
    pub bytes: u64,
    /// Bytes per second until it was full.
    pub before: f64,
    /// Bytes per second since.
    pub behind: f64,
}

/// Whether each of the four figures was seen to last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Lasting {
    /// Small reads.
    pub read_iops: bool,
    /// Small writes.
    pub write_iops: bool,
    /// Bytes read.
    pub read_bandwidth: bool,
    /// Bytes written.
    pub write_bandwidth: bool,
    /// Whether the disk may be a volume that is faster while it has credits.
    pub may_have_credits: bool,
}

impl Lasting {
    /// The names of those that were not.
    pub fn unknown(&self) -> impl Iterator<Item = &'static str> + use<> {
        let figures = [
            ("small reads", self.read_iops),
            ("small writes", self.write_iops),
            ("bytes read", self.read_bandwidth),
            ("bytes written", self.write_bandwidth),
        ];
        figures.into_iter().filter(|(_, seen)| !seen).map(|(name, _)| name)
    }
}

/// Which figures of `run` last, each being known to such a part of it.
pub(crate) fn lasting(run: &Run) -> Lasting {
    let credits = may_have_credits(run);
    let known = |work, pattern| {
        let level = level(run, work, pattern);
        let sure = level.margin <= level.rate * margin_max(run);
        level.rounds >= LEVEL_ROUNDS && sure && !level.drifts && !credits
    };
    let passed = buffer_passed(run);
    Lasting {
        read_iops: known(Work::Read, Pattern::Random),
        read_bandwidth: known(Work::Read, Pattern::Sequential),
        write_iops: passed && known(Work::Write, Pattern::Random),
        write_bandwidth: passed && known(Work::Write, Pattern::Sequential),
        may_have_credits: credits,
    }
}

/// How well a figure has to be known.
fn margin_max(run: &Run) -> f64 {
    Budget::named(&run.budget).map_or(Budget::STANDARD.margin_max, |budget| budget.margin_max)
}

/// The rounds of one figure.
fn rounds(run: &Run, work: Work, pattern: Pattern) -> Vec<&MeasuredPhase> {
    let rounds = run.of(Purpose::Steady, work);
    rounds.filter(|round| round.phase.pattern == pattern && round.samples.requests > 0).collect()
}

/// The last rounds of one figure that are alike.
pub(crate) fn level(run: &Run, work: Work, pattern: Pattern) -> Level {
    let rates: Vec<Rate> =
        rounds(run, work, pattern).iter().map(|round| round.samples.rate()).collect();
    let means: Vec<f64> = rates.iter().map(|rate| rate.mean).collect();
    let alike = means.get(last_step(&rates)..).unwrap_or_default();
    let rate = mean(alike);
    let margin = match (alike, rates.last()) {
        ([_], Some(only)) => only.margin,
        _ => confidence_of_rounds(alike),
    };
    Level { rounds: alike.len(), rate, margin, drifts: drifts(alike) }
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
fn last_step(rates: &[Rate]) -> usize {
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

/// The buffer that streamed writes have filled, if they became slower.
pub(crate) fn buffer(run: &Run) -> Option<Buffer> {
    let rounds = rounds(run, Work::Write, Pattern::Sequential);
    let rates: Vec<Rate> = rounds.iter().map(|round| round.samples.rate()).collect();
    let filling = rounds.get(..last_step(&rates))?;
    let bytes = f64::from(rounds.first()?.phase.request_bytes);
    let before = rates.first()?.mean * bytes;
    let behind = level(run, Work::Write, Pattern::Sequential).rate * bytes;
    let excess = |round: &&MeasuredPhase| {
        round.samples.bytes_written as f64 - behind * round.samples.seconds
    };
    let held: f64 = filling.iter().map(excess).sum();
    (before > behind * (1.0 + BUFFER_GAIN) && held > 0.0).then_some(Buffer {
        bytes: held as u64,
        before,
        behind,
    })
}

/// Whether writes were streamed for so long, or so many, that no buffer holds the rest.
fn buffer_passed(run: &Run) -> bool {
    let stream = rounds(run, Work::Write, Pattern::Sequential);
    let bytes: u64 = stream.iter().map(|round| round.samples.bytes_written).sum();
    let seconds: f64 = stream.iter().map(|round| round.samples.seconds).sum();
    let budget = Budget::named(&run.budget).unwrap_or(Budget::STANDARD);
    let long = seconds >= budget.watch * WATCHED_PART;
    let enough = bytes >= budget.buffer_max || has_head(run) || buffer(run).is_some();
    bytes >= WATCHED_BYTES || (long && enough)
}

/// Whether it behaves like a disk with a head, which has no large buffers and no credits.
fn has_head(run: &Run) -> bool {
    let alone = run.of(Purpose::Concurrency, Work::Read).map(|step| step.samples.latency.p50);
    let alone = alone.reduce(f64::min).unwrap_or(0.0);
    alone >= HEAD_US && level(run, Work::Read, Pattern::Random).rate < HEAD_IOPS
}

/// Whether the disk may be a volume whose rate is one for both directions, and higher while it has
/// credits: those last for half an hour, and until then nothing tells it from one without.
fn may_have_credits(run: &Run) -> bool {
    let [reads, writes] = [Work::Read, Work::Write].map(|work| level(run, work, Pattern::Random));
    let alike = (reads.rate - writes.rate).abs() <= reads.rate * CREDITS_ALIKE;
    let fell = [(Work::Read, reads), (Work::Write, writes)].into_iter().any(|(work, level)| {
        let mut first = run.of(Purpose::First, work);
        let first = first.find(|first| first.phase.pattern == Pattern::Random);
        first.is_some_and(|first| first.samples.rate().mean > level.rate * (1.0 + CREDITS_FALL))
    });
    let watched = run.phases.last().map_or(0.0, |last| last.samples.began);
    alike && reads.rate < CREDITS_IOPS_MAX && !fell && !has_head(run) && watched < KNOWN_AFTER
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
