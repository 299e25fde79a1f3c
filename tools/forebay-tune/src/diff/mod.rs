//! Two runs compared: has the disk aged, did the new file system help?
//!
//! Runs of one budget have the same phases, so each is compared with its like: see `estimate` for
//! what follows from the ratios.

mod comparable;
mod estimate;
mod pairs;
mod written;

use std::collections::BTreeSet;

use forebay_load::significance::significant;
use serde::Serialize;

use crate::budget::Budget;
use crate::error::Error;
use crate::fit::{Fit, fit};
use crate::phase::{Pattern, Purpose, Work};
use crate::run::Run;
use estimate::{Estimate, deviation, noise};
use pairs::{Compared, Pair, Speed, moments, pairs};

pub(crate) use comparable::check;
pub use comparable::check_beforehand;

/// A change below this is not told, however sure: a disk is never quite the same,
const CHANGE_MIN: f64 = 0.03;
/// and half a minute, of which each figure has some seconds, knows it less well.
const CHANGE_MIN_QUICK: f64 = 0.05;
/// A size is measured in a single phase, which a bad moment may fill: its margin is this many times
/// as wide.
const SINGLY: f64 = 2.0;
/// A figure that differs by more than this part from moment to moment makes others unsure.
const UNEVEN: f64 = 0.05;
/// The chance that any of the four figures of a disk that has not changed is called changed,
const LEVEL: f64 = 0.04;
/// any of those that few phases tell of,
const LEVEL_OF_FEW: f64 = 0.0025;
/// any of the four in the files,
const LEVEL_OF_WRITTEN: f64 = 0.0025;
/// and any of all sizes: together one in twenty.
const LEVEL_OF_SIZES: f64 = 0.005;

/// One figure of two runs: a rate, so that less is a loss.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Change {
    /// Which figure.
    pub name: String,
    /// Its value in the older run, per second: the mean of its phases.
    pub old: f64,
    /// The same in the newer run.
    pub new: f64,
    /// By which part of the old value it rose.
    pub change: f64,
    /// How far the change may be wrong, with 95 % confidence in all figures together.
    pub margin: f64,
    /// In how many phases it was measured in both runs.
    pub phases: usize,
    /// Whether it is more than chance.
    pub significant: bool,
}

impl Change {
    /// Whether at least the part `least` was lost, and not by chance.
    pub fn is_loss(&self, least: f64) -> bool {
        self.significant && self.change < 0.0 && -self.change >= least
    }
}

/// What changed from one run to another.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Difference {
    /// The figures of the disk.
    pub figures: Vec<Change>,
    /// Requests of each size.
    pub sizes: Vec<Change>,
    /// Which of the four figures in the files were not seen to last, and in which run.
    pub may_be_bursts: Vec<String>,
    /// Figures that differ so much from moment to moment that it is in the margins of others.
    pub uneven: Vec<String>,
    /// Figures of which the two runs have no phases alike.
    pub not_compared: Vec<String>,
}

impl Difference {
    /// All of it.
    pub fn changes(&self) -> impl Iterator<Item = &Change> {
        self.figures.iter().chain(&self.sizes)
    }
}

/// The four figures, and how they are measured.
const FIGURES: [(&str, Work, Pattern); 4] = [
    ("random reads", Work::Read, Pattern::Random),
    ("random writes", Work::Write, Pattern::Random),
    ("read bandwidth", Work::Read, Pattern::Sequential),
    ("write bandwidth", Work::Write, Pattern::Sequential),
];
const ALONE: [(&str, Work); 4] = [
    ("one read at a time", Work::Read),
    ("one write at a time", Work::Write),
    ("flushes after a write", Work::Flush),
    ("discards alongside reads", Work::Discard),
];
const LADDERS: [(&str, Purpose, Work); 4] = [
    ("random reads", Purpose::Sizes, Work::Read),
    ("random writes", Purpose::Sizes, Work::Write),
    ("read stream", Purpose::Stream, Work::Read),
    ("write stream", Purpose::Stream, Work::Write),
];

