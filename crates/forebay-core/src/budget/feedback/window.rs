//! How the window follows the percentile.

/// What a window may be, in units of time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub(super) min: u64,
    pub(super) max: u64,
}

/// The window after `counted` requests of which `over` took longer than the
/// target, when `allowed` of 1000 may: it stands still where just so many do.
pub(super) fn window_after(
    window: u64,
    (counted, over): (u64, u64),
    allowed: u64,
    bounds: Bounds,
) -> u64 {
    let window = window.clamp(bounds.min, bounds.max);
    let up = (window / 256).saturating_mul(counted).saturating_mul(allowed) / 1000;
    let down = (window / 256).saturating_mul(over).min(window / 2);
    window.saturating_add(up).saturating_sub(down).clamp(bounds.min, bounds.max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_stands_still_where_as_many_are_over_as_may_be() {
        let bounds = Bounds { min: 1, max: u64::MAX };
        for permille in [10, 50, 100, 500] {
            for window in [1_u64 << 20, 1 << 40] {
                let after = window_after(window, (100, permille / 10), permille, bounds);
                assert!(after.abs_diff(window) <= window / 1000, "{permille}: {after}");
                assert!(window_after(window, (100, 0), permille, bounds) > window);
                assert!(window_after(window, (100, 100), permille, bounds) < window);
            }
        }
    }
}
