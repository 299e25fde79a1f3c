//! What was measured in one period.

/// A speed of one: the rate that the model promises.
pub(super) const SPEED_ONE: u64 = 1 << 20;
/// What lies so far back is not one period.
pub(super) const STALE_NANOS: u64 = 400_000_000;
/// A period with fewer counted requests says nothing of their mean.
pub(super) const COUNTED_MIN: u64 = 100;
/// Requests wait in the disk if they take so much longer than in the idle one:
/// (5, 4).
const LATE: (u64, u64) = (5, 4);
/// One cut takes at most three tenths: what was measured may have been a hang.
pub(super) const CUT_PERMILLE: (u64, u64) = (31, 300);

/// What was measured in one period.
#[derive(Clone, Copy, Debug)]
pub(super) struct Period {
    /// When it ended, and how long it took.
    pub(super) now_nanos: u64,
    pub(super) nanos: u64,
    /// The time that all that follows was measured in.
    pub(super) lately_nanos: u64,
    /// Requests that count, and those of them above the target.
    pub(super) counted: u64,
    pub(super) over: u64,
    /// Of 1000 of them so many may be.
    pub(super) allowed_permille: u64,
    pub(super) mean_nanos: u64,
    /// The target.
    pub(super) threshold_nanos: u64,
    /// Disk time served per time, a speed.
    pub(super) delivered: u64,
    /// How often a shard had nothing left in the disk.
    pub(super) emptied: u64,
    /// How often work had to wait for the pace, and for the window.
    pub(super) at_pace: u64,
    pub(super) at_window: u64,
    /// Where the window stands.
    pub(super) window_nanos: u64,
    pub(super) window_at_min: bool,
    /// The latency of the idle disk; zero if it is not known.
    pub(super) base_nanos: u64,
    /// No higher speed is tried.
    pub(super) speed_max: u64,
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

    /// Counted requests in a million milliseconds.
    pub(super) fn rate(&self) -> u64 {
        let rate =
            u128::from(self.counted) * 1_000_000_000_000 / u128::from(self.lately_nanos.max(1));
        u64::try_from(rate).unwrap_or(u64::MAX)
    }

    /// Whether work waited for the window rather than for the pace.
    pub(super) fn is_saturated(&self) -> bool {
        self.at_window > self.at_pace
    }

    /// Of 1000 counted requests so many took too long.
    pub(super) fn over_permille(&self) -> u64 {
        self.over.saturating_mul(1000) / self.counted.max(1)
    }

    /// Whether at most half as many are late as may be.
    pub(super) fn is_well_below(&self) -> bool {
        self.over_permille() <= self.allowed_permille / 2
    }

    /// Whether requests take longer than in the idle disk: they wait in it.
    pub(super) fn is_late(&self) -> bool {
        self.base_nanos > 0 && self.is_later_than(self.base_nanos)
    }

    /// Whether requests take clearly longer than that.
    pub(super) fn is_later_than(&self, nanos: u64) -> bool {
        self.mean_nanos > nanos.saturating_mul(LATE.0) / LATE.1
    }

    /// Whether requests wait in the disk for as long as the window lets them.
    pub(super) fn fills_window(&self) -> bool {
        self.is_late() && self.mean_nanos > self.window_nanos / 2
    }

    /// How much to cut for what is above the target, in thousandths.
    pub(super) fn excess_permille(&self) -> u64 {
        self.over_permille()
            .saturating_sub(self.allowed_permille)
            .clamp(CUT_PERMILLE.0, CUT_PERMILLE.1)
    }
}

#[cfg(test)]
impl Period {
    /// The target holds, and all that is let through is used.
    pub(super) const WELL: Self = Self {
        now_nanos: 1_000_000_000,
        nanos: 20_000_000,
        lately_nanos: 20_000_000,
        counted: 1000,
        over: 10,
        allowed_permille: 50,
        mean_nanos: 100_000,
        threshold_nanos: 1_000_000,
        delivered: SPEED_ONE,
        emptied: 0,
        at_pace: 10,
        at_window: 0,
        window_nanos: 1_000_000,
        window_at_min: false,
        base_nanos: 80_000,
        speed_max: 4 * SPEED_ONE,
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
