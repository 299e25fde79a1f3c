//! What became of the load of a disk, all its I/O groups together.

use crate::{GroupCounters, IoGroup, LatencyTargetStatus, Time};

/// Whether a disk reaches its figures, and keeps its latency target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadStatus {
    /// The disk's throughput when work last waited for it, in thousandths of its figures; `None`
    /// before any has. 900 or more is healthy: much less means that the figures are wrong for this
    /// mix, or that the disk is slower than usual. The lowest of several groups. Zero while the
    /// disk [stalls](GroupCounters).
    pub speed_permille: Option<u64>,
    /// The status of the latency target, if there is one: it holds, or is attainable, if that is so
    /// in all groups; the window is the smallest of them. It does not hold while the disk stalls.
    pub target: Option<LatencyTargetStatus>,
    /// The time for which work has waited, and the number of requests within the target.
    pub counters: GroupCounters,
}

impl Default for LoadStatus {
    /// The status of a disk without requests.
    fn default() -> Self {
        Self { speed_permille: None, target: None, counters: GroupCounters::default() }
    }
}

impl LoadStatus {
    /// The status `now` of the disk that these groups share.
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
