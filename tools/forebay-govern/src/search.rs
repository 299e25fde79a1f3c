//! The search for the setting that meets a goal and leaves the most disk time to all other classes.
//!
//! Latency grows with the rate. So for each latency bound a binary search finds the fastest rate that
//! meets the goal. Then rates between it and the next one are tried. Single measurements may mislead,
//! so the best settings are measured again until one has been measured often enough.

use std::collections::BTreeMap;

use crate::qos::{QosPoint, RATES};

/// The latency bounds in tenths of the goal, in the order of the search.
const BOUNDS: [Option<u32>; 5] = [None, Some(40), Some(20), Some(10), Some(5)];
/// The number of measurements of the chosen setting.
const CONFIRMATIONS: usize = 5;
/// After a single miss with a latency below this multiple of the goal, the setting is measured again.
const NEAR: f64 = 1.5;
/// Settings with at least this fraction of the best work count as equal to the best.
const WORSE_MAX: f64 = 0.95;

/// The result of a measurement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// The latency as a multiple of the goal.
    pub latency: f64,
    /// The disk time of all classes but the goal's, as a fraction of all disk time.
    pub work: f64,
}

/// All settings, for a search that leaves out none.
pub(crate) fn grid() -> impl Iterator<Item = QosPoint> {
    BOUNDS.into_iter().flat_map(|bound| RATES.into_iter().map(move |rate| QosPoint { rate, bound }))
}

/// A search with its measurements so far.
#[derive(Clone, Debug, Default)]
pub struct Search {
    measured: BTreeMap<QosPoint, Vec<Measured>>,
}

/// The median of the values.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

impl Search {
    /// Adds a measurement.
    pub fn add(&mut self, point: QosPoint, measured: Measured) {
        self.measured.entry(point).or_default().push(measured);
    }

    /// The setting to measure next. `None` if the best is found, or if none meets the goal.
    pub fn next(&self) -> Option<QosPoint> {
        BOUNDS.into_iter().find_map(|bound| self.next_of(bound)).or_else(|| {
            let (best, times) = self.leader()?;
            let between = self.between(best).filter(|point| !self.measured.contains_key(point));
            let better = || self.contested(work(&self.measured[&best]));
            between.or_else(better).or_else(|| (times < CONFIRMATIONS).then_some(best))
        })
    }

    /// The setting that meets the goal with the most work of other classes, and its number of
    /// measurements.
    pub fn best(&self) -> Option<(QosPoint, usize)> {
        self.leader()
    }

    /// The settings in the order in which they were measured, with their latency, work, and number of
    /// measurements.
    pub fn points(&self) -> impl Iterator<Item = (QosPoint, f64, f64, usize)> {
        self.measured.iter().map(|(point, all)| {
            let latency = median(all.iter().map(|one| one.latency).collect());
            (*point, latency, work(all), all.len())
        })
    }

    /// The next step of the binary search over the rates of one bound.
    fn next_of(&self, bound: Option<u32>) -> Option<QosPoint> {
        // It is between the fastest rate that holds and the slowest that does not.
        let (mut low, mut high) = (0, RATES.len());
        while low < high {
            // The first search begins near the usual rate, and others near the fastest rate without a bound.
            let middle = if (low, high) == (0, RATES.len()) { 5 } else { (low + high) / 2 };
            let point = QosPoint { rate: RATES[middle], bound };
            match self.measured.get(&point).map(|all| decided(all)) {
                None | Some(None) => return Some(point),
                Some(Some(true)) => low = middle + 1,
                Some(Some(false)) => high = middle,
            }
        }
        None
    }

    /// A rate between that of `point` and the next one that did not hold.
    fn between(&self, point: QosPoint) -> Option<QosPoint> {
        let above =
            self.measured.keys().filter(|one| one.bound == point.bound && one.rate > point.rate);
        let next = above.map(|one| one.rate).min()?;
        (next - point.rate > 3).then(|| QosPoint { rate: point.rate.midpoint(next), ..point })
    }

    /// A setting with more work than the best, which missed once but may hold when it is measured again.
    fn contested(&self, best: f64) -> Option<QosPoint> {
        let may_hold = |all: &[Measured]| decided(all) == Some(true) && !holds(all);
        let is_open = |all: &[Measured]| all.len() < CONFIRMATIONS && work(all) * WORSE_MAX > best;
        let open = self.measured.iter().filter(|(_, all)| may_hold(all) && is_open(all));
        open.max_by(|(_, one), (_, other)| work(one).total_cmp(&work(other)))
            .map(|(point, _)| *point)
    }

    fn leader(&self) -> Option<(QosPoint, usize)> {
        let held = || self.measured.iter().filter(|(_, all)| holds(all));
        let most = held().map(|(_, all)| work(all)).max_by(f64::total_cmp)?;
        // Of the settings with about the same work, the one with the lowest latency is chosen.
        let near = held().filter(|(_, all)| work(all) >= most * WORSE_MAX);
        let worst = |all: &[Measured]| all.iter().map(|one| one.latency).fold(0.0, f64::max);
        let least = near.min_by(|(_, one), (_, other)| worst(one).total_cmp(&worst(other)));
        least.map(|(point, all)| (*point, all.len()))
    }
}

/// Whether a setting meets the goal according to its measurements. `None` if that is not clear yet.
fn decided(all: &[Measured]) -> Option<bool> {
    let missed = all.iter().filter(|one| one.latency > 1.0).count();
    match (all.len(), missed) {
        (_, 0) => Some(true),
        (1, _) if all[0].latency < NEAR => None,
        (2, 1) => None,
        (times, missed) => Some(2 * missed < times),
    }
}

