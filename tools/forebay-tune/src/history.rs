//! Many runs of one disk: how its figures went, and from when on they are others.
//!
//! What changes from one run to the next is in no single run. Where there are several, it is seen
//! in how they differ; and a level that holds for some runs and then another one that holds since
//! is a change of the disk. It is looked for wherever it may be, so that its chance counts as often
//! as there are places for it, and again on both sides of one that was found.

use forebay_load::significance::{chance, significant};
use serde::Serialize;

use crate::diff;
use crate::fit::Fit;
use crate::run::Run;
use crate::statistics::mean;

/// With fewer runs nothing is known of how they differ.
pub const RUNS_MIN: usize = 4;
/// The chance that any figure of a disk that has not changed is said to have changed.
const LEVEL: f64 = 0.05;
/// A change below this is of no interest, however sure.
const CHANGE_MIN: f64 = 0.02;
/// A value of a run is known within this many of its standard errors.
const MARGIN_ERRORS: f64 = 2.0;

/// One figure over all runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct History {
    /// Which figure.
    pub name: &'static str,
    /// What it is counted in.
    pub unit: &'static str,
    /// Its value in each run, the oldest first.
    pub values: Vec<f64>,
    /// Where it became another, the first first.
    pub changes: Vec<ChangePoint>,
}

/// A lasting change between two runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ChangePoint {
    /// The first run with the new level.
    pub run: usize,
    /// By which part of the level before the figure rose.
    pub change: f64,
}

/// A value and how far it may be wrong.
type Known = (f64, f64);
type KnownOf = fn(&Fit) -> Known;

const FIGURES: [(&str, &str, f64, KnownOf); 5] = [
    ("random reads", "per s", 1.0, |fit| (fit.read_iops.value, fit.read_iops.margin)),
    ("random writes", "per s", 1.0, |fit| (fit.write_iops.value, fit.write_iops.margin)),
    ("read bandwidth", "MB/s", 1e6, |fit| (fit.read_bandwidth.value, fit.read_bandwidth.margin)),
    ("write bandwidth", "MB/s", 1e6, |fit| (fit.write_bandwidth.value, fit.write_bandwidth.margin)),
    ("one read at a time", "per s", 1.0, |fit| (1e6 / fit.base_latency_us.max(1e-3), 0.0)),
];

/// The runs of those in `earlier`, the oldest first, that can be compared with `newest`.
pub fn comparable<'a>(earlier: &'a [Run], newest: &Run) -> Vec<&'a Run> {
    earlier.iter().filter(|run| diff::check(run, newest, false).is_ok()).collect()
}

/// The figures over all runs with these fits, the oldest first.
pub fn histories(fits: &[Fit]) -> Vec<History> {
    let known = FIGURES.map(|(.., of)| fits.iter().map(of).collect::<Vec<_>>());
    let mut found: Vec<Vec<ChangePoint>> = vec![Vec::new(); known.len()];
    let mut parts: Vec<(usize, usize, usize)> =
        (0..known.len()).map(|at| (at, 0, fits.len())).collect();
    // each round looks at all parts of all figures; a part is divided once
    while !parts.is_empty() {
        let splits = parts.iter().map(|&(at, from, to)| {
            split(known.get(at)?.get(from..to)?)
                .map(|split| Split { run: split.run + from, ..split })
        });
        let splits: Vec<Option<Split>> = splits.collect();
        let chances: Vec<f64> =
            splits.iter().map(|split| split.as_ref().map_or(1.0, |split| split.chance)).collect();
        let sure = significant(&chances, LEVEL);
        let divided = parts.iter().zip(&splits).zip(sure).filter(|(_, sure)| *sure);
        parts = divided
            .filter_map(|((&(at, from, to), split), _)| {
                let Split { run, change, .. } = *split.as_ref()?;
                let changes = found.get_mut(at)?;
                changes.push(ChangePoint { run, change });
                Some([(at, from, run), (at, run, to)])
            })
            .flatten()
            .collect();
    }
    let history =
        |((&(name, unit, scale, _), known), mut changes): ((&_, Vec<Known>), Vec<ChangePoint>)| {
            changes.sort_by_key(|change| change.run);
            changes.retain(|change| change.change.abs() >= CHANGE_MIN);
            let values = known.iter().map(|(value, _)| value / scale).collect();
            History { name, unit, values, changes }
        };
    FIGURES.iter().zip(known).zip(found).map(history).collect()
}

