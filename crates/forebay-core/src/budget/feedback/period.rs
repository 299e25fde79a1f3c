//! What was measured in one period.

/// A speed of one: the rate that the model promises.
pub(super) const SPEED_ONE: u64 = 1 << 20;
/// A period with fewer counted requests says nothing of their mean.
pub(super) const COUNTED_MIN: u64 = 100;
/// One cut takes at most three tenths: what was measured may have been a hang.
pub(super) const CUT_PERMILLE: (u64, u64) = (31, 300);

/// What was measured in one period.
#[derive(Clone, Copy, Debug)]
pub(super) struct Period {
    /// When it ended, and how long it took.
    pub(super) now_nanos: u64,
    pub(super) nanos: u64,
    /// Requests that count, and those of them above the target.
    pub(super) counted: u64,
    pub(super) over: u64,
    /// Of 1000 of them so many may be.
    pub(super) allowed_permille: u64,
    pub(super) mean_nanos: u64,
    /// Disk time served per time, a speed.
    pub(super) delivered: u64,
    /// Whether work waited for the window rather than for the pace.
    pub(super) is_saturated: bool,
    /// Where the window stands.
    pub(super) window_at_max: bool,
    pub(super) window_at_min: bool,
    /// The latency of the idle disk; zero if it is not known.
    pub(super) base_nanos: u64,
}

impl Period {
    /// Whether more requests than allowed took too long, by more than chance
    /// brings: an eighth more than one standard deviation.
    pub(super) fn is_high(&self) -> bool {
        let allowed = self.allowed_permille.min(1000);
        let deviation = (allowed * (1000 - allowed)).isqrt();
        let chance = deviation.saturating_mul(self.counted.isqrt()) / 8 * 9;
        let most = self.counted.saturating_mul(allowed).saturating_add(chance);
        self.over.saturating_mul(1000) > most
    }

    /// How much to cut for what is above the target, in thousandths.
    pub(super) fn excess_permille(&self) -> u64 {
        let over = self.over.saturating_mul(1000) / self.counted.max(1);
        over.saturating_sub(self.allowed_permille).clamp(CUT_PERMILLE.0, CUT_PERMILLE.1)
    }
}

#[cfg(test)]
impl Period {
    /// The target holds, and all that is let through is used.
    pub(super) const WELL: Self = Self {
        now_nanos: 1_000_000_000,
        nanos: 20_000_000,
        counted: 1000,
        over: 10,
        allowed_permille: 50,
        mean_nanos: 100_000,
        delivered: SPEED_ONE,
        is_saturated: false,
        window_at_max: true,
        window_at_min: false,
        base_nanos: 80_000,
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missed_by_chance_is_not_missed() {
        assert!(!Period { over: 57, ..Period::WELL }.is_high());
        assert!(Period { over: 58, ..Period::WELL }.is_high());
        assert!(!Period { counted: 0, over: 0, ..Period::WELL }.is_high());
    }
}
