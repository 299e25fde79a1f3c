//! Which setting keeps a goal and leaves the most disk time to all others: what to measure next.
//!
//! With each latency bound the fastest rate that holds is found by halving, since latency grows with
//! the rate. Then there are rates between that one and the next. The best are measured again until one
//! has been measured often enough, for single measurements deceive.

use std::collections::BTreeMap;

use crate::qos::{QosPoint, RATES};

/// Bounds in tenths of the goal, in the order in which they are looked at.
const BOUNDS: [Option<u32>; 5] = [None, Some(40), Some(20), Some(10), Some(5)];
/// So often is the one measured that is chosen.
const CONFIRMATIONS: usize = 5;
/// A single miss by less than this is measured again, as a factor of the goal.
const NEAR: f64 = 1.5;
/// So much more work than the best must be possible for a point to be measured again.
const WORSE_MAX: f64 = 0.95;

/// What came of a measurement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// The latency as a part of the goal.
    pub latency: f64,
    /// The disk time of all but the class of the goal, as a part of all disk time.
    pub work: f64,
}

/// Every grid point, for a search that leaves out none.
pub(crate) fn grid() -> impl Iterator<Item = QosPoint> {
    BOUNDS.into_iter().flat_map(|bound| RATES.into_iter().map(move |rate| QosPoint { rate, bound }))
}

/// A search, by what was measured so far.
#[derive(Clone, Debug, Default)]
pub struct Search {
    measured: BTreeMap<QosPoint, Vec<Measured>>,
}

/// The middle one of what was measured.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

impl Search {
    /// Adds a measurement.
    pub fn add(&mut self, point: QosPoint, measured: Measured) {
        self.measured.entry(point).or_default().push(measured);
    }

    /// What to measure next; `None` where the best is found, or none keeps the goal.
    pub fn next(&self) -> Option<QosPoint> {
        BOUNDS.into_iter().find_map(|bound| self.next_of(bound)).or_else(|| {
            let (best, times) = self.leader()?;
            let between = self.between(best).filter(|point| !self.measured.contains_key(point));
            let better = || self.contested(work(&self.measured[&best]));
            between.or_else(better).or_else(|| (times < CONFIRMATIONS).then_some(best))
        })
    }

    /// The setting that keeps the goal with the most work for others, and how often it was measured.
    pub fn best(&self) -> Option<(QosPoint, usize)> {
        self.leader()
    }

    /// What was measured, in order: the latency and the work of each.
    pub fn points(&self) -> impl Iterator<Item = (QosPoint, f64, f64, usize)> {
        self.measured.iter().map(|(point, all)| {
            let latency = median(all.iter().map(|one| one.latency).collect());
            (*point, latency, work(all), all.len())
        })
    }

    /// The next step of halving the rates of one bound.
    fn next_of(&self, bound: Option<u32>) -> Option<QosPoint> {
        // between the fastest that holds and the slowest that does not
        let (mut low, mut high) = (0, RATES.len());
        while low < high {
            // the first of all near the usual rate; of others near the fastest without a bound
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

    /// A rate above `point`, on the way to the next one that did not hold.
    fn between(&self, point: QosPoint) -> Option<QosPoint> {
        let above =
            self.measured.keys().filter(|one| one.bound == point.bound && one.rate > point.rate);
        let next = above.map(|one| one.rate).min()?;
        (next - point.rate > 3).then(|| QosPoint { rate: point.rate.midpoint(next), ..point })
    }

    /// A point with more work than the best that has missed once, and may hold when measured again.
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
        // of those that give others about as much, the one that keeps the goal with most room to spare
        let near = held().filter(|(_, all)| work(all) >= most * WORSE_MAX);
        let worst = |all: &[Measured]| all.iter().map(|one| one.latency).fold(0.0, f64::max);
        let least = near.min_by(|(_, one), (_, other)| worst(one).total_cmp(&worst(other)));
        least.map(|(point, all)| (*point, all.len()))
    }
}

/// Whether measurements of one point keep the goal; `None` where that is not clear yet.
fn decided(all: &[Measured]) -> Option<bool> {
    let missed = all.iter().filter(|one| one.latency > 1.0).count();
    match (all.len(), missed) {
        (_, 0) => Some(true),
        (1, _) if all[0].latency < NEAR => None,
        (2, 1) => None,
        (times, missed) => Some(2 * missed < times),
    }
}

/// Whether a point may be chosen: one miss in five is forgiven.
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

    /// A disk whose latency depends on how much of it is used.
    #[derive(Clone, Copy, Debug)]
    struct Surface {
        /// What reads take alone, as a part of the goal.
        alone: f64,
        /// The rate in percent beyond which a queue grows.
        cliff: f64,
        /// How much of the rate a bound of one goal takes away.
        slowed: f64,
        noise: f64,
    }

    /// Numbers that look random, from 0 to 1.
    struct Random(u64);

    impl Random {
        fn next(&mut self) -> f64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (self.0 >> 40) as f64 / (1u64 << 24) as f64
        }
    }

    impl Surface {
        fn truth(&self, QosPoint { rate, bound }: QosPoint) -> Measured {
            // a bound takes rate away where the latency reaches it
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
            // a busy machine spoils one in twenty
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

    /// The most work with which the goal is kept on the grid.
    fn most(surface: &Surface) -> f64 {
        let held = grid().map(|point| surface.truth(point)).filter(|one| one.latency <= 1.0);
        held.map(|one| one.work).fold(0.0, f64::max)
    }

    #[test]
    fn without_noise_the_goal_is_kept_with_as_much_work_as_on_the_grid() {
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
                // a tenth above the goal is what noise hides
                let is_good =
                    |found: Measured| found.latency <= 1.1 && found.work >= 0.9 * most(&surface);
                bad += u32::from(!found.is_some_and(is_good));
                all += 1;
            }
        }
        assert!(bad * 33 <= all, "{bad} of {all}");
        // more than have time: the best so far is said then
        assert!(most_times <= 90, "{most_times}");
    }

    #[test]
    fn a_goal_that_nothing_keeps_is_given_up() {
        let surface = Surface { alone: 3.0, cliff: 90.0, slowed: 0.2, noise: 0.0 };
        let (search, times) = search(&surface, 1);
        assert_eq!(search.best(), None);
        assert!(times <= 20, "{times}");
    }

    #[test]
    fn measurements_that_deceive_once_are_seen_through() {
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
