//! What became of the load of a disk, all its I/O groups together.

use crate::{GroupCounters, IoGroup, LatencyTargetStatus, Time};

/// Whether a disk does what its figures say, and keeps what is promised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadStatus {
    /// Thousandths of what its figures say that the disk did when work last
    /// waited for it; `None` before any has. Healthy is 900 or more: much less
    /// means that the figures are wrong for this mix, or the disk is not itself.
    /// Of several groups the lowest. Zero while the disk [stalls](GroupCounters).
    pub speed_permille: Option<u64>,
    /// What became of the latency target, if there is one: it holds, and is
    /// attainable, where it does and is in all groups; the window is the smallest.
    /// It does not hold while the disk stalls.
    pub target: Option<LatencyTargetStatus>,
    /// For how long work has waited, and how many requests were within the target.
    pub counters: GroupCounters,
}

impl Default for LoadStatus {
    /// Of a disk that nothing was asked of.
    fn default() -> Self {
        Self { speed_permille: None, target: None, counters: GroupCounters::default() }
    }
}

impl LoadStatus {
    /// Of the disk that these groups share, `now`.
    pub fn of<'a>(groups: impl IntoIterator<Item = &'a IoGroup>, now: Time) -> Self {
        let of_groups = groups.into_iter().map(|group| Self::of_group(group, now));
        of_groups.reduce(Self::with).unwrap_or_default()
    }

    fn of_group(group: &IoGroup, now: Time) -> Self {
        let counters = group.counters(now);
        let stands_still = group.stalled_nanos(now).is_some();
        let speed = if stands_still { 0 } else { group.speed_permille() };
        let holds = |target: LatencyTargetStatus| LatencyTargetStatus {
            holds: target.holds && !stands_still,
            ..target
        };
        Self {
            speed_permille: (counters.waited_nanos > 0).then_some(speed),
            target: group.latency_target().map(holds),
            counters,
        }
    }

    fn with(mut self, other: Self) -> Self {
        let speeds = [self.speed_permille, other.speed_permille];
        self.speed_permille = speeds.into_iter().flatten().min();
        if let (Some(all), Some(one)) = (&mut self.target, other.target) {
            all.holds &= one.holds;
            all.attainable &= one.attainable;
            all.window = all.window.min(one.window);
        }
        self.counters.merge(&other.counters);
        self
    }
}
