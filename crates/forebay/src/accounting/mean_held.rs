//! Classes whose permits end, but are held for far longer on average than the disk works.
//!
//! Decision: `docs/decisions/0035-permits-held-too-long.md`.

use std::collections::HashMap;
use std::sync::Arc;

use forebay_core::{DiskTime, Op, Time};

use super::held::{cost_of_one, key};
use super::warning::{ADVICE, SECTION, SILENCE_NANOS};
use crate::metrics::Held;
use crate::registry::{ClassRecord, DiskRecord};

/// The number of windows from which a permit is held far too long. The window's own patience adapts
/// to the holding times, so it does not show permits that are always late.
const WINDOWS: u64 = 8;
/// The least such time, in nanoseconds.
const HELD_NANOS_MIN: u64 = 100_000_000;

/// The counters a minute ago, by the addresses of disk and class. The names of two schedulers may
/// be the same.
#[derive(Debug, Default)]
pub(super) struct MeanHeld {
    since: Option<Time>,
    then: HashMap<(usize, usize), (u64, u64)>,
}

impl MeanHeld {
    /// Whether a minute has passed.
    pub(super) fn is_over(&mut self, now: Time) -> bool {
        let since = *self.since.get_or_insert(now);
        let is_over = now.nanos_since(since) >= SILENCE_NANOS;
        if is_over {
            self.since = Some(now);
        }
        is_over
    }

    /// The warnings about the last minute.
    pub(super) fn look(
        &mut self,
        all: impl Iterator<Item = (Arc<DiskRecord>, Arc<ClassRecord>, Held)>,
    ) -> Vec<String> {
        let before = std::mem::take(&mut self.then);
        let mut said = Vec::new();
        for (disk, class, held) in all.filter(|(_, _, held)| held.ended > 0) {
            let key = key(&disk, &class);
            let then = before.get(&key).copied().unwrap_or_default();
            let window = disk.here().of(Op::Read).io.window();
            let mean = too_long(then, &held, window);
            said.extend(mean.map(|mean| warning(&disk.name, &class.name, mean, &held)));
            self.then.insert(key, (held.ended, held.held_nanos));
        }
        said
    }
}

/// The mean time in nanoseconds for which permits that ended since `then` were held, if it is far
/// too long for a disk with this window.
fn too_long((ended, nanos): (u64, u64), held: &Held, window: DiskTime) -> Option<u64> {
    let ended = held.ended.saturating_sub(ended);
    let mean = held.held_nanos.checked_sub(nanos)?.checked_div(ended)?;
    let usual = window.as_nanos_ceil().saturating_mul(WINDOWS).max(HELD_NANOS_MIN);
    // Without a window the usual time is unknown.
    (window != DiskTime::MAX && mean > usual).then_some(mean)
}

fn warning(disk: &str, class: &str, mean: u64, held: &Held) -> String {
    let (millis, cost) = (mean / 1_000_000, cost_of_one(held));
    format!(
        "permits or requests of the class `{class}` on the disk `{disk}` were held for {millis} \
         ms on average in the last minute{cost}: {ADVICE}, or the disk is slow; {SECTION}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn held(ended: u64, held_nanos: u64) -> Held {
        Held { ended, held_nanos, cost_nanos: ended * 2 * MS, ..Held::default() }
    }

    #[test]
    fn permits_that_come_back_late_each_time_are_seen_by_their_mean() {
        let window = DiskTime::from_nanos(2 * MS);
        let now = held(340, 100 * MS + 240 * 900 * MS);
        assert_eq!(too_long((100, 100 * MS), &now, window), Some(900 * MS));
        let text = warning("data", "load", 900 * MS, &now);
        let expected = "permits or requests of the class `load` on the disk `data` were held for \
            900 ms on average in the last minute; one of them takes 2000 us of the disk: hold";
        assert!(text.starts_with(expected), "{text}");
    }

    #[test]
    fn latency_within_the_window_is_usual_and_any_latency_without_a_window() {
        let window = |ms| DiskTime::from_nanos(ms * MS);
        assert_eq!(too_long((0, 0), &held(10, 10 * 99 * MS), window(1)), None);
        assert_eq!(too_long((0, 0), &held(10, 10 * 700 * MS), window(100)), None, "a slow disk");
        assert_eq!(too_long((0, 0), &held(10, 10_000 * MS), DiskTime::MAX), None);
        assert_eq!(too_long((10, 5), &held(10, 5), window(1)), None, "nothing has ended");
        // Another class has the address.
        for then in [(1_000, 5), (5, 1_000), (1_000, 1_000)] {
            assert_eq!(too_long(then, &held(10, 30), window(1)), None, "{then:?}");
        }
    }

    #[test]
    fn a_minute_has_to_pass() {
        let mut mean = MeanHeld::default();
        let at = |seconds: u64| Time::from_nanos(seconds * 1_000_000_000);
        let over: Vec<u64> = (5..200).filter(|second| mean.is_over(at(*second))).collect();
        assert_eq!(over, [65, 125, 185]);
    }
}
