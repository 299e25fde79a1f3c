//! Tags of start-time fair queueing. They grow without end, and are compared modulo 2^64.
//!
//! Decision: `docs/decisions/0012-wrapping-tags.md`.

/// A tag is ahead of another one if the distance modulo 2^64 is below this, in units of disk time per
/// share (2.3 years). Otherwise it is behind, by up to three times as much.
const LEAD_END: u64 = 1 << 62;
/// The most that one charge raises a tag, and that credit lowers it, in units of disk time per share
/// (13 days). 63 such steps stay within `LEAD_END`.
pub(crate) const STEP_MAX: u64 = 1 << 56;

/// The distance by which `tag` is ahead of `other`; zero if it is not.
pub(crate) fn ahead(tag: u64, other: u64) -> u64 {
    let distance = tag.wrapping_sub(other);
    if distance < LEAD_END { distance } else { 0 }
}

pub(crate) fn is_after(tag: u64, other: u64) -> bool {
    ahead(tag, other) > 0
}

/// The tag that is ahead of the other one.
pub(crate) fn later(tag: u64, other: u64) -> u64 {
    if is_after(tag, other) { tag } else { other }
}

/// Restates `tag` for other shares. Its distance from `from` remains the same disk time, and changes
/// from `old` shares to `new`.
pub(crate) fn rescaled(tag: u64, from: u64, old: u32, new: u32) -> u64 {
    let scaled = |distance: u64| {
        let distance = u128::from(distance) * u128::from(old) / u128::from(new.max(1));
        u64::try_from(distance).unwrap_or(u64::MAX).min(LEAD_END / 2)
    };
    if is_after(tag, from) {
        from.wrapping_add(scaled(ahead(tag, from)))
    } else {
        from.wrapping_sub(scaled(from.wrapping_sub(tag)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_is_the_same_on_both_sides_of_the_wrap() {
        for base in [0_u64, 1 << 62, 1 << 63, u64::MAX - 5, u64::MAX, 3] {
            for distance in [1, 10, STEP_MAX, LEAD_END - 1] {
                let further = base.wrapping_add(distance);
                assert!(is_after(further, base) && !is_after(base, further));
                assert_eq!((later(base, further), later(further, base)), (further, further));
                assert_eq!((ahead(further, base), ahead(base, further)), (distance, 0));
            }
            assert!(!is_after(base, base));
            assert!(!is_after(base, base.wrapping_add(3 * LEAD_END)), "long idle is behind");
        }
    }

    #[test]
    fn other_shares_leave_the_disk_time_as_it_is() {
        for from in [0_u64, 1 << 63, u64::MAX - 5] {
            for (old, new) in [(1, 1000), (1000, 1), (10, 10_000), (7, 3)] {
                let units = 42_000_u64;
                let distance = units / u64::from(old);
                let forth = rescaled(from.wrapping_add(distance), from, old, new);
                let back = rescaled(from.wrapping_sub(distance), from, old, new);
                assert_eq!(forth.wrapping_sub(from), units / u64::from(new));
                assert_eq!(from.wrapping_sub(back), units / u64::from(new));
            }
            assert_eq!(rescaled(from, from, 1, 10_000), from);
        }
    }
}
