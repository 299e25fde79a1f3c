//! The permits that a thread holds: it must not wait for what it keeps itself.
//!
//! Two threads that each hold a permit and ask for another would wait for each
//! other when the window is full. So whoever holds one passes the queue and
//! the window, and waits for the pace alone. This counts over all disks: on
//! two of them two threads can wait for each other crosswise.
//!
//! The entry of a permit lapses when the window gives the permit up: it keeps
//! nobody waiting from then on. So a permit that was forgotten does not open
//! the window to its thread for ever.

use std::cell::Cell;

use forebay_core::{DiskTime, Time};

use crate::disk::DiskGroup;

/// So many permits of a thread are told apart.
const ENTRIES_MAX: usize = 8;
/// A request is overdue after this many windows, but not earlier than this
/// many nanoseconds.
const OVERDUE_WINDOWS: u64 = 8;
const OVERDUE_NANOS_MIN: u64 = 100_000_000;

thread_local! {
    static HELD: Held = const { Held::nothing() };
}

/// A permit that a thread holds. Equal ones are alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Holding {
    since: Time,
    window: DiskTime,
}

impl Holding {
    /// The calling thread has held a permit of `group` since `since`.
    pub(super) fn begin(group: &DiskGroup, since: Time) -> Self {
        let holding = Self { since, window: group.io.window() };
        HELD.with(|held| held.add(holding));
        holding
    }

    /// The calling thread has put the permit down.
    pub(super) fn end(self) {
        HELD.with(|held| held.remove(self));
    }

    /// Whether the window has given the permit up.
    fn has_lapsed(self, now: Time) -> bool {
        let window = match self.window {
            // An open budget keeps nobody waiting.
            DiskTime::MAX => 0,
            window => window.as_nanos_ceil(),
        };
        let patience = window.saturating_mul(OVERDUE_WINDOWS).max(OVERDUE_NANOS_MIN);
        now.nanos_since(self.since) >= patience
    }
}

/// Whether the calling thread holds a permit that a window still counts.
pub(super) fn holds(now: Time) -> bool {
    HELD.with(|held| held.any(now))
}

/// Runs `wake`, during which the calling thread counts as a holder: others may
/// wait for what it does next, so it must not wait for them.
pub(super) fn as_holder(wake: impl FnOnce()) {
    HELD.with(|held| {
        held.beyond.set(held.beyond.get() + 1);
        wake();
        held.beyond.set(held.beyond.get().saturating_sub(1));
    });
}

/// What one thread holds. It needs no memory of its own, and nothing to be
/// done at the end of the thread: this is looked at for every permit.
struct Held {
    entries: [Cell<Holding>; ENTRIES_MAX],
    len: Cell<usize>,
    /// Permits for which there was no entry.
    beyond: Cell<usize>,
}

impl Held {
    const fn nothing() -> Self {
        Self {
            entries: [const { Cell::new(Holding { since: Time::ZERO, window: DiskTime::ZERO }) };
                ENTRIES_MAX],
            len: Cell::new(0),
            beyond: Cell::new(0),
        }
    }

    fn add(&self, holding: Holding) {
        if self.len.get() == ENTRIES_MAX {
            self.remove_lapsed(holding.since);
        }
        match self.entries.get(self.len.get()) {
            Some(entry) => {
                entry.set(holding);
                self.len.set(self.len.get() + 1);
            }
            None => self.beyond.set(self.beyond.get() + 1),
        }
    }

    fn remove(&self, holding: Holding) {
        match self.present().iter().rposition(|entry| entry.get() == holding) {
            Some(at) => self.remove_at(at),
            None => self.beyond.set(self.beyond.get().saturating_sub(1)),
        }
    }

    fn any(&self, now: Time) -> bool {
        self.beyond.get() > 0 || self.present().iter().any(|entry| !entry.get().has_lapsed(now))
    }

    fn present(&self) -> &[Cell<Holding>] {
        &self.entries[..self.len.get()]
    }

    fn remove_lapsed(&self, now: Time) {
        for at in (0..self.len.get()).rev() {
            if self.entries[at].get().has_lapsed(now) {
                self.remove_at(at);
            }
        }
    }

    fn remove_at(&self, at: usize) {
        let last = self.len.get() - 1;
        self.entries[at].set(self.entries[last].get());
        self.len.set(last);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLI: u64 = 1_000_000;

    fn at(millis: u64) -> Time {
        Time::from_nanos(millis * MILLI)
    }

    fn since(millis: u64) -> Holding {
        Holding { since: at(millis), window: DiskTime::from_nanos(MILLI) }
    }

    #[test]
    fn a_holding_counts_until_it_ends_or_lapses() {
        let held = Held::nothing();
        assert!(!held.any(at(1)));
        held.add(since(1));
        held.add(since(2));
        held.remove(since(1));
        assert!(held.any(at(101)));
        assert!(!held.any(at(102)), "lapsed after 100 ms");
        let slow = Holding { window: DiskTime::from_nanos(50 * MILLI), ..since(2) };
        held.add(slow);
        assert!(held.any(at(401)));
        assert!(!held.any(at(402)), "lapsed after eight windows");
    }

    #[test]
    fn forgotten_ones_make_room() {
        let held = Held::nothing();
        (0..1_000).for_each(|n| held.add(since(n * 1_000)));
        assert!(held.any(at(999_000)));
        held.remove(since(999_000));
        assert!(!held.any(at(999_000)));
    }

    #[test]
    fn many_at_once_are_all_counted() {
        let held = Held::nothing();
        (0..20).for_each(|_| held.add(since(5)));
        for _ in 0..20 {
            assert!(held.any(at(6)));
            held.remove(since(5));
        }
        assert!(!held.any(at(6)));
    }
}
