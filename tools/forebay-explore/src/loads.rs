//! The loads of a surface, judged by a goal.

use forebay_sim::surface::{Cell, Grid};

use crate::error::Error;
use crate::goal::{Goal, LATENCY_MAX_US, Percentile, time};

/// A fit needs at least this many cells.
pub(crate) const CELLS_MIN: usize = 9;
/// How much longer or shorter than the goal a latency is, as a logarithm: further away says
/// nothing about where the border is. A load that was missed counts as the most.
pub(crate) const EXCESS_MAX: f64 = 1.4;

/// What a disk does in one direction alone: the ends of the straight line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figures {
    /// Bytes written per second.
    pub write_bandwidth: f64,
    /// Reads per second.
    pub read_iops: f64,
}

/// A load, and whether it keeps the goal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Load {
    /// Writes and reads as parts of what the disk does alone.
    pub(crate) write: f64,
    pub(crate) read: f64,
    /// Whether it keeps the goal.
    pub(crate) safe: bool,
    /// The logarithm of latency over goal, bounded.
    pub(crate) excess: f64,
}

impl Load {
    /// The disk time that it takes each second, by the straight line.
    pub(crate) fn time(&self) -> f64 {
        self.write + self.read
    }

    /// The part of writes in that.
    pub(crate) fn write_part(&self) -> f64 {
        if self.time() > 0.0 { self.write / self.time() } else { 0.0 }
    }
}

/// What the straight line is drawn between: the highest loads that were tried.
pub(crate) fn figures(surface: &Grid) -> Figures {
    let (write_bandwidth, read_iops) = surface.maxima();
    Figures { write_bandwidth, read_iops }
}

/// The loads of `surface` with requests of the timed kind in them, judged by `goal`.
pub(crate) fn judged(surface: &Grid, figures: Figures, goal: Goal) -> Vec<Load> {
    let loads = surface.loads_with_cells();
    let judged = loads.filter_map(|(at, cell)| judged_load(at, cell, figures, goal));
    judged.filter(|load| is_timed(surface, (load.write, load.read))).collect()
}

/// Whether a load has requests of the kind whose latencies `surface` has: reads, or writes.
pub(crate) fn is_timed(surface: &Grid, (write, read): (f64, f64)) -> bool {
    if surface.is_of_writes() { write > 0.0 } else { read > 0.0 }
}

/// The load `at` this many bytes written and reads per second, judged by `goal`; without a `cell`
/// the disk did not carry it. None where that is not known.
pub(crate) fn judged_load(
    at: (f64, f64),
    cell: Option<&Cell>,
    figures: Figures,
    goal: Goal,
) -> Option<Load> {
    let (safe, excess) = match cell {
        None => (false, EXCESS_MAX),
        Some(cell) => {
            let latency = goal.percentile.of(cell)?;
            let safe = latency <= goal.latency_us;
            // a bound below the goal does not say whether it is kept
            if safe && goal.percentile.is_bound(cell) {
                return None;
            }
            (safe, libm::log(latency / goal.latency_us))
        }
    };
    Some(Load {
        write: at.0 / figures.write_bandwidth,
        read: at.1 / figures.read_iops,
        safe,
        excess: excess.clamp(-EXCESS_MAX, EXCESS_MAX),
    })
}

/// Whether a region can be fitted to `surface` for `goal`.
pub(crate) fn check(surface: &Grid, goal: Goal) -> Result<(), Error> {
    let Goal { percentile, latency_us } = goal;
    let timed = |cell: &&Cell| is_timed(surface, (cell.write_bandwidth, cell.read_iops));
    // how long a latency is at least is not known where it is only bounded
    let known = |of: Percentile, cell: &Cell| of.of(cell).filter(|_| !of.is_bound(cell));
    let cells = || surface.cells().iter().filter(timed);
    let is_known = |of: &Percentile| cells().any(|cell| known(*of, cell).is_some());
    if cells().next().is_some() && !is_known(&percentile) {
        let known = Percentile::ALL.into_iter().filter(is_known).map(Percentile::name);
        let known = known.collect::<Vec<_>>().join(", ");
        return Err(Error::NoPercentile { percentile: percentile.name(), known });
    }
    let count = cells().filter_map(|cell| percentile.of(cell)).count();
    let figures = figures(surface);
    if count < CELLS_MIN || figures.write_bandwidth.min(figures.read_iops) <= 0.0 {
        return Err(Error::TooFewCells { found: count, least: CELLS_MIN });
    }
    let base = surface.cells().iter().map(|cell| cell.p50_us).fold(f64::INFINITY, f64::min);
    let least = cells().filter_map(|cell| known(percentile, cell)).fold(f64::INFINITY, f64::min);
    // a round figure of which there is something to fit
    let goal_possible = Goal { latency_us: rounded_up(2.0 * least).min(LATENCY_MAX_US), ..goal };
    if latency_us < base {
        return Err(Error::BelowBase { goal, base: time(base), goal_possible });
    }
    if !judged(surface, figures, goal).iter().any(|load| load.safe) {
        return Err(Error::NothingMeets { goal, least: time(least), goal_possible });
    }
    Ok(())
}

/// The next figure with one digit.
fn rounded_up(value: f64) -> f64 {
    let scale = libm::pow(10.0, libm::floor(libm::log10(value)));
    (value / scale).ceil() * scale
}

/// Sites along each axis.
const STEPS: usize = 30;
/// How far a measured load counts, in mean distances of loads.
const REACH: f64 = 0.4;
/// How sure a latency makes that its neighbourhood keeps the goal: 1.08 times the goal
/// breaks it with 73 %.
const DOUBT: f64 = 0.08;

/// A load, and what is believed of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Site {
    /// Writes and reads as parts of what the disk does alone.
    pub(crate) write: f64,
    pub(crate) read: f64,
    /// How likely it breaks the goal, 0 to 1.
    pub(crate) broken: f64,
}

impl Site {
    /// The disk time that it takes each second, by the straight line.
    pub(crate) fn time(&self) -> f64 {
        self.write + self.read
    }

    /// The part of writes in that.
    pub(crate) fn write_part(&self) -> f64 {
        self.write / self.time().max(f64::MIN_POSITIVE)
    }
}

/// Sites in equal distances over all that was measured: a weighted mean of the latencies around.
pub(crate) fn sites(loads: &[Load]) -> Vec<Site> {
    let most = |figure: fn(&Load) -> f64| loads.iter().map(figure).fold(0.0, f64::max);
    let (write_max, read_max) = (most(|load| load.write), most(|load| load.read));
    let reach = REACH / libm::sqrt(loads.len().max(1) as f64);
    let step = |index: usize, max: f64| max * index as f64 / STEPS as f64;
    let all = (0..=STEPS).flat_map(|write| (1..=STEPS).map(move |read| (write, read)));
    let site = |(write, read): (usize, usize)| {
        let (write, read) = (step(write, write_max), step(read, read_max));
        let (mut sum, mut weights) = (0.0, f64::MIN_POSITIVE);
        for load in loads {
            let across = (load.write - write) / write_max.max(f64::MIN_POSITIVE);
            let up = (load.read - read) / read_max.max(f64::MIN_POSITIVE);
            let distance = (across * across + up * up) / (2.0 * reach * reach);
            // beyond the reach of all of them the nearest decides
            let weight = libm::exp(-distance.min(600.0));
            sum += weight * load.excess;
            weights += weight;
        }
        let broken = 1.0 / (1.0 + libm::exp(-sum / weights / DOUBT));
        Site { write, read, broken }
    };
    all.map(site).collect()
}