/// What changed from `old` to `new`, which may be of different disks where `other_disk` says so.
///
/// # Errors
/// The runs are not comparable: they have not the same budget, threads or disk, or one was
/// interrupted, or has too little in it to say what the disk does.
pub fn diff(old: &Run, new: &Run, other_disk: bool) -> Result<Difference, Error> {
    check(old, new, other_disk)?;
    let fits = [fitted(old, "before")?, fitted(new, "now")?];
    let of = |compared, speed| pairs(old, new, compared, speed);
    let singly = |pairs: Vec<(Purpose, Pair)>| -> Vec<Pair> {
        pairs.into_iter().map(|(_, pair)| pair).collect()
    };
    let one = |compared, speed| singly(of(compared, speed));
    let whole = |speed| FIGURES.map(|(_, work, pattern)| of(Compared::Whole(work, pattern), speed));
    let [usual, means] = [Speed::Usual, Speed::Mean].map(whole);
    let by_moments = usual.each_ref().map(|pairs| moments(pairs));
    let noise_of_moments = noise(&by_moments);
    let named = |is: &dyn Fn(&[Pair]) -> bool| {
        let figures = FIGURES.iter().zip(&by_moments).filter(|(_, pairs)| is(pairs));
        figures.map(|((name, ..), _)| (*name).to_owned()).collect::<Vec<_>>()
    };
    let not_compared = named(&|pairs| pairs.is_empty());
    let uneven = named(&|pairs| deviation(pairs) > UNEVEN);
    let [noise, noise_of_means] = [usual, means].map(|figures| noise(&figures.map(singly)));
    let whole = FIGURES.iter().zip(by_moments);
    let whole = whole.map(|((name, ..), pairs)| ((*name).to_owned(), pairs)).collect();
    let alone =
        ALONE.map(|(name, work)| (name.to_owned(), one(Compared::Alone(work), Speed::Mean)));
    let sizes = LADDERS.iter().flat_map(|&(name, purpose, work)| {
        let sizes = old.of(purpose, work).map(|measured| measured.phase.request_bytes);
        sizes.collect::<BTreeSet<u32>>().into_iter().map(move |bytes| {
            let compared = Compared::Size(purpose, work, bytes);
            (format!("{name} of {bytes} bytes"), one(compared, Speed::Usual))
        })
    });
    let is_quick = old.budget == Budget::QUICK.name;
    let least = if is_quick { CHANGE_MIN_QUICK } else { CHANGE_MIN };
    let figures = changes(whole, noise_of_moments, LEVEL, least);
    let written = written::changes(&fits, LEVEL_OF_WRITTEN, least);
    let few = changes(alone.into(), noise_of_means, LEVEL_OF_FEW, least);
    let mut sizes = changes(sizes.collect(), noise, LEVEL_OF_SIZES, least);
    for size in &mut sizes {
        size.margin *= SINGLY;
        size.significant &= size.change.abs() >= size.margin;
    }
    Ok(Difference {
        figures: [figures, written, few].concat(),
        sizes,
        may_be_bursts: written::may_be_bursts(&fits),
        uneven,
        not_compared,
    })
}

/// What a run says of the disk.
fn fitted(run: &Run, which: &str) -> Result<Fit, Error> {
    fit(run).map_err(|error| {
        let why = format!("not comparable: the run {which} has no figures of the disk");
        Error::Run(format!("{why}: {error}"))
    })
}

/// The changes of figures by their pairs of phases; with a chance of `level` at most, any of
/// them is called significant where nothing has changed; a change below `least` is not either.
fn changes(figures: Vec<(String, Vec<Pair>)>, noise: f64, level: f64, least: f64) -> Vec<Change> {
    let known = figures.into_iter().filter_map(|(name, pairs)| {
        let phases = pairs.iter().map(|pair| pair.phases).sum();
        Some((name, Estimate::of(&pairs, noise)?, phases))
    });
    let known: Vec<_> = known.collect();
    let chances: Vec<f64> = known.iter().map(|(_, estimate, _)| estimate.chance()).collect();
    let found = significant(&chances, level);
    let each = level / known.len().max(1) as f64;
    let change = |((name, estimate, phases), found): ((String, Estimate, usize), bool)| Change {
        name,
        old: estimate.old,
        new: estimate.new,
        change: estimate.change(),
        margin: estimate.margin(each),
        phases,
        significant: found && estimate.change().abs() >= least,
    };
    known.into_iter().zip(found).map(change).collect()
}
