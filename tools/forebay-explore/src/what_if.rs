//! What classes get of a disk whose region is known.

use crate::loads::Figures;
use crate::region::Shape;

/// Totals that are tried, from none to the most that any region allows.
const STEPS: u32 = 4000;
const TIME_MAX: f64 = 2.0;

/// What a class wants.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Demand {
    /// Its shares.
    pub shares: u32,
    /// Whether it writes; it reads otherwise.
    pub writes: bool,
    /// Bytes written or reads per second; all that it can get where that is not given.
    pub rate: Option<f64>,
}

/// What a class gets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Grant {
    /// Bytes written or reads per second.
    pub rate: f64,
    /// Whether that is less than it wants: then requests of it wait without bound.
    pub is_less: bool,
}

/// What classes get, and of how much.
#[derive(Clone, Debug, PartialEq)]
pub struct Prediction {
    /// For each demand.
    pub grants: Vec<Grant>,
    /// The part of writes in the disk time that is used.
    pub write_part: f64,
    /// That disk time, in seconds per second, as the straight line counts it.
    pub time: f64,
    /// How much of it the region allows at this part of writes.
    pub radius: f64,
}

/// What each of `demands` gets inside the region: by shares of the disk time, as the straight line
/// counts it, and none more than it wants. The most that the region allows at the mix that comes
/// of it.
pub fn predict(shape: &Shape, figures: Figures, demands: &[Demand]) -> Prediction {
    let at = |time: f64| {
        let times = divided(time, figures, demands);
        let sum = |of: &dyn Fn(&Demand) -> bool| -> f64 {
            demands.iter().zip(&times).filter(|(demand, _)| of(demand)).map(|(_, time)| time).sum()
        };
        let (writes, all) = (sum(&|demand| demand.writes), sum(&|_| true));
        // a sum of nothing is -0
        let write_part = if all > 0.0 { (writes / all).abs() } else { 0.0 };
        (times, all, write_part)
    };
    // the mix changes with what there is to divide, so that the border is met more than once
    let totals = (1..=STEPS).map(|step| TIME_MAX * f64::from(step) / f64::from(STEPS));
    let inside = |total: &f64| {
        let (_, all, write_part) = at(*total);
        all <= shape.radius(write_part)
    };
    let total = totals.take_while(inside).last().unwrap_or(0.0);
    let (times, time, write_part) = at(total);
    let grants = demands.iter().zip(times).map(|(demand, time)| {
        let rate = time * most(figures, demand);
        // what the steps leave open
        let is_less = demand.rate.is_none_or(|wanted| rate < wanted * (1.0 - 1e-9));
        Grant { rate, is_less }
    });
    let radius = shape.radius(write_part);
    Prediction { grants: grants.collect(), write_part, time, radius }
}

/// What the disk does alone in the direction of a demand.
fn most(figures: Figures, demand: &Demand) -> f64 {
    if demand.writes { figures.write_bandwidth } else { figures.read_iops }
}

/// Divides disk time by shares; what one does not want goes to the others.
fn divided(total: f64, figures: Figures, demands: &[Demand]) -> Vec<f64> {
    let wanted = |demand: &Demand| {
        demand.rate.map_or(f64::INFINITY, |rate| rate / most(figures, demand).max(1.0))
    };
    let mut times: Vec<Option<f64>> = vec![None; demands.len()];
    let mut left = total;
    // each round settles one at least
    for _ in 0..=demands.len() {
        let open = || demands.iter().zip(&times).filter(|(_, time)| time.is_none());
        let shares: f64 = open().map(|(demand, _)| f64::from(demand.shares)).sum();
        let of = |demand: &Demand| left * f64::from(demand.shares) / shares.max(1.0);
        let settled: Vec<bool> = demands
            .iter()
            .zip(&times)
            .map(|(demand, time)| time.is_none() && wanted(demand) <= of(demand))
            .collect();
        if !settled.contains(&true) {
            let rest: Vec<f64> = demands.iter().map(of).collect();
            return times.iter().zip(rest).map(|(time, rest)| time.unwrap_or(rest)).collect();
        }
        for ((time, demand), _) in
            times.iter_mut().zip(demands).zip(settled).filter(|(_, settled)| *settled)
        {
            *time = Some(wanted(demand));
            left -= wanted(demand);
        }
    }
    times.into_iter().map(Option::unwrap_or_default).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIGURES: Figures = Figures { write_bandwidth: 1e9, read_iops: 100_000.0 };

    fn demand(shares: u32, writes: bool, rate: Option<f64>) -> Demand {
        Demand { shares, writes, rate }
    }

    #[test]
    fn two_that_want_all_share_what_the_region_allows_at_their_mix() {
        // at a mix of halves half of the straight line
        let sagging = Shape::Radii(vec![1.0, 0.5, 1.0]);
        let all = [demand(100, false, None), demand(100, true, None)];
        let Prediction { grants, write_part, time, radius } = predict(&sagging, FIGURES, &all);
        assert_eq!((write_part, radius), (0.5, 0.5));
        assert!((time - 0.5).abs() < 1e-3, "{time}");
        assert!((grants[0].rate - 25_000.0).abs() < 50.0, "{grants:?}");
        assert!((grants[1].rate - 0.25e9).abs() < 0.5e6, "{grants:?}");
        assert!(grants.iter().all(|grant| grant.is_less));
    }

    #[test]
    fn a_process_that_wants_less_than_its_part_leaves_the_rest() {
        let all = [demand(1, false, Some(10_000.0)), demand(1, true, None), demand(3, true, None)];
        let Prediction { grants, time, .. } = predict(&Shape::LINE, FIGURES, &all);
        assert!((time - 1.0).abs() < 1e-3, "{time}");
        assert_eq!(grants[0], Grant { rate: 10_000.0, is_less: false });
        assert!((grants[2].rate / grants[1].rate - 3.0).abs() < 1e-6, "{grants:?}");
        assert!((grants[1].rate - 0.225e9).abs() < 1e6, "{grants:?}");
    }

    #[test]
    fn a_light_load_gets_all_it_wants() {
        let all = [demand(1, false, Some(1000.0)), demand(1, true, Some(1e6))];
        let Prediction { grants, time, radius, .. } = predict(&Shape::LINE, FIGURES, &all);
        assert!(grants.iter().all(|grant| !grant.is_less) && time < 0.02 && radius >= 0.99);
        assert_eq!(predict(&Shape::LINE, FIGURES, &[]).time, 0.0);
    }
}
