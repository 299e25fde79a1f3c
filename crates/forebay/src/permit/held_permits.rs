//! The permits that a thread holds. While it holds one, its further requests are nested.
//!
//! Two threads that each hold a permit and ask for another one would wait for each other when the
//! window is full. So while a holder waits, the window does not apply to any nested request. The
//! count covers all disks, because two threads can also wait for each other on two disks.
//!
//! A permit lapses when the window gives it up, because it then blocks nobody. So a forgotten
//! permit does not make its thread a holder for ever.
//!
//! Decision: `docs/decisions/0021-nested-requests.md`.

use std::cell::Cell;

use forebay_core::{DiskTime, Time};

use crate::group::GroupState;
use crate::sys::sync::Clock;
use crate::sys::waker::is_waking;

/// The number of entries of a thread. If permits in all of them count, a further permit shares the
/// entry that lapses last.
const ENTRIES: usize = 8;
/// A request is overdue after this many windows, and not before [`OVERDUE_NANOS_MIN`] nanoseconds.
const OVERDUE_WINDOWS: u64 = 8;
const OVERDUE_NANOS_MIN: u64 = 100_000_000;

thread_local! {
    static HELD_PERMITS: HeldPermits = const { HeldPermits::nothing() };
}

/// A permit that a thread holds: the entry that counts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HeldPermit {
    entry: usize,
    use_number: u32,
}

impl HeldPermit {
    /// Notes that the calling thread holds a permit of `group` since `since`.
    pub(super) fn begin(group: &GroupState, since: Time) -> Self {
        let window = match group.io.window() {
            // An open budget has no window, so nobody waits for the permit.
            DiskTime::MAX => 0,
            window => window.as_nanos_ceil(),
        };
        let patience = window.saturating_mul(OVERDUE_WINDOWS).max(OVERDUE_NANOS_MIN);
        HELD_PERMITS.with(|held| held.add(since, since.plus_nanos(patience)))
    }

    /// Notes that the calling thread no longer holds the permit.
    pub(super) fn end(self) {
        HELD_PERMITS.with(|held| held.remove(self));
    }
}

/// Whether the calling thread holds a permit that a window still counts.
pub(crate) fn holds_permit(now: Time) -> bool {
    is_waking() || HELD_PERMITS.with(|held| held.any(now))
}

/// [`holds_permit`] at the present time. It reads the clock only if the thread has a permit.
pub(crate) fn holds_permit_now() -> bool {
    let may = is_waking() || HELD_PERMITS.with(|held| held.count.get() > 0);
    may && holds_permit(Clock::of_process().now())
}

/// The permits of one thread. It is read for every permit, so it has a fixed size, allocates
/// nothing, and needs no destructor at the end of the thread.
struct HeldPermits {
    entries: [Entry; ENTRIES],
    /// The number of permits in all entries.
    count: Cell<u32>,
}

/// Permits that lapse together.
struct Entry {
    count: Cell<u32>,
    lapses_at: Cell<Time>,
    /// The number of the present use of the entry. A permit of an earlier use has lapsed and no
    /// longer counts.
    use_number: Cell<u32>,
}

impl HeldPermits {
    const fn nothing() -> Self {
        let entries = [const {
            Entry {
                count: Cell::new(0),
                lapses_at: Cell::new(Time::ZERO),
                use_number: Cell::new(0),
            }
        }; ENTRIES];
        Self { entries, count: Cell::new(0) }
    }

    fn add(&self, now: Time, lapses_at: Time) -> HeldPermit {
        let (mut at, mut shared) = (0, true);
        for (index, entry) in self.entries.iter().enumerate() {
            if !entry.counts(now) {
                (at, shared) = (index, false);
                break;
            }
            if entry.lapses_at.get() > self.entries[at].lapses_at.get() {
                at = index;
            }
        }
        let entry = &self.entries[at];
        if !shared {
            self.count.set(self.count.get().saturating_sub(entry.count.replace(0)));
            entry.use_number.set(entry.use_number.get().wrapping_add(1));
            entry.lapses_at.set(Time::ZERO);
        }
        entry.count.set(entry.count.get() + 1);
        entry.lapses_at.set(entry.lapses_at.get().max(lapses_at));
        self.count.set(self.count.get() + 1);
        HeldPermit { entry: at, use_number: entry.use_number.get() }
    }

    fn remove(&self, held_permit: HeldPermit) {
        let entry = &self.entries[held_permit.entry];
        if entry.use_number.get() == held_permit.use_number {
            entry.count.set(entry.count.get().saturating_sub(1));
            self.count.set(self.count.get().saturating_sub(1));
        }
    }

    fn any(&self, now: Time) -> bool {
        self.count.get() > 0 && self.entries.iter().any(|entry| entry.counts(now))
    }
}

impl Entry {
    fn counts(&self, now: Time) -> bool {
        self.count.get() > 0 && now < self.lapses_at.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Adds a permit at `millis`, which lapses after 100 ms.
    fn add(held: &HeldPermits, millis: u64) -> HeldPermit {
        held.add(at(millis), at(millis + 100))
    }

    fn at(millis: u64) -> Time {
        Time::from_nanos(millis * 1_000_000)
    }

    #[test]
    fn a_holding_counts_until_it_ends_or_lapses() {
        let held = HeldPermits::nothing();
        assert!(!held.any(at(1)));
        let first = add(&held, 1);
        add(&held, 2);
        held.remove(first);
        assert!(held.any(at(101)));
        assert!(!held.any(at(102)), "lapsed after 100 ms");
        held.add(at(2), at(402));
        assert!(held.any(at(401)));
        assert!(!held.any(at(402)), "the window is large");
    }

    #[test]
    fn however_many_are_forgotten_they_count_only_until_they_lapse() {
        for count in [1, 8, 9, 1_000] {
            for apart in [0, 1, 30] {
                let held = HeldPermits::nothing();
                (0..count).for_each(|n| _ = add(&held, n * apart));
                let lapsed = (count - 1) * apart + 100;
                assert!(held.any(at(lapsed - 1)));
                assert!(!held.any(at(lapsed)), "{count}, every {apart} ms");
                // They do not count later either, next to permits that are dropped.
                for n in 0..1_000 {
                    let now = lapsed + n;
                    let held_permit = add(&held, now);
                    assert!(held.any(at(now)));
                    held.remove(held_permit);
                    assert!(!held.any(at(now)), "{count}, every {apart} ms, then {n}");
                }
            }
        }
    }

    #[test]
    fn many_at_once_are_all_counted_in_whatever_order_they_end() {
        for newest_first in [false, true] {
            let held = HeldPermits::nothing();
            let mut held_permits: Vec<_> = (0..20).map(|_| add(&held, 5)).collect();
            if newest_first {
                held_permits.reverse();
            }
            for held_permit in held_permits {
                assert!(held.any(at(6)));
                held.remove(held_permit);
            }
            assert!(!held.any(at(6)));
        }
    }

    #[test]
    fn dropping_a_lapsed_permit_affects_no_others() {
        let held = HeldPermits::nothing();
        let late: Vec<_> = (0..8).map(|_| add(&held, 0)).collect();
        let present: Vec<_> = (0..8).map(|_| add(&held, 100)).collect();
        late.into_iter().for_each(|held_permit| held.remove(held_permit));
        for held_permit in present {
            assert!(held.any(at(150)));
            held.remove(held_permit);
        }
        assert!(!held.any(at(150)));
    }
}
