//! A change, by all moments of two runs that tell of it.
//!
//! A phase knows how its rate changes within it, and nothing of what changes from one moment to
//! another: neighbours of the disk, its housekeeping, the temperature. That is seen in how the
//! changes at several moments differ, and makes their mean as unsure as it is: a random-effects
//! mean, with the variance between moments by DerSimonian and Laird (1986). A figure has few
//! moments, too few to know that variance; so it is joined with what is seen of all figures, as
//! Smyth (2004) does for genes. What both runs do alike, such as a burst at first, is in no change.

use forebay_load::significance::{chance, quantile};

use super::pairs::Pair;

/// From this many moments on they say something of how they differ.
const MOMENTS_MIN: usize = 3;
/// What is seen of all figures counts as this many more moments.
const ELSEWHERE: u32 = 8;
/// No two moments of a disk are more alike than that, as a part of its rate.
const NOISE_MIN: f64 = 0.005;
/// A change that may be wrong by ten times is not known at all.
const MARGIN_MAX: f64 = 10.0;

/// By how much a rate has changed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Estimate {
    /// The rate in the older run: the weighted geometric mean of its phases.
    pub(super) old: f64,
    /// The same in the newer run.
    pub(super) new: f64,
    /// The standard error of the logarithm of their ratio.
    error: f64,
    degrees: u32,
}

/// The variance between moments that is seen in those of several figures: not the largest, for a
/// figure that has changed in part of a run says nothing of noise, but the largest alongside it.
pub(super) fn noise(figures: &[Vec<Pair>]) -> f64 {
    let judged = figures.iter().filter(|pairs| pairs.len() >= MOMENTS_MIN);
    let mut variances: Vec<f64> = judged.map(|pairs| between(pairs)).collect();
    variances.sort_by(f64::total_cmp);
    let second = variances.len().saturating_sub(2);
    variances.get(second).copied().unwrap_or(0.0) + NOISE_MIN * NOISE_MIN
}

/// How much a figure differs from moment to moment, as a part of it; nothing is known of few.
pub(super) fn deviation(pairs: &[Pair]) -> f64 {
    if pairs.len() < MOMENTS_MIN { 0.0 } else { between(pairs).sqrt() }
}

impl Estimate {
    /// The change by `pairs`, where those of all figures have such a variance from moment to
    /// moment. None without any.
    pub(super) fn of(pairs: &[Pair], noise: f64) -> Option<Self> {
        let own = match pairs.len() {
            few if few < MOMENTS_MIN => 0,
            many => many as u32 - 1,
        };
        let [weight, elsewhere] = [own, ELSEWHERE].map(f64::from);
        let variance = if own == 0 { noise } else { between(pairs) };
        let variance = (weight * variance + elsewhere * noise) / (weight + elsewhere);
        let weights = weights(pairs, variance);
        let sum: f64 = weights.iter().sum();
        let weighted = |of: fn(&Pair) -> f64| {
            pairs.iter().zip(&weights).map(|(pair, weight)| weight * of(pair)).sum::<f64>() / sum
        };
        (sum > 0.0).then(|| Self {
            old: weighted(|pair| pair.old).exp(),
            new: weighted(|pair| pair.new).exp(),
            error: sum.recip().sqrt(),
            degrees: own + ELSEWHERE,
        })
    }

    /// By which part of the old rate it rose.
    pub(super) fn change(&self) -> f64 {
        self.new / self.old - 1.0
    }

    /// How likely so large a change is by chance, from 0 to 1.
    pub(super) fn chance(&self) -> f64 {
        chance((self.new / self.old).ln() / self.error.max(f64::MIN_POSITIVE), self.degrees)
    }

    /// How far the change may be wrong, as a part of the old rate, but for a chance of so much.
    pub(super) fn margin(&self, chance: f64) -> f64 {
        let apart = (quantile(chance, self.degrees) * self.error).exp_m1();
        (apart * self.new / self.old).min(MARGIN_MAX)
    }
}

fn weights(pairs: &[Pair], between: f64) -> Vec<f64> {
    pairs.iter().map(|pair| (pair.variance + between).max(f64::MIN_POSITIVE).recip()).collect()
}

/// The variance between moments that is more than what is seen within their phases.
fn between(pairs: &[Pair]) -> f64 {
    let weights = weights(pairs, 0.0);
    let sum: f64 = weights.iter().sum();
    let weighted = |of: &dyn Fn(&Pair) -> f64| {
        pairs.iter().zip(&weights).map(|(pair, weight)| weight * of(pair)).sum::<f64>()
    };
    let mean = weighted(&Pair::change) / sum;
    let squares = weighted(&|pair| (pair.change() - mean).powi(2));
    let own = (pairs.len().max(1) - 1) as f64;
    let scale = sum - weights.iter().map(|weight| weight * weight).sum::<f64>() / sum;
    ((squares - own) / scale.max(f64::MIN_POSITIVE)).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(ratio: f64, error: f64) -> Pair {
        let old = 1000_f64.ln();
        Pair { old, new: old + ratio.ln(), variance: error * error, phases: 1 }
    }

    #[test]
    fn moments_that_agree_are_surer_together() {
        let many = [pair(0.90, 0.02); 8];
        let estimate = Estimate::of(&many, 0.0).unwrap();
        assert!((estimate.change() + 0.1).abs() < 1e-9, "{estimate:?}");
        assert!((estimate.error - 0.02 / 8_f64.sqrt()).abs() < 1e-9, "{estimate:?}");
        assert!(estimate.chance() < 1e-4 && estimate.margin(0.05) < 0.02);
        assert_eq!(Estimate::of(&[], 0.0), None);
    }

    #[test]
    fn moments_that_disagree_by_more_than_they_know_are_less_sure() {
        let apart = [0.98, 0.82, 0.99, 0.83, 0.9].map(|ratio| pair(ratio, 0.001)).to_vec();
        let noise = noise(&[apart.clone(), apart.clone()]);
        let estimate = Estimate::of(&apart, noise).unwrap();
        assert!(estimate.error > 0.03 && estimate.chance() > 0.01, "{estimate:?}");
    }

    #[test]
    fn a_single_moment_is_as_unsure_as_those_of_other_figures_are() {
        let others = [1.1, 0.9, 1.08, 0.92, 1.0].map(|ratio| pair(ratio, 0.001)).to_vec();
        let noise = noise(&[others.clone(), others.clone(), others]);
        let one = [pair(0.9, 0.001)];
        assert!(Estimate::of(&one, noise).unwrap().chance() > 0.1, "{noise}");
        assert!(Estimate::of(&one, 0.0).unwrap().chance() < 1e-6);
    }

    #[test]
    fn a_figure_that_changed_in_part_of_a_run_is_no_noise_of_the_others() {
        let level = [1.001, 0.999, 1.0].map(|ratio| pair(ratio, 0.001)).to_vec();
        let part = [1.0, 0.9, 0.9].map(|ratio| pair(ratio, 0.001)).to_vec();
        assert!(noise(&[level.clone(), level.clone(), level, part]) < 1e-4);
    }
}
