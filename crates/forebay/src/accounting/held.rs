//! Permits and requests that are held for far longer than their I/O should take.
//!
//! Decision: `docs/decisions/0035-permits-held-too-long.md`.

use std::collections::HashMap;
use std::sync::Arc;

use forebay_core::Time;

use super::warning::{ADVICE, SECTION, SILENCE_NANOS};
use crate::metrics::Held;
use crate::registry::{ClassRecord, DiskRecord};

/// The classes with held permits, by the addresses of disk and class. Both exist while permits are
/// held.
#[derive(Debug, Default)]
pub(super) struct HeldTable(HashMap<(usize, usize), Since>);

/// The time for which some permits have been held at least.
#[derive(Clone, Copy, Debug)]
struct Since {
    at: Time,
    /// The number of requests that were given up by then. Some of them have not ended.
    given_up: u64,
    reported_at: Option<Time>,
}

pub(super) fn key(disk: &Arc<DiskRecord>, class: &Arc<ClassRecord>) -> (usize, usize) {
    (Arc::as_ptr(disk) as usize, Arc::as_ptr(class) as usize)
}

impl HeldTable {
    /// Checks the held permits of each class of each disk at `now`. Returns the warnings.
    pub(super) fn look(
        &mut self,
        now: Time,
        all: impl Iterator<Item = (Arc<DiskRecord>, Arc<ClassRecord>, Held)>,
    ) -> Vec<String> {
        let before = std::mem::take(&mut self.0);
        let mut said = Vec::new();
        for (disk, class, held) in all {
            let key = key(&disk, &class);
            if held.count() == 0 {
                continue;
            }
            let since = before.get(&key).copied();
            let since = Since::after(since, now, &held);
            let (reported_at, text) = since.report(now, &disk.name, &class.name, &held);
            said.extend(text);
            self.0.insert(key, Since { reported_at, ..since });
        }
        said
    }

    /// The least time for which some permits of this class are held on this disk.
    pub(super) fn nanos(
        &self,
        now: Time,
        disk: &Arc<DiskRecord>,
        class: &Arc<ClassRecord>,
    ) -> Option<u64> {
        self.0.get(&key(disk, class)).map(|since| now.nanos_since(since.at))
    }
}

pub(super) fn cost_of_one(held: &Held) -> String {
    match held.mean_cost_nanos() {
        Some(nanos) => format!("; one of them takes {} us of the disk", nanos.div_ceil(1000)),
        None => String::new(),
    }
}

impl Since {
    /// The state after a check. If all requests that were given up by then have ended, the time
    /// begins again with later ones.
    fn after(before: Option<Self>, now: Time, held: &Held) -> Self {
        let reported_at = before.and_then(|since| since.reported_at);
        let still = before.filter(|since| since.given_up > held.returned);
        still.unwrap_or(Self { at: now, given_up: held.given_up, reported_at })
    }

    /// The time of the last warning, and a new warning if one is due.
    fn report(
        &self,
        now: Time,
        disk: &str,
        class: &str,
        held: &Held,
    ) -> (Option<Time>, Option<String>) {
        let is_silent = self
            .reported_at
            .is_some_and(|reported_at| now.nanos_since(reported_at) < SILENCE_NANOS);
        let seconds = now.nanos_since(self.at) / 1_000_000_000;
        if is_silent || seconds == 0 {
            return (self.reported_at, None);
        }
        let (count, cost) = (held.count(), cost_of_one(held));
        let text = format!(
            "{count} permits or requests of the class `{class}` on the disk `{disk}` have been held \
             for {seconds} s or longer{cost}: {ADVICE}; {SECTION}"
        );
        (Some(now), Some(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn held(given_up: u64, returned: u64) -> Held {
        Held { given_up, returned, in_disk: 4, ended: 6, held_nanos: 0, cost_nanos: 20_000_000 }
    }

    #[test]
    fn permits_held_too_long_are_logged_once_a_minute_with_their_age() {
        let mut since = Since::after(None, Time::ZERO, &held(4, 0));
        let mut said = Vec::new();
        for second in 1..130 {
            let now = Time::from_nanos(second * SECOND);
            since = Since::after(Some(since), now, &held(4, 0));
            let (reported_at, text) = since.report(now, "data", "load", &held(4, 0));
            since.reported_at = reported_at;
            said.extend(text.map(|text| (second, text)));
        }
        let seconds: Vec<u64> = said.iter().map(|(second, _)| *second).collect();
        assert_eq!(seconds, [1, 61, 121]);
        assert!(said[1].1.starts_with("4 permits or requests of the class `load`"), "{said:?}");
        assert!(said[1].1.contains("for 61 s or longer; one of them takes 2000 us"), "{said:?}");
    }

    #[test]
    fn the_age_is_never_more_than_that_of_the_oldest_which_is_held() {
        // One is always held, and none for longer than two seconds.
        let mut since = None;
        for second in 0..100 {
            let held = held(second + 1, second.saturating_sub(1));
            let now = Time::from_nanos(second * SECOND);
            let next = Since::after(since, now, &held);
            assert!(now.nanos_since(next.at) <= 2 * SECOND, "{second}");
            since = Some(next);
        }
    }
}
