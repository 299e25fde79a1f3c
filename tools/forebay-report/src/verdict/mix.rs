//! Whether requests of two spans are of a like mix.

/// At most this part of a mix may be other than in the other one.
const OTHER_MAX: f64 = 0.1;

/// Whether two mixes are alike: of each kind of requests there is about the same part in both, no
/// more than a tenth in all lies elsewhere. An empty mix is like none.
pub fn is_alike(one: &[f64], other: &[f64]) -> bool {
    let [all, all_other] = [one, other].map(|mix| mix.iter().sum::<f64>());
    if !(all > 0.0 && all_other > 0.0 && one.len() == other.len()) {
        return false;
    }
    let pairs = one.iter().zip(other);
    let moved: f64 = pairs.map(|(one, other)| (one / all - other / all_other).abs()).sum();
    moved / 2.0 <= OTHER_MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mixes_are_alike_by_their_parts_and_not_by_how_much_they_are() {
        assert!(is_alike(&[300.0, 100.0], &[3.0, 1.0]));
        assert!(is_alike(&[0.7, 0.3], &[0.65, 0.35]));
        assert!(!is_alike(&[0.7, 0.3], &[0.45, 0.55]));
        assert!(!is_alike(&[1.0, 0.0], &[0.5, 0.5]));
        assert!(!is_alike(&[0.0, 0.0], &[1.0, 1.0]));
        assert!(!is_alike(&[1.0], &[1.0, 1.0]));
    }
}
