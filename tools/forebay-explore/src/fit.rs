//! The region for a goal, and how well it does on what it was not fitted to.
//!
//! Decision: `docs/decisions/0046-judging-regions.md`.

use forebay_sim::surface::Grid;
use serde::Serialize;

use crate::error::Error;
use crate::goal::Goal;
use crate::loads::{self, Figures, Load, Site, sites};
use crate::region::Shape;
use crate::{between, power, radii};

/// From this sum of the two errors on, no region is said to fit.
const POOR: f64 = 0.4;
/// A region is unusable if it breaks the goal with this many of the allowed loads, or forbids this
/// many of what keeps it.
const UNSAFE_ALLOWED_MAX: f64 = 0.5;
const SAFE_REJECTED_MAX: f64 = 0.9;
/// Steps of the safe region.
const STEPS_SAFE: usize = 8;
/// What is tried alongside the straight line; of two that are as good, the one that stands first.
const KINDS: [Kind; 4] =
    [Kind::Power, Kind::Radii { steps: 4 }, Kind::Radii { steps: 8 }, Kind::Radii { steps: 16 }];

/// A kind of region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The straight line between the disk's figures.
    Line,
    /// (w / a)^p + (r / b)^p at most 1.
    Power,
    /// Radii by the part of writes.
    Radii {
        /// This many steps of it, from reads alone to writes alone.
        steps: usize,
    },
    /// Radii that allow nothing that was seen to break the goal.
    Safe,
}

/// A region for a goal.
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    /// The goal.
    pub goal: Goal,
    /// What the disk does in each direction alone: the region is drawn in parts of it.
    pub figures: Figures,
    /// The kind of region that does best on loads left out of the fit; [`Kind::Safe`] where none
    /// does well and that one is no worse than the straight line.
    pub kind: Kind,
    /// Whether every load with reads keeps the goal, so that nothing that was measured bounds it.
    pub is_unbounded: bool,
    /// The region, fitted to all loads.
    pub shape: Shape,
    /// How the kind does on loads left out of the fit.
    pub quality: Quality,
    /// How the straight line does on the same loads.
    pub line: Quality,
}

impl Fit {
    /// Whether the region is wrong about this many loads that it does not describe the disk.
    pub fn is_poor(&self) -> bool {
        self.kind == Kind::Safe || self.quality.sum() > POOR
    }

    /// Whether it is unusable: most loads that it allows break the goal, or it forbids nearly all
    /// that keep it.
    pub fn is_unusable(&self) -> bool {
        self.quality.unsafe_allowed > UNSAFE_ALLOWED_MAX
            || self.quality.safe_rejected > SAFE_REJECTED_MAX
    }
}

/// Half of the loads, and what they say of the others.
struct Half {
    loads: Vec<Load>,
    sites: Vec<Site>,
}

impl Half {
    fn of(loads: Vec<Load>) -> Self {
        Self { sites: sites(&loads), loads }
    }

    fn shape(&self, kind: Kind) -> Shape {
        match kind {
            Kind::Line => Shape::LINE,
            Kind::Power => Shape::Power(power::fit(&self.sites)),
            Kind::Radii { steps } => Shape::Radii(radii::fit(&self.sites, &[], steps)),
            Kind::Safe => {
                let broken: Vec<Load> =
                    self.loads.iter().filter(|load| !load.safe).copied().collect();
                Shape::Radii(radii::fit(&self.sites, &broken, STEPS_SAFE))
            }
        }
    }
}

/// The region of the loads of `surface` that keep `goal`: of several kinds the one with the least
/// sum of the unsafe and rejected parts on loads left out of the fit.
///
/// Of a surface that is no matrix, such as [`adaptive`](crate::adaptive) makes, the loads between
/// those that were measured are taken from what is around them.
///
/// The surface is halved like a chess board; each half is fitted and judged by the other, and the
/// kind that does best is fitted to all of it. The straight line is one of the kinds, so the result
/// is never worse than it. Takes about half a second; the same on every machine.
///
/// # Errors
/// Fewer than nine usable cells, a percentile that was not measured, a goal below the latency of
/// the idle disk, or one that no load keeps.
pub fn fit(surface: &Grid, goal: Goal) -> Result<Fit, Error> {
    loads::check(surface, goal)?;
    let figures = loads::figures(surface);
    let all = loads::judged(surface, figures, goal);
    let halves = if surface.is_matrix() {
        surface.checkerboard().map(|half| loads::judged(&half, figures, goal))
    } else {
        between::halves(&all)
    };
    let whole = if surface.is_matrix() { all } else { halves.concat() };
    let halves = halves.map(Half::of);
    let judge = |kind| {
        let [one, other] = &halves;
        Quality::mean(&[
            Quality::of(&one.shape(kind), &other.loads),
            Quality::of(&other.shape(kind), &one.loads),
        ])
    };
    let line = judge(Kind::Line);
    let tried = KINDS.map(|kind| (kind, judge(kind)));
    let better = |best: (Kind, Quality), next: (Kind, Quality)| {
        if next.1.sum() < best.1.sum() { next } else { best }
    };
    let (mut kind, mut quality) = tried.into_iter().fold((Kind::Line, line), better);
    if quality.sum() > POOR {
        let safe = judge(Kind::Safe);
        if safe.sum() <= line.sum() {
            (kind, quality) = (Kind::Safe, safe);
        }
    }
    let is_unbounded = whole.iter().all(|load| load.safe);
    let shape = Half::of(whole).shape(kind);
    Ok(Fit { goal, figures, kind, is_unbounded, shape, quality, line })
}

/// How wrong a region is about some loads; both 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Quality {
    /// Of the loads that it allows, the part that breaks the goal.
    #[serde(rename = "over")]
    pub unsafe_allowed: f64,
    /// Of the loads that keep the goal, the part that it forbids.
    #[serde(rename = "waste")]
    pub safe_rejected: f64,
}

impl Quality {
    pub(crate) fn of(shape: &Shape, loads: &[Load]) -> Self {
        let count = |wanted: fn(bool, bool) -> bool| {
            loads.iter().filter(|load| wanted(shape.allows(load), load.safe)).count()
        };
        let part = |some: usize, all: usize| some as f64 / all.max(1) as f64;
        Self {
            unsafe_allowed: part(
                count(|allowed, safe| allowed && !safe),
                count(|allowed, _| allowed),
            ),
            safe_rejected: part(count(|allowed, safe| !allowed && safe), count(|_, safe| safe)),
        }
    }

    pub(crate) fn mean(all: &[Self]) -> Self {
        let mean = |figure: fn(&Self) -> f64| {
            all.iter().map(figure).sum::<f64>() / all.len().max(1) as f64
        };
        Self {
            unsafe_allowed: mean(|quality| quality.unsafe_allowed),
            safe_rejected: mean(|quality| quality.safe_rejected),
        }
    }

    /// Both together, 0 to 2: what a fit makes as small as it can.
    pub fn sum(&self) -> f64 {
        self.unsafe_allowed + self.safe_rejected
    }
}
