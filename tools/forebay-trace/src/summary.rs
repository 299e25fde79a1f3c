//! What came of requests: how evenly, or in which bursts.

use std::time::Duration;

use serde::Serialize;

use crate::bursts::{Burst, Period, SLOT, Slot, SlotCounts, bursts};

/// A slot is over what pacing allows with more than this many times the mean.
const OVER_MEAN: f64 = 3.0;

/// The part of slots, from the first in use to the last, that are in use where requests go on all
/// the time.
const STEADY_PART: f64 = 0.9;

/// What takes less than this many slots is a burst, however even it is in itself.
const STEADY_SLOTS: u64 = 10;

/// How requests came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Shape {
    /// There were none.
    None,
    /// In nine of ten slots or more, for a second or longer, and in no slot more than three times
    /// the mean.
    Even,
    /// In bursts.
    Bursts,
}

/// What was counted, from its beginning to its end.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// How long was counted.
    pub seconds: f64,
    /// How many requests.
    pub requests: u64,
    /// Their bytes.
    pub bytes: u64,
    /// How long a slot is.
    pub slot_s: f64,
    /// When the first slot in use began.
    pub first_s: f64,
    /// When the last one ended.
    pub last_s: f64,
    /// How many slots there are from the first in use to the last.
    pub slots: u64,
    /// How many of these had requests.
    pub slots_in_use: u64,
    /// How many had more than three times the mean of `slots`, in requests.
    pub slots_over_requests: u64,
    /// The same in bytes.
    pub slots_over_bytes: u64,
    /// The most requests of a slot.
    pub slot_requests_max: u64,
    /// The most bytes of a slot.
    pub slot_bytes_max: u64,
    /// How they came.
    pub shape: Shape,
    /// The bursts, if they came in bursts.
    pub bursts: Vec<Burst>,
    /// How far apart these are; none with fewer than two.
    pub period: Option<Period>,
}

impl Summary {
    /// What `counts` has after so long.
    pub fn new(counts: &SlotCounts, length: Duration) -> Self {
        let total = counts.in_use().fold(Slot::default(), |sum, (_, slot)| Slot {
            requests: sum.requests + slot.requests,
            bytes: sum.bytes.saturating_add(slot.bytes),
        });
        let ends = counts.in_use().next().zip(counts.in_use().last());
        let span = ends.map(|((first, _), (last, _))| (first, last.saturating_add(1)));
        let slots = span.map_or(0, |(first, end)| end - first);
        let limit = |total: u64| OVER_MEAN * total as f64 / slots as f64;
        let limits = (limit(total.requests), limit(total.bytes));
        let over_requests = |slot: &Slot| slot.requests as f64 > limits.0;
        let over_bytes = |slot: &Slot| slot.bytes as f64 > limits.1;
        let count = |is: &dyn Fn(&Slot) -> bool| {
            counts.in_use().filter(|(_, slot)| is(slot)).count() as u64
        };
        let most = |of: fn(&Slot) -> u64| counts.in_use().map(|(_, slot)| of(&slot)).max();
        let slots_in_use = count(&|_| true);
        let goes_on = slots >= STEADY_SLOTS && slots_in_use as f64 >= STEADY_PART * slots as f64;
        let found = match goes_on {
            true => {
                bursts(counts.in_use().filter(|(_, slot)| over_requests(slot) || over_bytes(slot)))
            }
            false => bursts(counts.in_use()),
        };
        let slot_s = SLOT.as_secs_f64();
        let seconds_of = |index: u64| index as f64 * slot_s;
        Self {
            seconds: length.as_secs_f64(),
            requests: total.requests,
            bytes: total.bytes,
            slot_s,
            first_s: span.map_or(0.0, |(first, _)| seconds_of(first)),
            last_s: span.map_or(0.0, |(_, end)| seconds_of(end)),
            slots,
            slots_in_use,
            slots_over_requests: count(&over_requests),
            slots_over_bytes: count(&over_bytes),
            slot_requests_max: most(|slot| slot.requests).unwrap_or(0),
            slot_bytes_max: most(|slot| slot.bytes).unwrap_or(0),
            shape: match (slots, found.is_empty()) {
                (0, _) => Shape::None,
                (_, true) => Shape::Even,
                (_, false) => Shape::Bursts,
            },
            period: Period::of(&found),
            bursts: found,
        }
    }
}
