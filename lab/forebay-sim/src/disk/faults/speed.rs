//! Time inside a disk that is slow, or stands still, for a while.

use std::time::Duration;

use forebay_core::Time;

use super::fault::{Fault, moment};

/// Full speed.
const FULL: u128 = 1_000_000;

/// How the clock of a slow disk goes: an account of both clocks, in stretches
/// of one speed each.
pub(super) struct Speed {
    /// The first begins at the epoch; the last goes on for ever.
    stretches: Vec<Stretch>,
}

#[derive(Clone, Copy)]
struct Stretch {
    /// When it begins, by the clock outside and by the disk's.
    outside: u64,
    inside: u64,
    /// In parts of [`FULL`].
    speed: u128,
}

impl Speed {
    pub(super) fn new(faults: &[Fault]) -> Self {
        let mut borders = vec![Time::ZERO];
        for (from, to, _) in faults.iter().filter_map(slowness) {
            borders.extend([Some(from), to].into_iter().flatten().map(moment));
        }
        borders.sort_unstable();
        borders.dedup();
        let mut stretches: Vec<Stretch> = Vec::with_capacity(borders.len());
        for border in borders {
            let outside = border.as_nanos();
            let inside = stretches.last().map_or(0, |last| last.inside_at(outside));
            stretches.push(Stretch { outside, inside, speed: speed_from(faults, border) });
        }
        Self { stretches }
    }

    /// What the disk's clock shows.
    pub(super) fn inside(&self, outside: Time) -> Time {
        let behind = self.stretches.partition_point(|s| s.outside <= outside.as_nanos());
        let stretch = behind.checked_sub(1).and_then(|place| self.stretches.get(place));
        stretch.map_or(outside, |s| Time::from_nanos(s.inside_at(outside.as_nanos())))
    }

    /// When the disk's clock first shows `inside`, if ever.
    pub(super) fn outside(&self, inside: Time) -> Option<Time> {
        let inside = inside.as_nanos();
        // While the disk stands still many moments outside are one inside: the first of a stretch
        // that begins with it may be late, hence the one before.
        let behind = self.stretches.partition_point(|s| s.inside < inside).max(1);
        let stretch = self.stretches.get(behind - 1)?;
        stretch.outside_at(inside).map(Time::from_nanos)
    }
}

impl Stretch {
    fn inside_at(&self, outside: u64) -> u64 {
        let passed = u128::from(outside - self.outside) * self.speed / FULL;
        self.inside.saturating_add(u64::try_from(passed).unwrap_or(u64::MAX))
    }

    fn outside_at(&self, inside: u64) -> Option<u64> {
        let ahead = u128::from(inside.saturating_sub(self.inside));
        if ahead == 0 {
            return Some(self.outside);
        }
        let passed = (ahead * FULL).checked_add(self.speed.checked_sub(1)?)? / self.speed;
        Some(self.outside.saturating_add(u64::try_from(passed).ok()?))
    }
}

/// From when to when a fault slows the disk down, and to how many percent.
fn slowness(fault: &Fault) -> Option<(Duration, Option<Duration>, u128)> {
    match *fault {
        Fault::Slow { from, to, percent } => Some((from, to, percent.into())),
        Fault::Hang { from, to, range: None } => Some((from, to, 0)),
        _ => None,
    }
}

/// The speed from `border` on, where several faults multiply.
fn speed_from(faults: &[Fault], border: Time) -> u128 {
    let now = faults
        .iter()
        .filter_map(slowness)
        .filter(|&(from, to, _)| moment(from) <= border && to.is_none_or(|to| border < moment(to)));
    now.fold(FULL, |speed, (_, _, percent)| speed * percent / 100)
}
