//! Measures few loads of a matrix: those where a goal begins to break.
//!
//! Along rays from no load outwards the last load that keeps a goal is searched, from where the
//! rays alongside it say that it should be. Between two rays whose borders differ most, as the area
//! that lies between them, another one is laid.
//!
//! Decision: `docs/decisions/0045-adaptive-exploration.md`.

use std::collections::BTreeMap;

use forebay_sim::surface::{Cell, Grid};

use crate::goal::Goal;
use crate::matrix::{Matrix, Place};

/// At most such a part of the loads is measured, or this many of them.
const PART: u32 = 6;
const CELLS_MIN: u32 = 36;
/// The first rays are this many parts of the way around apart, and none are closer than this many.
const RAYS: u32 = 4;
const RAYS_MAX: u32 = 64;
/// Rays between which so little of the region's area is unknown have none laid between them.
const KNOWN: f64 = 0.002;

/// How many loads of `matrix` [`adaptive`] measures at most.
pub fn adaptive_cells_max(matrix: &Matrix) -> u32 {
    (matrix.cells() / PART).max(CELLS_MIN).min(matrix.cells())
}

/// Measures those loads of `matrix` that say where each of `goals` begins to break: a sixth of them
/// at most, of a small matrix up to 36.
///
/// What is measured depends on nothing but the answers of `measure`, so that an interrupted search
/// is gone on with by answering again.
///
/// # Errors
/// The first of `measure`, which is given bytes written and reads per second, and answers nothing
/// where the disk does not carry them.
pub fn adaptive<E>(
    matrix: &Matrix,
    goals: &[Goal],
    measure: impl FnMut((f64, f64)) -> Result<Option<Cell>, E>,
) -> Result<Grid, E> {
    let most = adaptive_cells_max(matrix);
    let mut search = Search { matrix, goals, most, measure, known: BTreeMap::new() };
    search.run()?;
    Ok(search.surface())
}

/// What is found along a ray for a goal.
#[derive(Clone, Copy, Debug)]
struct Ray {
    /// How far around it is: 0 is reads alone, [`RAYS_MAX`] writes alongside few reads.
    turn: u32,
    /// How many of its loads keep the goal.
    border: usize,
}

struct Search<'a, M> {
    matrix: &'a Matrix,
    goals: &'a [Goal],
    most: u32,
    measure: M,
    known: BTreeMap<Place, Option<Cell>>,
}