/// Whether a setting may be chosen. One miss in five is tolerated.
fn holds(all: &[Measured]) -> bool {
    let missed = all.iter().filter(|one| one.latency > 1.0).count();
    4 * missed < all.len()
}

fn work(all: &[Measured]) -> f64 {
    median(all.iter().map(|one| one.work).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A disk whose latency depends on its utilization.
    #[derive(Clone, Copy, Debug)]
    struct Surface {
        /// The latency of reads without other load, as a multiple of the goal.
        alone: f64,
        /// The rate in percent above which a queue grows.
        cliff: f64,
        /// The fraction of the rate that a bound of one goal takes away.
        slowed: f64,
        noise: f64,
    }

    /// Pseudo-random numbers from 0 to 1.
    struct Random(u64);

    impl Random {
        fn next(&mut self) -> f64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (self.0 >> 40) as f64 / (1u64 << 24) as f64
        }
    }

    impl Surface {
        fn truth(&self, QosPoint { rate, bound }: QosPoint) -> Measured {
            // A bound lowers the rate where the latency reaches it.
            let allowed = bound.map_or(f64::INFINITY, |tenths| {
                self.cliff * (1.0 - self.slowed * 10.0 / f64::from(tenths)).max(0.2)
            });
            let used = f64::from(rate).min(allowed) / self.cliff;
            let latency = if used < 0.99 { self.alone / (1.0 - used) } else { 100.0 * used };
            Measured { latency, work: (used.min(1.0) * 0.9 - 0.05).max(0.01) }
        }

        fn measure(&self, point: QosPoint, random: &mut Random) -> Measured {
            let Measured { latency, work } = self.truth(point);
            let spread =
                |random: &mut Random, noise: f64| 1.0 + noise * (2.0 * random.next() - 1.0);
            // One measurement in twenty is disturbed by a busy machine.
            let spoiled = if self.noise > 0.0 && random.next() < 0.05 { 4.0 } else { 1.0 };
            Measured {
                latency: latency * spread(random, self.noise) * spoiled,
                work: work * spread(random, self.noise / 5.0),
            }
        }
    }

    fn surfaces() -> impl Iterator<Item = Surface> {
        let of = |alone| {
            [60.0, 85.0, 97.0, 130.0].into_iter().flat_map(move |cliff| {
                [0.0, 0.15, 0.4].map(|slowed| Surface { alone, cliff, slowed, noise: 0.0 })
            })
        };
        [0.5, 0.25, 0.1].into_iter().flat_map(of)
    }

    fn search(surface: &Surface, seed: u64) -> (Search, usize) {
        let (mut search, mut random) = (Search::default(), Random(seed));
        for times in 0..100 {
            let Some(point) = search.next() else { return (search, times) };
            search.add(point, surface.measure(point, &mut random));
        }
        panic!("no end: {surface:?}");
    }

    /// The most work of a setting on the grid that meets the goal.
    fn most(surface: &Surface) -> f64 {
        let held = grid().map(|point| surface.truth(point)).filter(|one| one.latency <= 1.0);
        held.map(|one| one.work).fold(0.0, f64::max)
    }

    #[test]
    fn without_noise_the_search_finds_as_much_work_as_the_grid() {
        for surface in surfaces() {
            let (search, times) = search(&surface, 1);
            let (point, _) = search.best().unwrap();
            let found = surface.truth(point);
            assert!(found.latency <= 1.0, "{surface:?}: {point} {found:?}");
            assert!(found.work >= 0.9 * most(&surface), "{surface:?}: {point} {found:?}");
            assert!(times <= 40, "{times}");
        }
    }

    #[test]
    fn with_noise_few_choices_are_worse() {
        let (mut bad, mut all, mut most_times) = (0, 0, 0);
        for surface in surfaces().map(|surface| Surface { noise: 0.15, ..surface }) {
            for seed in 0..50 {
                let (search, times) = search(&surface, seed);
                most_times = most_times.max(times);
                let found = search.best().map(|(point, _)| surface.truth(point));
                // Noise can hide a latency of up to a tenth above the goal.
                let is_good =
                    |found: Measured| found.latency <= 1.1 && found.work >= 0.9 * most(&surface);
                bad += u32::from(!found.is_some_and(is_good));
                all += 1;
            }
        }
        assert!(bad * 33 <= all, "{bad} of {all}");
        // More than there is time for: then the best so far is reported.
        assert!(most_times <= 90, "{most_times}");
    }

    #[test]
    fn a_search_ends_if_no_setting_meets_the_goal() {
        let surface = Surface { alone: 3.0, cliff: 90.0, slowed: 0.2, noise: 0.0 };
        let (search, times) = search(&surface, 1);
        assert_eq!(search.best(), None);
        assert!(times <= 20, "{times}");
    }

    #[test]
    fn a_single_misleading_measurement_does_not_decide() {
        let of = |latencies: &[f64]| -> Vec<Measured> {
            latencies.iter().map(|&latency| Measured { latency, work: 0.5 }).collect()
        };
        for (latencies, expected) in [
            (&[0.9][..], Some(true)),
            (&[1.2], None),
            (&[9.0], Some(false)),
            (&[1.2, 0.8], None),
            (&[1.2, 0.8, 0.8], Some(true)),
            (&[1.2, 0.8, 1.1], Some(false)),
        ] {
            assert_eq!(decided(&of(latencies)), expected, "{latencies:?}");
        }
        assert!(holds(&of(&[0.9, 0.8, 1.1, 0.9, 0.9])));
        assert!(!holds(&of(&[0.9, 1.1, 1.1, 0.9, 0.9])) && !holds(&of(&[1.1, 0.9])));
    }
}
