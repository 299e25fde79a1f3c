//! Finds the queueing model that is nearest to a measured surface.

use super::grid::{Cell, Grid, LATENCY_MAX_US};
use super::latency::{Percentiles, carries, percentiles_near};
use super::minimize::{Minimum, minimize};
use super::model::{Region, SurfaceModel};

/// How much a load counts that the disk did not carry and the model does; the
/// error of a percentile counts 1 at most.
const MISSED_WEIGHT: f64 = 0.25;
/// How much errors of medians count, against those of 95th percentiles.
const MEDIAN_WEIGHT: f64 = 2.0;
/// Starting points: the load of the dies by reads, the length of a program
/// operation in least medians, and the load of the dies by programs.
const DIE_LOADS: [f64; 3] = [0.3, 0.6, 0.9];
const PROGRAMS: [f64; 3] = [0.5, 2.0, 8.0];
const PROGRAM_SHARES: [f64; 3] = [0.3, 0.6, 0.9];
/// How many of the best starting points are improved.
const IMPROVED: usize = 4;
/// Evaluations for each of them.
const STEPS: usize = 600;
/// How often the best of the points then found is improved again.
const POLISHES: usize = 3;
/// Evaluations each time.
const STEPS_POLISH: usize = 1000;

/// How a model compares with measured cells: medians of relative errors.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FitErrors {
    /// Of the median latencies.
    pub p50: f64,
    /// Of the 95th percentiles.
    pub p95: f64,
}

/// The model that comes nearest to the cells of `grid`: the least sum of the
/// errors of both percentiles, found by downhill simplex from a few starting
/// points. Takes about a second; the same on every machine.
pub fn fit(grid: &Grid) -> SurfaceModel {
    let scale = Scale::of(grid);
    let objective = |point: &Point| objective(&scale.model(point), grid);
    let mut found: Vec<Minimum<_>> =
        scale.starts().map(|point| Minimum { point, value: objective(&point) }).collect();
    let best_first = |a: &Minimum<_>, b: &Minimum<_>| a.value.total_cmp(&b.value);
    found.sort_by(best_first);
    found.truncate(IMPROVED);
    for start in &mut found {
        *start = minimize(objective, start.point, STEPS);
    }
    found.sort_by(best_first);
    let polished =
        (0..POLISHES).fold(found[0], |best, _| minimize(objective, best.point, STEPS_POLISH));
    scale.model(&polished.point)
}

/// The errors of what was found for each cell, `None` where the load is not
/// carried. What lies beyond a bound is no error.
pub fn errors<'a>(found: impl IntoIterator<Item = (&'a Cell, Option<Percentiles>)>) -> FitErrors {
    let errors = found.into_iter().map(|(cell, found)| {
        let (p50, p95) = found.unwrap_or((f64::INFINITY, f64::INFINITY));
        let of_p50 = relative(p50, cell.p50_us, cell.median_clipped());
        (of_p50, relative(p95, cell.p95_us, cell.clipped))
    });
    let (mut p50, mut p95): (Vec<f64>, Vec<f64>) = errors.unzip();
    FitErrors { p50: median(&mut p50), p95: median(&mut p95) }
}