/// The losses of at least the part `least` that the last run brought to light: that were not seen
/// in the runs before it.
pub fn new_losses(fits: &[Fit], least: f64) -> Vec<(&'static str, ChangePoint)> {
    let before = histories(fits.get(..fits.len().saturating_sub(1)).unwrap_or_default());
    let was_known = |name: &str, point: &ChangePoint| {
        let known = before.iter().filter(|history| history.name == name);
        known
            .flat_map(|history| &history.changes)
            .any(|old| old.change < 0.0 && old.run.abs_diff(point.run) < RUNS_MIN)
    };
    let all = histories(fits).into_iter();
    let losses = all.flat_map(|history| {
        let points =
            history.changes.into_iter().filter(|point| -point.change >= least.max(CHANGE_MIN));
        points.map(move |point| (history.name, point)).collect::<Vec<_>>()
    });
    losses.filter(|(name, point)| !was_known(name, point)).collect()
}

/// Where values go from one level to another.
struct Split {
    /// The first value of the other level.
    run: usize,
    change: f64,
    /// How likely so large a step anywhere is by chance.
    chance: f64,
}

/// The step in `known` that is least likely chance; none of few.
fn split(known: &[Known]) -> Option<Split> {
    if known.len() < RUNS_MIN {
        return None;
    }
    let logs: Vec<f64> = known.iter().map(|(value, _)| value.max(f64::MIN_POSITIVE).ln()).collect();
    let own: Vec<f64> = known
        .iter()
        .map(|(value, margin)| (margin / MARGIN_ERRORS / value.max(f64::MIN_POSITIVE)).powi(2))
        .collect();
    let least = mean(&own).max(f64::EPSILON);
    let places = logs.len() - 1;
    let step = |run: usize| {
        let (before, after) = logs.split_at(run);
        let change = mean(after) - mean(before);
        let squares: f64 = [before, after]
            .iter()
            .map(|part| part.iter().map(|log| (log - mean(part)).powi(2)).sum::<f64>())
            .sum();
        let degrees = logs.len() - 2;
        let variance = (squares / degrees as f64).max(least);
        let error = (variance * (1.0 / before.len() as f64 + 1.0 / after.len() as f64)).sqrt();
        let chance = chance(change / error, degrees as u32) * places as f64;
        Split { run, change: change.exp_m1(), chance: chance.min(1.0) }
    };
    (1..=places).map(step).min_by(|one, other| one.chance.total_cmp(&other.chance))
}

#[cfg(test)]
mod tests {
    use super::*;
    use forebay_load::Rng;

    /// Values of `runs` runs within some 2 %, by a tenth less from the run `lost` on.
    fn values(runs: usize, lost: usize, seed: u64) -> Vec<Known> {
        let mut chance = Rng::new(seed, &[]);
        let mut noise = || (0..12).map(|_| chance.below(1000) as f64).sum::<f64>() / 1000.0 - 6.0;
        let level = |run: usize| if run < lost { 1000.0 } else { 900.0 };
        (0..runs).map(|run| (level(run) * (1.0 + 0.02 * noise()), 5.0)).collect()
    }

    #[test]
    fn a_lasting_loss_of_a_tenth_is_found_where_it_began() {
        let mut near = 0;
        for seed in 0..100 {
            let split = split(&values(20, 13, seed)).unwrap();
            assert!(split.chance < 0.01, "{seed}: {}", split.chance);
            assert!((split.change + 0.1).abs() < 0.03, "{seed}: {}", split.change);
            near += u32::from(split.run.abs_diff(13) <= 1);
        }
        assert!(near >= 95, "{near} of 100");
    }

    #[test]
    fn runs_that_only_differ_have_no_change_point() {
        for runs in [4, 8, 20, 60] {
            let wrong = (0..200).filter(|&seed| {
                split(&values(runs, runs, seed)).is_some_and(|split| split.chance < 0.05)
            });
            let wrong = wrong.count();
            assert!(wrong <= 16, "{wrong} of 200 with {runs} runs");
        }
        assert!(split(&values(3, 2, 1)).is_none());
    }

    #[test]
    fn the_newest_run_alone_can_show_a_loss() {
        let found = (0..100).filter(|&seed| {
            split(&values(12, 11, seed)).is_some_and(|split| split.chance < 0.05 && split.run == 11)
        });
        let found = found.count();
        assert!(found >= 60, "{found} of 100");
    }
}
