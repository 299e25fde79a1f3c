//! Bursts of requests, and how far apart they are.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

/// This many slots without requests are between two bursts, or more.
const QUIET_SLOTS: u64 = 3;

/// A burst has at least this part of the requests or bytes of the largest one; what is less is
/// some stray request.
const LEAST_PART: f64 = 0.1;

/// Gaps between bursts are a period if each is within this part of the median.
const PERIOD_TOLERANCE: f64 = 0.25;

/// Requests that came at once, after a while without.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Burst {
    /// When it began, in seconds after the beginning; exact to a slot, as all times here are.
    pub start_s: f64,
    /// How long it was.
    pub length_s: f64,
    /// How many requests.
    pub requests: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// How far apart the beginnings of bursts are.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Period {
    /// The median.
    pub median_s: f64,
    /// How many gaps there are: one less than bursts.
    pub gaps: usize,
    /// Whether each gap is within a quarter of the median. One gap always is.
    pub regular: bool,
}

/// The bursts among `slots`: runs of slots with a few empty ones between them.
pub(crate) fn bursts(slots: impl IntoIterator<Item = (u64, Slot)>) -> Vec<Burst> {
    let mut all: Vec<(u64, u64, Slot)> = Vec::new();
    for (index, slot) in slots {
        match all.last_mut() {
            Some((_, last, sum)) if index - *last <= QUIET_SLOTS => {
                *last = index;
                sum.requests += slot.requests;
                sum.bytes = sum.bytes.saturating_add(slot.bytes);
            }
            _ => all.push((index, index, slot)),
        }
    }
    let most = |count: fn(&Slot) -> u64| all.iter().map(|(.., sum)| count(sum)).max().unwrap_or(0);
    let most = Slot { requests: most(|sum| sum.requests), bytes: most(|sum| sum.bytes) };
    let is_large = |part: u64, most: u64| part as f64 >= LEAST_PART * most as f64;
    all.retain(|(.., sum)| {
        is_large(sum.requests, most.requests) || is_large(sum.bytes, most.bytes)
    });
    let slot_s = SLOT.as_secs_f64();
    let burst = |&(first, last, sum): &(u64, u64, Slot)| Burst {
        start_s: first as f64 * slot_s,
        length_s: (last - first + 1) as f64 * slot_s,
        requests: sum.requests,
        bytes: sum.bytes,
    };
    all.iter().map(burst).collect()
}

impl Period {
    /// The period of these bursts; none where there are fewer than two.
    pub(crate) fn of(bursts: &[Burst]) -> Option<Self> {
        let mut gaps: Vec<f64> =
            bursts.windows(2).map(|pair| pair[1].start_s - pair[0].start_s).collect();
        gaps.sort_by(f64::total_cmp);
        let median_s = *gaps.get(gaps.len() / 2)?;
        let is_near = |gap: &f64| (gap - median_s).abs() <= PERIOD_TOLERANCE * median_s;
        Some(Self { median_s, gaps: gaps.len(), regular: gaps.iter().all(is_near) })
    }

    /// Whether it is `seconds`, within what slots and the length of bursts leave open: a tenth.
    pub fn is_about(&self, seconds: f64) -> bool {
        (self.median_s - seconds).abs() <= 0.1 * seconds
    }
}

/// How long a slot is.
pub const SLOT: Duration = Duration::from_millis(100);

/// The maximum of slots with requests: more than a day, if each has some.
pub const SLOTS_MAX: usize = 1_000_000;

/// What came in a slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Slot {
    /// How many requests.
    pub requests: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// What came, by slots of [`SLOT`] since the beginning. Slots without requests take no memory, and
/// there are at most [`SLOTS_MAX`] others.
#[derive(Clone, Debug, Default)]
pub struct SlotCounts {
    slots: BTreeMap<u64, Slot>,
    uncounted: u64,
}

impl SlotCounts {
    /// Counts a request so long after the beginning.
    pub fn add(&mut self, since: Duration, bytes: u64) {
        let index = u64::try_from(since.as_nanos() / SLOT.as_nanos()).unwrap_or(u64::MAX);
        if self.slots.len() >= SLOTS_MAX && !self.slots.contains_key(&index) {
            self.uncounted += 1;
            return;
        }
        let slot = self.slots.entry(index).or_default();
        slot.requests += 1;
        slot.bytes = slot.bytes.saturating_add(bytes);
    }

    /// How many requests found no slot any more.
    pub fn uncounted(&self) -> u64 {
        self.uncounted
    }

    /// The slots in use, by their number since the beginning.
    pub(crate) fn in_use(&self) -> impl Iterator<Item = (u64, Slot)> {
        self.slots.iter().map(|(&index, &slot)| (index, slot))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bursts_at(starts: &[f64]) -> Vec<Burst> {
        let burst = |&start_s| Burst { start_s, length_s: 0.1, requests: 1, bytes: 1 };
        starts.iter().map(burst).collect()
    }

    #[test]
    fn short_pauses_are_within_a_burst_and_long_ones_between_two() {
        let slot = Slot { requests: 10, bytes: 100 };
        let found = bursts([1, 2, 5, 9, 10].map(|index| (index, slot)));
        let found: Vec<_> = found.iter().map(|burst| burst.requests).collect();
        assert_eq!(found, [30, 20]);
    }

    #[test]
    fn stray_requests_are_no_burst() {
        let sizes = [(0, 1_000), (100, 5), (300, 990), (400, 99), (600, 1_010)];
        let slots = sizes.map(|(index, requests)| (index, Slot { requests, bytes: requests }));
        let starts: Vec<_> = bursts(slots).iter().map(|burst| burst.start_s).collect();
        assert_eq!(starts, [0.0, 30.0, 60.0]);
    }

    #[test]
    fn gaps_are_a_period_if_none_is_far_off() {
        assert_eq!(Period::of(&bursts_at(&[1.0])), None);
        let period = |starts: &[f64]| Period::of(&bursts_at(starts)).unwrap();
        assert!(period(&[0.0, 30.0]).regular);
        assert!(period(&[0.0, 30.1, 59.9, 91.0]).regular);
        assert!(!period(&[0.0, 30.0, 35.0, 65.0]).regular);
        assert!(period(&[0.0, 30.7]).is_about(30.0) && !period(&[0.0, 34.0]).is_about(30.0));
    }

    #[test]
    fn requests_are_counted_in_the_slot_that_they_came_in() {
        let mut counts = SlotCounts::default();
        for millis in [0, 99, 100, 5_000] {
            counts.add(Duration::from_millis(millis), 512);
        }
        let slots: Vec<_> = counts.in_use().map(|(index, slot)| (index, slot.requests)).collect();
        assert_eq!(slots, [(0, 2), (1, 1), (50, 1)]);
    }

    #[test]
    fn no_times_or_sizes_take_more_memory_than_the_bound_or_overflow() {
        let mut counts = SlotCounts::default();
        counts.add(Duration::MAX, u64::MAX);
        counts.add(Duration::MAX, u64::MAX);
        for index in 0..SLOTS_MAX as u32 + 5 {
            counts.add(SLOT * index, 1);
        }
        assert_eq!((counts.slots.len(), counts.uncounted()), (SLOTS_MAX, 6));
    }
}
