//! Whether a difference is more than chance.

/// Beyond this many degrees of freedom Student's t is hardly another distribution.
const DEGREES_MAX: u32 = 1000;

/// The chance that Student's t of this many degrees of freedom, at least one, is as far from zero
/// as `t` or further, from 0 to 1: Abramowitz and Stegun, 26.7.3 and 26.7.4.
pub fn chance(t: f64, degrees: u32) -> f64 {
    let degrees = degrees.clamp(1, DEGREES_MAX);
    let angle = (t.abs() / f64::from(degrees).sqrt()).atan();
    let (sine, cosine) = angle.sin_cos();
    let is_odd = degrees % 2 == 1;
    let mut term = if is_odd { cosine } else { 1.0 };
    let mut sum = 0.0;
    for step in 1..=degrees / 2 {
        sum += term;
        let twice = 2.0 * f64::from(step);
        let ratio = if is_odd { twice / (twice + 1.0) } else { (twice - 1.0) / twice };
        term *= cosine * cosine * ratio;
    }
    let within =
        if is_odd { (angle + sine * sum) * std::f64::consts::FRAC_2_PI } else { sine * sum };
    (1.0 - within).clamp(0.0, 1.0)
}

/// The t that Student's t of this many degrees of freedom exceeds, on either side, with `chance`.
pub fn quantile(wanted: f64, degrees: u32) -> f64 {
    let (mut low, mut high) = (0.0, 1e6);
    // halved to below any difference that matters
    for _ in 0..64 {
        let middle = (low + high) / 2.0;
        if chance(middle, degrees) > wanted {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

/// Which of several differences, each of which is so by such a chance, are more than chance: with
/// a probability of `level` at most, one of them is wrong (Holm 1979).
pub fn significant(chances: &[f64], level: f64) -> Vec<bool> {
    let mut order: Vec<usize> = (0..chances.len()).collect();
    let of = |index: usize| chances.get(index).copied().unwrap_or(1.0);
    order.sort_by(|&one, &other| of(one).total_cmp(&of(other)));
    let mut found = vec![false; chances.len()];
    for (place, index) in order.into_iter().enumerate() {
        if of(index) > level / (chances.len() - place) as f64 {
            break;
        }
        found.iter_mut().skip(index).take(1).for_each(|found| *found = true);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn student_t_is_as_in_the_tables() {
        for (degrees, t95, t99) in [
            (1, 12.706, 63.657),
            (2, 4.303, 9.925),
            (5, 2.571, 4.032),
            (9, 2.262, 3.250),
            (30, 2.042, 2.750),
            (120, 1.980, 2.617),
        ] {
            assert!((quantile(0.05, degrees) - t95).abs() < 1e-3, "{degrees}");
            assert!((quantile(0.01, degrees) - t99).abs() < 1e-3, "{degrees}");
            assert!((chance(-t95, degrees) - 0.05).abs() < 1e-4, "{degrees}");
        }
        assert_eq!(chance(0.0, 7), 1.0);
        assert!(chance(50.0, 9) < 1e-9);
    }

    #[test]
    fn of_many_differences_the_surest_must_be_surer() {
        assert_eq!(significant(&[], 0.05), [] as [bool; 0]);
        assert_eq!(significant(&[0.04], 0.05), [true]);
        assert_eq!(significant(&[0.04, 0.5], 0.05), [false, false]);
        assert_eq!(significant(&[0.03, 0.9, 0.01], 0.05), [false, false, true]);
        assert_eq!(significant(&[0.02, 0.04, 0.01], 0.05), [true, true, true]);
    }
}
