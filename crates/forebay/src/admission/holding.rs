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

use std::cell::RefCell;

use forebay_core::{DiskTime, Time};

use crate::disk::DiskGroup;

/// With so many entries, those that have lapsed are looked for.
const ENTRIES_TIDIED: usize = 16;
/// A request is overdue after this many windows, but not earlier than this
/// many nanoseconds.
const OVERDUE_WINDOWS: u64 = 8;
const OVERDUE_NANOS_MIN: u64 = 100_000_000;

thread_local! {
    static HELD: RefCell<Vec<Holding>> = const { RefCell::new(Vec::new()) };
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
        let _ = HELD.try_with(|held| {
            let mut held = held.borrow_mut();
            if held.len() >= ENTRIES_TIDIED {
                held.retain(|other| !other.has_lapsed(since));
            }
            held.push(holding);
        });
        holding
    }

    /// The calling thread has put the permit down.
    pub(super) fn end(self) {
        let _ = HELD.try_with(|held| {
            let mut held = held.borrow_mut();
            if let Some(at) = held.iter().rposition(|other| *other == self) {
                held.swap_remove(at);
            }
        });
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
    let any = |held: &RefCell<Vec<Holding>>| held.borrow().iter().any(|one| !one.has_lapsed(now));
    HELD.try_with(any).unwrap_or(false)
}
