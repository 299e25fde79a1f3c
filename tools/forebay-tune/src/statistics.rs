//! Means, and how far they can be trusted.

/// Two-sided 95 % quantile of Student's t for nine degrees of freedom.
const T_NINE: f64 = 2.262;
/// The same quantile for 1 to 14 degrees of freedom, and about for more.
const T_QUANTILES: [f64; 14] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145,
];
const T_MANY: f64 = 2.06;
const BATCHES: usize = 10;

/// The mean; 0 of nothing.
pub(crate) fn mean(values: &[f64]) -> f64 {
    if values.is_empty() { 0.0 } else { values.iter().sum::<f64>() / values.len() as f64 }
}

/// The standard deviation of a sample; 0 of fewer than two.
pub(crate) fn deviation(values: &[f64]) -> f64 {
    if values.len() < 2 {
        return 0.0;
    }
    let mean = mean(values);
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (squares / (values.len() - 1) as f64).sqrt()
}

/// Half of the 95 % confidence interval of the mean of values that follow each other in time.
///
/// Neighbours are alike, so means of ten batches are compared instead of single values.
pub(crate) fn confidence(values: &[f64]) -> f64 {
    let per_batch = values.len() / BATCHES;
    if per_batch == 0 {
        let count = values.len().max(1) as f64;
        return T_NINE * deviation(values) / count.sqrt();
    }
    let batches: Vec<f64> = values.chunks_exact(per_batch).take(BATCHES).map(mean).collect();
    T_NINE * deviation(&batches) / (BATCHES as f64).sqrt()
}

/// Neighbouring rounds are alike too: of many, this many means of some are compared.
const BATCHES_OF_ROUNDS: usize = 8;
/// What is seen elsewhere counts as this many more rounds.
const ELSEWHERE: usize = 4;

/// How much rounds differ, each a mean of many values.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Spread {
    degrees: usize,
    /// The variance of a round, as a part of the square of the mean.
    variance: f64,
}

impl Spread {
    /// Of rounds that follow each other.
    pub(crate) fn of_rounds(rounds: &[f64]) -> Self {
        let together = rounds.len().div_ceil(BATCHES_OF_ROUNDS).max(1);
        let means: Vec<f64> = rounds.chunks_exact(together).map(mean).collect();
        let part = deviation(&means) / mean(rounds).max(f64::MIN_POSITIVE);
        Self { degrees: means.len().max(1) - 1, variance: part.powi(2) * together as f64 }
    }

    /// The same where rounds elsewhere differ like that.
    pub(crate) fn moderated(self, others: &[Self]) -> Self {
        let known = others.iter().filter(|other| other.degrees > 1);
        let variances: Vec<f64> = known.map(|other| other.variance).collect();
        if variances.is_empty() {
            return self;
        }
        let (own, elsewhere) = (self.degrees as f64, ELSEWHERE as f64);
        let variance = (own * self.variance + elsewhere * mean(&variances)) / (own + elsewhere);
        Self { degrees: self.degrees + ELSEWHERE, variance }
    }

    /// Half of the 95 % confidence interval of the mean of this many rounds, as a part of it.
    pub(crate) fn margin(self, rounds: usize) -> f64 {
        let quantile = self
            .degrees
            .checked_sub(1)
            .map_or(f64::INFINITY, |place| T_QUANTILES.get(place).copied().unwrap_or(T_MANY));
        quantile * (self.variance / rounds.max(1) as f64).sqrt()
    }
}

/// The slope of the straight line through values at 0, 1, 2 and so on.
pub(crate) fn slope(values: &[f64]) -> f64 {
    let middle = (values.len() as f64 - 1.0) / 2.0;
    let mean = mean(values);
    let (mut along, mut square) = (0.0, 0.0);
    for (place, value) in values.iter().enumerate() {
        let x = place as f64 - middle;
        along += x * (value - mean);
        square += x * x;
    }
    if square > 0.0 { along / square } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_nothing_everything_is_zero() {
        assert_eq!((mean(&[]), deviation(&[]), confidence(&[])), (0.0, 0.0, 0.0));
        assert_eq!(slope(&[]), 0.0);
    }

    #[test]
    fn of_known_values() {
        assert_eq!(slope(&[1.0, 3.0, 5.0, 7.0]), 2.0);
        assert!((deviation(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]) - 2.138).abs() < 0.001);
    }

    #[test]
    fn confidence_grows_with_spread() {
        let level = [10.0; 40];
        let rough: Vec<f64> = (0..40).map(|place| f64::from(place % 8)).collect();
        assert_eq!(confidence(&level), 0.0);
        assert!(confidence(&rough) > 0.0);
    }
}
