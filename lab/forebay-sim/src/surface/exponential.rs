//! Random lengths of time, exponentially distributed.

use forebay_core::DiskTime;
use forebay_load::Rng;

const QUANTILES: usize = 4096;

/// An exponential distribution of mean 1, as a table: a draw costs no
/// logarithm. The longest is 9 means.
#[derive(Clone, Debug)]
pub(crate) struct Exponential {
    /// The mean of each part of the distribution, times 2^16.
    quantiles: Vec<u32>,
}

impl Exponential {
    pub(crate) fn new() -> Self {
        let share = 1.0 / QUANTILES as f64;
        // the integral of the quantile function from 0 to `tail` below the end
        let beyond = |tail: f64| if tail > 0.0 { tail * (1.0 - libm::log(tail)) } else { 0.0 };
        let quantile = |index: usize| {
            let (from, to) = (1.0 - index as f64 * share, 1.0 - (index + 1) as f64 * share);
            ((beyond(from) - beyond(to)) / share * 65_536.0).round() as u32
        };
        Self { quantiles: (0..QUANTILES).map(quantile).collect() }
    }

    /// A random length of time with this mean.
    pub(crate) fn draw(&self, rng: &mut Rng, mean: DiskTime) -> DiskTime {
        let quantile = self.quantiles[(rng.next_u64() >> 52) as usize];
        let units = (u128::from(mean.units()) * u128::from(quantile)) >> 16;
        DiskTime::from_units(units as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_have_the_mean_and_the_deviation_of_an_exponential_distribution() {
        let (exponential, mut rng) = (Exponential::new(), Rng::new(1, &[]));
        let mean = DiskTime::from_nanos(100_000);
        let mut draw = || exponential.draw(&mut rng, mean).units() as f64 / mean.units() as f64;
        let draws: Vec<f64> = (0..200_000).map(|_| draw()).collect();
        let average = draws.iter().sum::<f64>() / draws.len() as f64;
        let square = draws.iter().map(|x| x * x).sum::<f64>() / draws.len() as f64;
        assert!((average - 1.0).abs() < 0.01, "mean {average}");
        assert!((square - 2.0).abs() < 0.05, "second moment {square}");
    }
}
