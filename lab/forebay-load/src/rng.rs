//! Pseudo-random numbers of our own, so that a seed means the same run for ever.

/// One second, in nanoseconds.
const SECOND_NS: u64 = 1_000_000_000;

/// The natural logarithm of 2, times 2^32.
const LN_2_Q32: u64 = 2_977_044_472;

/// A SplitMix64 generator: eight bytes of state, the same numbers on every machine.
///
/// Only integers are involved, the logarithm behind [`Rng::gap_ns`] included, so no floating-point
/// library has a say in what a seed yields. Not for secrets.
#[derive(Clone, Debug)]
pub struct Rng {
    state: u64,
}

impl Rng {
    /// The generator that belongs to `seed` and the place `path`, such as a job and a shard.
    ///
    /// Different paths give unrelated streams of numbers.
    pub fn new(seed: u64, path: &[u64]) -> Self {
        let state = path.iter().fold(mix(seed), |state, &step| {
            mix(state.rotate_left(17) ^ mix(step.wrapping_add(GOLDEN_GAMMA)))
        });
        Self { state }
    }

    /// The next 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(GOLDEN_GAMMA);
        mix(self.state)
    }

    /// A number from 0 up to but not including `bound`, each equally likely; 0 if `bound` is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        // The high half of a product spreads 2^64 values over `bound` ones. The lowest products
        // of each are one too many for some, hence drawn again.
        let surplus = bound.wrapping_neg().checked_rem(bound).unwrap_or(0);
        loop {
            let product = u128::from(self.next_u64()) * u128::from(bound);
            if product as u64 >= surplus {
                return (product >> 64) as u64;
            }
        }
    }

    /// The gap, in nanoseconds, before the next event of a Poisson process with `rate` events per
    /// second (at least 1): exponentially distributed with mean 1/`rate`, at most 44.4 times that.
    pub fn gap_ns(&mut self, rate: u32) -> u64 {
        let uniform = self.next_u64().max(1);
        // -ln(uniform / 2^64) = (64 - log2(uniform)) ln 2.
        let bits = (64 << 32) - log2_q32(uniform);
        let mean_gaps_q64 = u128::from(bits) * u128::from(LN_2_Q32);
        let rate = u128::from(rate.max(1));
        let gap_q32 = (mean_gaps_q64 >> 32) * u128::from(SECOND_NS) / rate;
        ((gap_q32 + (1 << 31)) >> 32) as u64
    }
}

/// 2^64 divided by the golden ratio, as an odd number: the increment of SplitMix64.
const GOLDEN_GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// The output function of SplitMix64: every bit of the result depends on every bit of `z`.
fn mix(z: u64) -> u64 {
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The binary logarithm of `x`, times 2^32, rounded down; `x` is at least 1.
fn log2_q32(x: u64) -> u64 {
    let whole = x.ilog2();
    // `power` is x scaled into [1, 2), times 2^63. Squaring it doubles its logarithm, whose next
    // binary digit is 1 if the square is 2 or more.
    let mut power = u128::from(x << (63 - whole));
    let mut fraction = 0;
    for _ in 0..32 {
        power = (power * power) >> 63;
        let digit = power >> 64;
        power >>= digit;
        fraction = fraction << 1 | digit as u64;
    }
    u64::from(whole) << 32 | fraction
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_mean_the_same_for_ever() {
        let mut rng = Rng::new(1, &[2, 3]);
        let drawn = [rng.next_u64(), rng.next_u64(), rng.below(1000), rng.gap_ns(1000)];
        assert_eq!(drawn, [3_098_724_606_164_266_973, 6_372_573_415_876_341_552, 415, 3350]);
    }

    #[test]
    fn paths_give_different_streams() {
        let first = |path: &[u64]| Rng::new(7, path).next_u64();
        let drawn = [first(&[]), first(&[0]), first(&[1]), first(&[0, 1]), first(&[1, 0])];
        for (i, a) in drawn.iter().enumerate() {
            assert!(drawn.iter().skip(i + 1).all(|b| a != b), "{drawn:?}");
        }
    }

    #[test]
    fn the_logarithm_is_right_to_ten_digits() {
        for x in [1, 2, 3, 5, 1000, 1 << 40, u64::MAX / 3, u64::MAX - 5000] {
            let exact = (x as f64).log2();
            let ours = log2_q32(x) as f64 / 2f64.powi(32);
            assert!((exact - ours).abs() < 1e-9, "log2({x}) is {exact}, not {ours}");
        }
    }

    #[test]
    fn numbers_below_a_bound_are_spread_evenly() {
        let mut rng = Rng::new(1, &[]);
        let mut seen = [0_u32; 6];
        for _ in 0..60_000 {
            seen[rng.below(6) as usize] += 1;
        }
        assert!(seen.iter().all(|&n| (9_700..10_300).contains(&n)), "{seen:?}");
        assert_eq!(rng.below(0), 0);
        assert_eq!(rng.below(1), 0);
    }

    #[test]
    fn gaps_have_the_mean_and_the_spread_of_a_poisson_process() {
        let mut rng = Rng::new(1, &[]);
        let n = 200_000;
        let gaps: Vec<f64> = (0..n).map(|_| rng.gap_ns(1000) as f64).collect();
        let mean = gaps.iter().sum::<f64>() / f64::from(n);
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / f64::from(n);
        assert!((0.99e6..1.01e6).contains(&mean), "mean {mean}");
        assert!((0.98..1.02).contains(&(variance.sqrt() / mean)), "deviation {}", variance.sqrt());
    }
}
