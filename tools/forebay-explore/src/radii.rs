//! The best region given by radii over the part of writes.

use crate::loads::{Load, Site};

/// The largest radius: both directions in full.
const RADIUS_MAX: f64 = 2.0;
/// Radii that are tried for each part of writes.
const LEVELS: usize = 101;
/// What each step up or down between neighbours costs: of borders that are as good, the plain one.
const ROUGHNESS: f64 = 0.02;
/// How much a load counts that must not be allowed.
const NEVER: f64 = 1e6;
/// How often the cost of an allowed site is corrected by how many are allowed.
const ROUNDS: usize = 8;

/// What it costs to allow a site and to forbid it.
#[derive(Clone, Copy)]
struct Prices {
    allow: f64,
    allow_broken: f64,
    forbid_safe: f64,
}

/// The best radii at `steps` equal steps of the part of writes: the least sum of the unsafe and
/// rejected parts, found exactly among the levels by dynamic programming. None of `never` is
/// allowed.
pub(crate) fn fit(sites: &[Site], never: &[Load], steps: usize) -> Vec<f64> {
    let never = never.iter().map(|load| (load.time(), load.write_part(), NEVER));
    let sites_placed = sites.iter().map(|site| (site.time(), site.write_part(), site.broken));
    let sectors = sectors(sites_placed.chain(never), steps);
    let safe: f64 = sites.iter().map(|site| 1.0 - site.broken).sum::<f64>().max(1e-9);
    let mut best = (f64::INFINITY, vec![0.0; steps + 1]);
    // as if all that is safe were allowed, and little else
    let (mut allowed, mut broken) = (safe, 0.2 * safe);
    for _ in 0..ROUNDS {
        let prices = Prices {
            allow: -broken / (allowed * allowed),
            allow_broken: 1.0 / allowed,
            forbid_safe: 1.0 / safe,
        };
        let radii = shortest(&sectors, prices);
        (allowed, broken) = taken(&sectors, &radii);
        let loss = broken / allowed.max(1e-9) + 1.0 - (allowed - broken) / safe + rough(&radii);
        if loss < best.0 {
            best = (loss, radii);
        }
        if allowed <= 0.0 {
            break;
        }
    }
    best.1
}

/// A site between two parts of writes: its radius, and how far on it is, 0 to 1.
struct Placed {
    radius: f64,
    on: f64,
    broken: f64,
}

/// Loads, as disk time, part of writes and how much they are broken, by the step of the part of
/// writes that they lie in.
fn sectors(loads: impl Iterator<Item = (f64, f64, f64)>, steps: usize) -> Vec<Vec<Placed>> {
    let mut sectors: Vec<Vec<Placed>> = (0..steps).map(|_| Vec::new()).collect();
    for (radius, write_part, broken) in loads {
        let place = write_part * steps as f64;
        let step = (place as usize).min(steps - 1);
        sectors[step].push(Placed { radius, on: place - step as f64, broken });
    }
    sectors
}

fn level(index: usize) -> f64 {
    RADIUS_MAX * index as f64 / (LEVELS - 1) as f64
}

fn rough(radii: &[f64]) -> f64 {
    radii.windows(2).map(|pair| (pair[1] - pair[0]).abs()).sum::<f64>() * ROUGHNESS
}

/// How many sites these radii allow, and how many of them break the goal.
fn taken(sectors: &[Vec<Placed>], radii: &[f64]) -> (f64, f64) {
    let mut sums = (0.0, 0.0);
    for (sector, ends) in sectors.iter().zip(radii.windows(2)) {
        for placed in sector {
            if placed.radius <= ends[0] + (ends[1] - ends[0]) * placed.on {
                sums = (sums.0 + 1.0, sums.1 + placed.broken);
            }
        }
    }
    sums
}

/// The radii with the least sum of prices: the shortest way through the levels of all steps.
fn shortest(sectors: &[Vec<Placed>], prices: Prices) -> Vec<f64> {
    let mut costs = vec![0.0; LEVELS];
    let mut came_from: Vec<Vec<usize>> = Vec::with_capacity(sectors.len());
    for sector in sectors {
        let mut next = vec![f64::INFINITY; LEVELS];
        let mut from = vec![0; LEVELS];
        for (low, cost) in costs.iter().enumerate() {
            for (high, step) in step_costs(sector, level(low), prices).into_iter().enumerate() {
                let climb = (level(high) - level(low)).abs() * ROUGHNESS;
                let cost = cost + step + climb;
                if cost < next[high] {
                    (next[high], from[high]) = (cost, low);
                }
            }
        }
        costs = next;
        came_from.push(from);
    }
    let least = (0..LEVELS).min_by(|&a, &b| costs[a].total_cmp(&costs[b]));
    let mut index = least.unwrap_or_default();
    let mut radii = vec![level(index)];
    for from in came_from.iter().rev() {
        index = from[index];
        radii.push(level(index));
    }
    radii.reverse();
    radii
}

/// The cost of a sector that begins with the radius `low`, for each level at its end.
fn step_costs(sector: &[Placed], low: f64, prices: Prices) -> Vec<f64> {
    let mut changes = vec![0.0; LEVELS + 1];
    for &Placed { radius, on, broken } in sector {
        let forbidden = (1.0 - broken) * prices.forbid_safe;
        let allowed = prices.allow + broken * prices.allow_broken;
        // allowed from the first level at which the border reaches it
        let reach = if on > 0.0 { (radius - (1.0 - on) * low) / on } else { f64::INFINITY };
        let first = match reach {
            _ if on <= 0.0 && radius <= low => 0,
            reach if reach <= 0.0 => 0,
            reach => {
                (reach / RADIUS_MAX * (LEVELS - 1) as f64 - 1e-9).ceil().min(LEVELS as f64) as usize
            }
        };
        changes[0] += forbidden;
        changes[first.min(LEVELS)] += allowed - forbidden;
    }
    let mut sum = 0.0;
    changes.truncate(LEVELS);
    changes
        .iter()
        .map(|change| {
            sum += change;
            sum
        })
        .collect()
}
