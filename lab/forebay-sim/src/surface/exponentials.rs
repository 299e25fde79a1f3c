//! Sums of exponential waits.

const TERMS_MAX: usize = 6;
/// Percentiles do not see what happens to fewer requests than this part.
const PROBABILITY_MIN: f64 = 1e-4;
/// Poles closer than this, relatively, are pushed apart.
const POLES_APART: f64 = 1e-3;

/// The distribution of a sum of waits whose Laplace transform is a product of
/// factors (s + zero) / (s + pole).
#[derive(Clone, Copy, Debug)]
pub(super) struct Exponentials {
    factor: f64,
    zeros: [f64; TERMS_MAX],
    zeros_used: usize,
    poles: [f64; TERMS_MAX],
    poles_used: usize,
}

impl Exponentials {
    const NONE: Self = Self {
        factor: 1.0,
        zeros: [0.0; TERMS_MAX],
        zeros_used: 0,
        poles: [0.0; TERMS_MAX],
        poles_used: 0,
    };

    /// An exponential wait, or none if the mean is 0.
    pub(super) fn of(mean: f64) -> Self {
        if mean > 0.0 {
            Self::NONE.with_factor(1.0 / mean).with_pole(1.0 / mean)
        } else {
            Self::NONE
        }
    }

    /// With this probability an exponential wait of this mean, otherwise none.
    pub(super) fn perhaps(probability: f64, mean: f64) -> Self {
        if mean <= 0.0 || probability < PROBABILITY_MIN {
            return Self::NONE;
        }
        let none = (1.0 - probability).max(PROBABILITY_MIN);
        Self::NONE.with_factor(none).with_zero(1.0 / (mean * none)).with_pole(1.0 / mean)
    }

    /// The wait for a server that serves two streams in the order of arrival;
    /// each is given by its rate and the mean of its service. Together they must
    /// not be too much for it.
    pub(super) fn of_server([first, second]: [(f64, f64); 2]) -> Self {
        let idle = 1.0 - first.0 * first.1 - second.0 * second.1;
        let rate = |(_, mean): (f64, f64)| 1.0 / mean.max(1e-3);
        let (served_first, served_second) = (rate(first), rate(second));
        // by Pollaczek and Khinchine the poles solve s^2 + 2 half s + product = 0
        let half = (served_first + served_second - first.0 - second.0) / 2.0;
        let product = served_first * served_second * idle;
        let root = (half * half - product).max(0.0).sqrt();
        let wait = Self::NONE.with_factor(idle).with_zero(served_first).with_zero(served_second);
        wait.with_pole(product / (half + root)).with_pole(half + root)
    }

    /// One wait after the other.
    pub(super) fn then(mut self, other: &Self) -> Self {
        self = self.with_factor(other.factor);
        for &zero in &other.zeros[..other.zeros_used] {
            self = self.with_zero(zero);
        }
        for &pole in other.poles() {
            self = self.with_pole(pole);
        }
        self
    }

    /// The distribution as a mixture, in partial fractions.
    pub(super) fn mixture(&self) -> Mixture {
        let mut mixture = Mixture { weights: [0.0; TERMS_MAX], rates: self.poles };
        for (index, &pole) in self.poles().iter().enumerate() {
            let zeros = &self.zeros[..self.zeros_used];
            let zeros = zeros.iter().fold(1.0, |product, zero| product * (zero - pole));
            let others = self.poles().iter().enumerate().filter(|&(other, _)| other != index);
            let residue = others.fold(zeros, |product, (_, other)| product / (other - pole));
            mixture.weights[index] = self.factor * residue / pole;
        }
        mixture
    }

    fn with_factor(mut self, factor: f64) -> Self {
        self.factor *= factor;
        self
    }

    fn with_zero(mut self, zero: f64) -> Self {
        self.zeros[self.zeros_used] = zero;
        self.zeros_used += 1;
        self
    }

    /// Adds a pole, a little apart from the others.
    fn with_pole(mut self, mut pole: f64) -> Self {
        let near = |pole: f64, other: f64| (pole / other - 1.0).abs() < POLES_APART;
        while self.poles().iter().any(|&other| near(pole, other)) {
            // pushed further, with the total probability still 1
            pole *= 1.0 + 2.0 * POLES_APART;
            self.factor *= 1.0 + 2.0 * POLES_APART;
        }
        self.poles[self.poles_used] = pole;
        self.poles_used += 1;
        self
    }

    fn poles(&self) -> &[f64] {
        &self.poles[..self.poles_used]
    }
}

/// With these weights, exponential waits of these rates; none otherwise.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mixture {
    weights: [f64; TERMS_MAX],
    rates: [f64; TERMS_MAX],
}

impl Mixture {
    /// The probability to wait for longer than `t`, and its derivative by `t`.
    pub(super) fn tail(&self, t: f64) -> (f64, f64) {
        let terms = self.weights.iter().zip(&self.rates).filter(|(weight, _)| **weight != 0.0);
        terms.fold((0.0, 0.0), |(value, slope), (weight, rate)| {
            let term = weight * libm::exp(-rate * t);
            (value + term, slope - rate * term)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tail_begins_with_the_probability_to_wait_at_all() {
        let server = Exponentials::of_server([(0.3, 1.0), (0.02, 10.0)]);
        assert!((server.mixture().tail(0.0).0 - 0.5).abs() < 1e-9);
        let sum = server.then(&Exponentials::perhaps(0.5, 2.0));
        assert!((sum.mixture().tail(0.0).0 - 0.75).abs() < 1e-9);
    }

    #[test]
    fn equal_waits_add_up_too() {
        let two = Exponentials::of(1.0).then(&Exponentials::of(1.0)).mixture();
        // a gamma distribution: (1 + t) e^-t
        let expected = 3.0 * (-2.0_f64).exp();
        assert!((two.tail(2.0).0 / expected - 1.0).abs() < 0.01, "{:?}", two.tail(2.0));
    }
}
