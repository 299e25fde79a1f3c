//! The urgency of the backlog, by its bytes, its age and the free space.

use crate::SHARES_MAX;
use crate::backlog::BacklogController;

/// The fraction of the maximum up to which a backlog is not urgent.
const CALM: f64 = 0.5;
/// The factor to which shares rise at the maximum.
const SHARES_FACTOR: u32 = 10;
/// By default, the least free space is the size of the file system divided by this number.
const FREE_PART: u64 = 20;
/// The largest default of the least free space, in bytes.
const FREE_MAX: u64 = 16 << 30;

/// The backlog and its maximums.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Backlog {
    pub(super) bytes: u64,
    pub(super) bytes_max: Option<u64>,
    pub(super) age_nanos: u64,
    pub(super) age_max: Option<u64>,
    /// The free bytes and all bytes of the fullest file system.
    pub(super) free: Option<(u64, u64)>,
    pub(super) free_min: Option<u64>,
}

impl Backlog {
    /// The backlog as a fraction of its maximum, 0 to 1. At 1 files are deleted without a rate
    /// limit.
    pub(super) fn part(&self) -> f64 {
        let part = |is: u64, max: Option<u64>| max.map_or(0.0, |max| is as f64 / max.max(1) as f64);
        let by_bytes = part(self.bytes, self.bytes_max);
        by_bytes.max(part(self.age_nanos, self.age_max)).max(self.by_free_space()).min(1.0)
    }

    /// The fraction by free space: 0.5 at the least free space, and 1 at half of it.
    fn by_free_space(&self) -> f64 {
        let Some((free, all)) = self.free else { return 0.0 };
        let min = self.free_min.unwrap_or_else(|| (all / FREE_PART).min(FREE_MAX));
        if min == 0 || free >= min {
            return 0.0;
        }
        let lacks = (min - free) as f64 / min as f64;
        // It begins at `CALM`, from where rates and shares rise without a jump.
        (CALM + lacks).min(1.0)
    }
}

/// The rate at this fraction. It is `rate` up to a half, then rises, and there is none from 1 on.
pub(super) fn rate_at(part: f64, rate: Option<u64>) -> Option<u64> {
    let rate = rate?;
    if part <= CALM {
        return Some(rate);
    }
    let factor = (1.0 - CALM) / (1.0 - part);
    // From 1 on the factor is not usable, and there is no rate.
    (part < 1.0).then_some((rate as f64 * factor) as u64)
}

/// The shares at this fraction, for a class with `calm` shares while nothing is urgent. `None` if
/// nothing is urgent.
pub(super) fn urgent_shares(calm: u32, part: f64) -> Option<u32> {
    if part <= CALM {
        return None;
    }
    let calm = calm.clamp(1, SHARES_MAX);
    let most = calm.saturating_mul(SHARES_FACTOR).min(SHARES_MAX);
    let shares = BacklogController::new(&[(0.0, calm), (CALM, calm), (1.0, most)]);
    shares.ok().map(|shares| shares.shares(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    #[test]
    fn the_bound_that_is_neared_first_counts() {
        let none = Backlog { bytes: u64::MAX, age_nanos: u64::MAX, ..Backlog::default() };
        assert_eq!(none.part(), 0.0);
        let by_bytes = Backlog { bytes: 3 * GIB, bytes_max: Some(4 * GIB), ..Backlog::default() };
        assert_eq!(by_bytes.part(), 0.75);
        assert_eq!(Backlog { age_nanos: 9, age_max: Some(10), ..by_bytes }.part(), 0.9);
        assert_eq!(Backlog { bytes: 9 * GIB, ..by_bytes }.part(), 1.0);
    }

    #[test]
    fn less_free_space_is_more_urgent_without_a_jump_in_the_rate() {
        let free = |free| Backlog { free: Some((free, 100 * GIB)), ..Backlog::default() }.part();
        assert_eq!([free(100 * GIB), free(5 * GIB)], [0.0, 0.0]);
        assert_eq!([free(4 * GIB), free(5 * GIB / 2), free(0)], [0.7, 1.0, 1.0]);
        let rates = (0..=100).rev().map(|n| rate_at(free(n * GIB / 20), Some(1000)));
        let rates: Vec<u64> = rates.map(|rate| rate.unwrap_or(u64::MAX)).collect();
        assert!(rates.is_sorted() && rates[0] == 1000 && rates[99] == u64::MAX, "{rates:?}");
        assert!(rates.windows(2).take(40).all(|pair| pair[1] < pair[0] * 2), "{rates:?}");
        let none = Backlog { free_min: Some(0), free: Some((0, GIB)), ..Backlog::default() };
        assert_eq!(none.part(), 0.0);
    }

    #[test]
    fn the_rate_rises_smoothly_until_there_is_none() {
        let at = |part| rate_at(part, Some(100));
        assert_eq!([at(0.0), at(0.5), at(0.75), at(0.9)].map(Option::unwrap), [100, 100, 200, 500]);
        assert_eq!([at(1.0), rate_at(0.1, None)], [None, None]);
    }

    #[test]
    fn shares_rise_tenfold_at_most() {
        let shares = [0.5, 0.75, 1.0].map(|part| urgent_shares(100, part));
        assert_eq!(shares, [None, Some(550), Some(1000)]);
        assert_eq!(urgent_shares(SHARES_MAX, 1.0), Some(SHARES_MAX));
        assert_eq!(urgent_shares(0, 1.0), Some(10));
    }
}
