//! The four figures that the files have, which are of the end of a measurement: what is behind a
//! buffer, or without credits, counts there and not as one phase of many.

use forebay_load::significance::{chance, quantile, significant};

use super::Change;
use crate::fit::{Figure, Fit};
use crate::sustained::Lasting;

/// A margin is of this many standard errors, of this many degrees of freedom: those of the rounds
/// at the end of a run.
const DEGREES: u32 = 8;
/// The chance that a value is outside of its margin.
const OUTSIDE: f64 = 0.05;

/// The name of a figure, the figure, and whether it was seen to last.
type Written = (&'static str, fn(&Fit) -> Figure, fn(&Lasting) -> bool);

const FIGURES: [Written; 4] = [
    ("random reads", |fit| fit.read_iops, |lasting| lasting.read_iops),
    ("random writes", |fit| fit.write_iops, |lasting| lasting.write_iops),
    ("read bandwidth", |fit| fit.read_bandwidth, |lasting| lasting.read_bandwidth),
    ("write bandwidth", |fit| fit.write_bandwidth, |lasting| lasting.write_bandwidth),
];

/// The changes of the figures, each with its own margin in both runs; with a chance of `level` at
/// most, any is called significant where nothing has changed; one below `least` is not either. Left
/// out are small requests of another size, as of a sector that was taken for another.
pub(super) fn changes(fits: &[Fit; 2], level: f64, least: f64) -> Vec<Change> {
    let pairs = FIGURES.map(|(name, of, _)| (name, fits.each_ref().map(of)));
    let is_alike = |(name, [old, new]): &(&str, [Figure; 2])| {
        name.contains("bandwidth") || old.request_bytes == new.request_bytes
    };
    let pairs: Vec<_> = pairs.into_iter().filter(is_alike).collect();
    let chances: Vec<f64> = pairs.iter().map(|(_, pair)| chance_of(pair)).collect();
    let found = significant(&chances, level);
    let each = level / pairs.len().max(1) as f64;
    let change = |((name, [old, new]), found): ((&str, [Figure; 2]), bool)| {
        let change = new.value / old.value - 1.0;
        let apart = quantile(each, DEGREES) * error(&[old, new]);
        Change {
            name: format!("{name}, in files"),
            old: old.value,
            new: new.value,
            change,
            margin: apart.exp_m1() * new.value / old.value,
            phases: 1,
            significant: found && change.abs() >= least,
        }
    };
    pairs.into_iter().zip(found).map(change).collect()
}

/// Which figures were not seen to last, and in which run.
pub(super) fn may_be_bursts([old, new]: &[Fit; 2]) -> Vec<String> {
    let of = |(name, _, lasts): Written| {
        let which = match (lasts(&old.lasting), lasts(&new.lasting)) {
            (true, true) => return None,
            (false, true) => "before",
            (true, false) => "now",
            (false, false) => "in both",
        };
        Some(format!("{name} ({which})"))
    };
    FIGURES.into_iter().filter_map(of).collect()
}

/// The standard error of the logarithm of the ratio.
fn error(pair: &[Figure; 2]) -> f64 {
    let squares = pair.map(|figure| (figure.uncertainty() / quantile(OUTSIDE, DEGREES)).powi(2));
    squares.iter().sum::<f64>().sqrt().max(f64::EPSILON)
}

fn chance_of(pair: &[Figure; 2]) -> f64 {
    let [old, new] = pair;
    chance((new.value / old.value).ln() / error(pair), DEGREES)
}
