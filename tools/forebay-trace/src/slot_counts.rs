//! Requests and bytes by slots of time.

use std::collections::BTreeMap;
use std::time::Duration;

/// How long a slot is.
pub const SLOT: Duration = Duration::from_millis(100);

/// How many slots with requests are told apart: more than a day, if each has some.
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