fn relative(found: f64, measured: f64, bound: bool) -> f64 {
    if bound && found >= measured { 0.0 } else { (found / measured - 1.0).abs() }
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

fn objective(model: &SurfaceModel, grid: &Grid) -> f64 {
    let cells: f64 = grid.cells.iter().map(|cell| cell_error(model, cell)).sum();
    let carried = |&&(write, read): &&(f64, f64)| carries(model, write, read);
    let missed = grid.missed.iter().filter(carried).count() as f64;
    (cells + missed * MISSED_WEIGHT) / grid.cells.len() as f64
}

fn cell_error(model: &SurfaceModel, cell: &Cell) -> f64 {
    let near = (cell.p50_us, cell.p95_us);
    let found = percentiles_near(model, cell.write_bandwidth, cell.read_iops, near);
    let error = |found: Option<f64>, measured: f64, bound: bool| {
        let error = found.map_or(f64::INFINITY, |found| libm::log(found / measured));
        match error.abs() {
            _ if bound && error > 0.0 => 0.0,
            error if error.is_finite() => error / (1.0 + error),
            _ => 1.0,
        }
    };
    let of_p50 = error(found.map(|found| found.0), cell.p50_us, cell.median_clipped());
    MEDIAN_WEIGHT * of_p50 + error(found.map(|found| found.1), cell.p95_us, cell.clipped)
}

/// The parameters: logarithms of figures, most of them relative to [`Scale`],
/// so that every point is a disk.
type Point = [f64; 13];

/// What the parameters are relative to.
struct Scale {
    /// The highest loads that were tried.
    write_bandwidth: f64,
    read_iops: f64,
    /// The least median and the least 95th percentile, in microseconds.
    p50_us: f64,
    p95_us: f64,
    /// The highest loads of one kind alone that the disk carried, as parts of
    /// the highest that were tried.
    carried: (f64, f64),
}

impl Scale {
    fn of(grid: &Grid) -> Self {
        let (write_bandwidth, read_iops) = grid.maxima();
        let least =
            |figure: fn(&Cell) -> f64| grid.cells.iter().map(figure).fold(LATENCY_MAX_US, f64::min);
        let writes: fn(&Cell) -> f64 = |cell| cell.write_bandwidth;
        let reads: fn(&Cell) -> f64 = |cell| cell.read_iops;
        let carried = |of: fn(&Cell) -> f64, other: fn(&Cell) -> f64| {
            let alone = grid.cells.iter().filter(|cell| other(cell) == 0.0 && !cell.clipped);
            alone.map(of).fold(0.0, f64::max)
        };
        Self {
            write_bandwidth,
            read_iops,
            p50_us: least(|cell| cell.p50_us),
            p95_us: least(|cell| cell.p95_us),
            carried: (carried(writes, reads) / write_bandwidth, carried(reads, writes) / read_iops),
        }
    }

    fn starts(&self) -> impl Iterator<Item = Point> {
        DIE_LOADS.into_iter().flat_map(move |die_load| {
            PROGRAMS.into_iter().flat_map(move |program| {
                PROGRAM_SHARES.into_iter().map(move |share| self.start(die_load, program, share))
            })
        })
    }

    fn start(&self, die_load: f64, program: f64, program_share: f64) -> Point {
        let (latency, die_read, slack, turn) = (1.0, 0.5, 1.0, 0.3);
        let (lull, lull_extra) = (2.0, 8.0);
        let (exponent, write_bandwidth, read_iops) = (1.0, 1.0, 1.0);
        [
            latency,
            self.jitter(),
            die_read,
            die_load,
            turn,
            program,
            program_share,
            slack,
            lull,
            lull_extra,
            exponent,
            write_bandwidth,
            read_iops,
        ]
        .map(libm::log)
    }

    /// The mean of what an idle disk takes beyond the least, in least medians:
    /// an exponential wait has its 95th percentile 2.3 means above its median.
    fn jitter(&self) -> f64 {
        ((self.p95_us / self.p50_us - 1.0) / 2.3).clamp(0.02, 1.0)
    }

    /// The disk at a point, kept within what is sensible: one that is idle has
    /// the least latency that was measured, a read keeps a die busy for at most
    /// the larger part of it, and the disk carries alone what it was seen to.
    fn model(&self, point: &Point) -> SurfaceModel {
        let [
            latency,
            jitter,
            die_read,
            die_load,
            turn,
            program,
            program_share,
            slack,
            lull,
            lull_extra,
            exponent,
            write,
            read,
        ] = point.map(libm::exp);
        let jitter = jitter.clamp(0.02, 1.2 * self.jitter());
        let die_read = die_read.min(0.8);
        let latency = latency.clamp(0.9, 1.1) * (1.0 - 0.69 * jitter);
        let read_iops = self.read_iops * read.clamp(self.carried.1, 1.1);
        let die_load = die_load.min(0.99);
        let dies = die_read * self.p50_us * read_iops / 1e6 / die_load;
        let dies = dies.round().clamp(1.0, 1024.0);
        SurfaceModel {
            region: Region {
                write_bandwidth: self.write_bandwidth * write.clamp(self.carried.0, 1.1),
                read_iops,
                exponent: exponent.clamp(0.2, 20.0),
            },
            latency_us: latency * self.p50_us,
            jitter_us: jitter * self.p50_us,
            dies: dies as u32,
            die_read_us: die_load * dies * 1e6 / read_iops,
            turn_us: turn * self.p50_us,
            program_us: program * self.p50_us,
            program_share: program_share.min(0.99),
            slack_us: slack * self.p50_us,
            lull_us: lull * self.p50_us,
            lull_extra_us: lull_extra * self.p50_us,
        }
    }
}
