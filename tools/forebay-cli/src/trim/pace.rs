//! How much to trim at once, and when to go on.

use std::time::Duration;

use forebay_core::{DiskModel, DiskTime, StepMax};

/// A step is not made shorter than this, in bytes: each scans the free space again.
const RANGE_MIN: u64 = 1 << 20;
/// Nor is it longer than this.
const RANGE_MAX: u64 = 1 << 30;
/// This many times the bytes of a range are no discards of ranges before it that came late.
const WHOLE_TIMES: u64 = 16;
/// Of what the disk was seen to do the latest steps count most: of each this part, one of 8.
const RECENT: u64 = 8;

/// The pace of a trim: how long each range is and how long to wait after it.
///
/// Free space comes in extents that nobody knows before, each a discard of its own; so how many
/// there are to a gigabyte is learnt on the way.
#[derive(Clone, Debug)]
pub(super) struct Pace {
    pub(super) model: DiskModel,
    /// Disk time that a step may cost.
    pub(super) cost: DiskTime,
    /// Bytes per second.
    pub(super) rate: Option<u64>,
    /// The part of the time that discards may keep the disk busy, in thousandths.
    pub(super) share_permille: u64,
    /// Discards in a gigabyte of what was trimmed lately.
    commands_per_gib: u64,
    /// The least length of a range: a free extent that the file system discards as a whole.
    whole: u64,
}

/// What a step has done.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trimmed {
    /// How long the range was.
    pub(super) range: u64,
    /// What of it was discarded.
    pub(super) bytes: u64,
    /// The number of discards that the device got, if it counts them.
    pub(super) commands: Option<u64>,
    /// How long that took.
    pub(super) took: Duration,
}

impl Pace {
    pub(super) fn new(
        model: DiskModel,
        cost: DiskTime,
        rate: Option<u64>,
        share_permille: u64,
    ) -> Self {
        Self { model, cost, rate, share_permille, commands_per_gib: 1, whole: RANGE_MIN }
    }

    /// How long the next range is, in bytes: all of it may be free.
    pub(super) fn range(&self) -> u64 {
        let most = StepMax { cost: self.cost, bytes: RANGE_MAX, commands: u32::MAX };
        let extent = (1 << 30) / self.commands_per_gib.max(1);
        // no more of a second's bytes than a tenth, or there would be bursts
        let of_rate = self.rate.map_or(RANGE_MAX, |rate| rate / 10);
        let extents = std::iter::repeat_n(extent.max(1), (RANGE_MAX / extent.max(1)) as usize);
        most.step(&self.model, extents)
            .bytes
            .min(of_rate)
            .clamp(RANGE_MIN, RANGE_MAX)
            .max(self.whole)
    }

    /// How long after the beginning of a step the next may begin.
    pub(super) fn after(&mut self, step: &Trimmed) -> Duration {
        let commands = step.commands.unwrap_or(1).max(1);
        if step.bytes > 0 {
            let seen = u128::from(commands) * (1 << 30) / u128::from(step.bytes);
            let seen = u64::try_from(seen).unwrap_or(u64::MAX).clamp(1, 1 << 18);
            let old = self.commands_per_gib * (RECENT - 1);
            self.commands_per_gib = (old + seen).div_ceil(RECENT);
        }
        if step.bytes > step.range.saturating_mul(WHOLE_TIMES) {
            // this file system gives away a free extent whole, whatever part of it is asked for:
            // the next ranges would give it away again
            self.whole = step.bytes.saturating_mul(2).min(1 << 40);
        }
        if step.bytes == 0 {
            return Duration::ZERO;
        }
        let commands = u32::try_from(commands).unwrap_or(u32::MAX);
        let cost =
            Duration::from_nanos(self.model.discard_cost(step.bytes, commands).as_nanos_ceil());
        let busy = cost.max(step.took);
        let by_share = busy.as_secs_f64() * 1000.0 / self.share_permille.max(1) as f64;
        let by_rate = self.rate.map_or(0.0, |rate| step.bytes as f64 / rate.max(1) as f64);
        Duration::try_from_secs_f64(by_share.max(by_rate)).unwrap_or(Duration::MAX)
    }

    /// At most how long the trim of `free` bytes takes if each gigabyte is one discard; and the
    /// ranges of `total` bytes.
    pub(super) fn estimate(&self, free: u64, total: u64) -> (Duration, u64) {
        let cost = self.model.discard_cost(free, u32::try_from(free >> 30).unwrap_or(u32::MAX));
        let by_share =
            cost.as_nanos_ceil() as f64 / 1e9 * 1000.0 / self.share_permille.max(1) as f64;
        let by_rate = self.rate.map_or(0.0, |rate| free as f64 / rate.max(1) as f64);
        let time = Duration::try_from_secs_f64(by_share.max(by_rate)).unwrap_or(Duration::MAX);
        (time, total.div_ceil(self.range()))
    }
}

#[cfg(test)]
mod tests {
    use forebay_core::CostCurve;

    use super::*;

    /// 20 us per discard and 5 ms per GiB.
    fn pace(rate: Option<u64>, share_permille: u64) -> Pace {
        let discard = CostCurve::sum(50_000, 200 << 30).unwrap();
        let model = DiskModel::unmeasured().with_discard(discard);
        Pace::new(model, DiskTime::from_nanos(500_000), rate, share_permille)
    }

    fn step(range: u64, bytes: u64, commands: u64) -> Trimmed {
        Trimmed { range, bytes, commands: Some(commands), took: Duration::from_micros(100) }
    }

    #[test]
    fn ranges_cost_no_more_than_a_step_may_and_shrink_where_space_is_in_pieces() {
        let mut pace = pace(None, 100);
        let first = pace.range();
        assert!((90 << 20..110 << 20).contains(&first), "{first}");
        for _ in 0..100 {
            let range = pace.range();
            pace.after(&step(range, range, range >> 16));
        }
        let range = pace.range();
        assert!((RANGE_MIN..3 << 20).contains(&range), "{range}");
        let commands = (range >> 16) as u32;
        assert!(pace.model.discard_cost(range, commands) <= pace.cost);
    }

    #[test]
    fn the_rate_and_the_share_hold() {
        let mut by_rate = pace(Some(100 << 20), 1000);
        assert_eq!(by_rate.range(), 10 << 20);
        let after = by_rate.after(&step(10 << 20, 10 << 20, 1)).as_secs_f64();
        assert!((after - 0.1).abs() < 1e-6, "{after}");
        // 100 us are a tenth of 1 ms
        let after = pace(None, 100).after(&step(1 << 20, 1 << 20, 1));
        assert_eq!(after, Duration::from_millis(1));
        assert_eq!(pace(Some(1), 1).after(&step(1 << 20, 0, 0)), Duration::ZERO);
    }

    #[test]
    fn a_file_system_that_discards_extents_whole_is_asked_for_them_once() {
        let mut pace = pace(None, 100);
        pace.after(&step(pace.range(), 10 << 30, 1));
        assert!(pace.range() > 10 << 30);
    }

    #[test]
    fn an_estimate_is_the_longer_of_both() {
        let (time, ranges) = pace(Some(1 << 30), 1000).estimate(10 << 30, 100 << 30);
        assert_eq!((time.as_secs(), ranges > 900), (10, true));
        let (time, _) = pace(None, 10).estimate(10 << 30, 100 << 30);
        assert!((4.9..5.3).contains(&time.as_secs_f64()), "{time:?}");
    }
}