impl<E, M: FnMut((f64, f64)) -> Result<Option<Cell>, E>> Search<'_, M> {
    fn run(&mut self) -> Result<(), E> {
        let (write, read) = self.matrix.last();
        // the disk at rest, and the ends of the straight line
        for place in [(0, 0), (0, read), (write, 0)] {
            self.cell(place)?;
        }
        let mut rays: Vec<Vec<Ray>> = vec![Vec::new(); self.goals.len()];
        for turn in (0..=RAYS).map(|ray| ray * RAYS_MAX / RAYS) {
            let mut guess = None;
            for (rays, &goal) in rays.iter_mut().zip(self.goals) {
                // as on the ray before, or for the goal before
                let before = rays.last().map(|ray| ray.border).or(guess);
                let ray = self.ray(turn, goal, before.unwrap_or(self.len() / 2))?;
                guess = Some(ray.border);
                rays.push(ray);
            }
        }
        while let Some((goal, gap)) = self.widest(&rays) {
            let (one, other) = (rays[goal][gap], rays[goal][gap + 1]);
            let guess = (one.border + other.border).div_ceil(2);
            let ray = self.ray(one.turn.midpoint(other.turn), self.goals[goal], guess)?;
            rays[goal].insert(gap + 1, ray);
        }
        Ok(())
    }

    /// The goal, and the place of the first of two of its rays, between which the most area is
    /// unknown, if there is any worth measuring, and loads left to measure.
    fn widest(&self, rays: &[Vec<Ray>]) -> Option<(usize, usize)> {
        if self.known.len() as u32 >= self.most {
            return None;
        }
        let of_goal = |(goal, rays): (usize, &Vec<Ray>)| {
            // nothing is known of the size of a region that no ray has met
            let is_met = rays.iter().any(|ray| ray.border > 0);
            let pairs = rays.windows(2).filter(|_| is_met);
            let gaps = pairs.map(|pair| self.unknown(pair, rays));
            gaps.enumerate().map(|(gap, area)| ((goal, gap), area)).collect::<Vec<_>>()
        };
        let gaps = rays.iter().enumerate().flat_map(of_goal);
        let widest = gaps.max_by(|(_, one), (_, other)| one.total_cmp(other));
        widest.filter(|&(_, area)| area > KNOWN).map(|(place, _)| place)
    }

    /// What lies between the borders of a pair of `rays`, as a part of the region.
    fn unknown(&self, pair: &[Ray], rays: &[Ray]) -> f64 {
        let &[one, other] = pair else { return 0.0 };
        if other.turn - one.turn < 2 {
            return 0.0;
        }
        let square = |ray: Ray| self.border_time(ray).powi(2);
        let width = f64::from(other.turn - one.turn) / f64::from(RAYS_MAX);
        let area = rays.iter().map(|&ray| square(ray)).sum::<f64>() / rays.len() as f64;
        // even two that agree may hide something as small as a step between them
        let step = 1.0 / self.matrix.last().0.max(1) as f64;
        let least = step * step + step * square(one).min(square(other)).sqrt();
        let between = (square(one) - square(other)).abs().max(least);
        width * between / area.max(step * step)
    }

    /// The disk time, by the straight line, at which a ray breaks the goal.
    fn border_time(&self, Ray { turn, border }: Ray) -> f64 {
        let time = |index| {
            let ((write, read), last) = (self.place(turn, index), self.matrix.last());
            write as f64 / last.0.max(1) as f64 + read as f64 / last.1.max(1) as f64
        };
        (time(border) + time((border + 1).min(self.len()))) / 2.0
    }

    /// Loads of a ray, without the one at rest.
    fn len(&self) -> usize {
        let (write, read) = self.matrix.last();
        write.max(read)
    }

    /// The load of a ray after this many steps. All but the one at rest have reads.
    fn place(&self, turn: u32, index: usize) -> Place {
        let (write, read) = self.matrix.last();
        let part = |turn: u32| f64::from(turn.min(RAYS_MAX / 2)) / f64::from(RAYS_MAX / 2);
        let out = index as f64 / self.len().max(1) as f64;
        let along = |last: usize, part: f64| (last as f64 * part * out).round() as usize;
        let (write, read) = (along(write, part(turn)), along(read, part(RAYS_MAX - turn)));
        (write, if index > 0 { read.max(1) } else { read })
    }

    /// Searches how many loads of a ray keep the goal, from `guess` on in steps that double.
    fn ray(&mut self, turn: u32, goal: Goal, guess: usize) -> Result<Ray, E> {
        let (mut keeps, mut breaks) = (0, self.len() + 1);
        // of some disks reads are late while there are few, so that none at first is no guess
        let guess = if guess == 0 { self.len() / 2 } else { guess };
        let (mut next, mut step) = (guess.clamp(1, self.len().max(1)), 1);
        while breaks - keeps > 1 && (self.known.len() as u32) < self.most {
            if self.keeps(self.place(turn, next), goal)? {
                keeps = next;
                next = next.saturating_add(step);
            } else {
                breaks = next;
                next = next.saturating_sub(step);
            }
            step *= 2;
            if next <= keeps || next >= breaks {
                next = keeps.midpoint(breaks);
            }
        }
        Ok(Ray { turn, border: keeps })
    }

    fn keeps(&mut self, place: Place, goal: Goal) -> Result<bool, E> {
        let latency = self.cell(place)?.and_then(|cell| goal.percentile.of(&cell));
        Ok(latency.is_some_and(|latency| latency <= goal.latency_us))
    }

    fn cell(&mut self, place: Place) -> Result<Option<Cell>, E> {
        if let Some(cell) = self.known.get(&place) {
            return Ok(*cell);
        }
        let cell = (self.measure)(self.matrix.load(place))?;
        self.known.insert(place, cell);
        Ok(cell)
    }

    fn surface(self) -> Grid {
        let (mut cells, mut missed) = (Vec::new(), Vec::new());
        for (place, cell) in self.known {
            match cell {
                Some(cell) => cells.push(cell),
                None => missed.push(self.matrix.load(place)),
            }
        }
        Grid::new(cells, missed)
    }
}
