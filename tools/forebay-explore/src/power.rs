//! The best region of the form (w / a)^p + (r / b)^p at most 1.

use crate::loads::Site;
use crate::region::Power;

/// From nearly a corner in the origin to nearly a square.
const EXPONENTS: (f64, f64) = (0.2, 20.0);
/// Where the border may meet the axis of writes.
const WRITES: (f64, f64) = (0.02, 3.0);
/// Of the axis of reads: what does not bound them.
const READ_MAX: f64 = 3.0;
/// Values of the exponent and of the border on the axis of writes that are tried, at each round,
const STEPS: usize = 24;
/// and how much closer together at each next round.
const CLOSER: f64 = 6.0;
const ROUNDS: usize = 3;

/// The best for these sites, found on a grid that becomes finer.
pub(crate) fn fit(sites: &[Site]) -> Power {
    let mut best = (f64::INFINITY, Power { write: 1.0, read: 1.0, exponent: 1.0 });
    let (mut exponents, mut writes) = (EXPONENTS, WRITES);
    for _ in 0..ROUNDS {
        for exponent in spaced(exponents) {
            for write in spaced(writes) {
                let (loss, read) = best_read(sites, write, exponent);
                if loss < best.0 {
                    best = (loss, Power { write, read, exponent });
                }
            }
        }
        exponents = around(best.1.exponent, exponents, EXPONENTS);
        writes = around(best.1.write, writes, WRITES);
    }
    best.1
}

/// Values with equal ratios.
fn spaced((least, most): (f64, f64)) -> impl Iterator<Item = f64> + Clone {
    let step = libm::log(most / least) / (STEPS - 1) as f64;
    (0..STEPS).map(move |index| least * libm::exp(step * index as f64))
}

/// A smaller range around `value`, inside `outer`.
fn around(value: f64, range: (f64, f64), outer: (f64, f64)) -> (f64, f64) {
    let half = libm::pow(range.1 / range.0, 0.5 / CLOSER);
    ((value / half).max(outer.0), (value * half).min(outer.1))
}

/// The least sum of the unsafe and rejected parts for any border on the axis of reads, and where
/// that is: with the rest given, each site is allowed from a border of its own on.
fn best_read(sites: &[Site], write: f64, exponent: f64) -> (f64, f64) {
    let mut from: Vec<(f64, f64)> = Vec::with_capacity(sites.len());
    let safe: f64 = sites.iter().map(|site| 1.0 - site.broken).sum();
    for site in sites {
        let left = 1.0 - libm::pow(site.write / write, exponent);
        if left > 0.0 {
            let border = site.read / libm::pow(left, 1.0 / exponent);
            if border < READ_MAX {
                from.push((border, site.broken));
            }
        }
    }
    from.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (mut allowed, mut broken) = (0.0, 0.0);
    let mut best = (1.0, f64::MIN_POSITIVE);
    for (index, &(border, site)) in from.iter().enumerate() {
        allowed += 1.0;
        broken += site;
        let loss = broken / allowed + 1.0 - (allowed - broken) / safe.max(f64::MIN_POSITIVE);
        if loss < best.0 {
            let next = from.get(index + 1).map_or(border, |next| next.0);
            best = (loss, (border + next) / 2.0);
        }
    }
    best
}
