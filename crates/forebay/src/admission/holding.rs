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
    /// When the permits that this thread holds lapse.
    static HELD: RefCell<Vec<Time>> = const { RefCell::new(Vec::new()) };
}

/// Whether the calling thread holds a permit that the window still counts.
pub(super) fn holds(now: Time) -> bool {
    let any = |held: &RefCell<Vec<Time>>| held.borrow().iter().any(|lapses| *lapses > now);
    HELD.try_with(any).unwrap_or(false)
}

/// The calling thread holds a permit of `group` from now on, until
/// [`put_down`] with what this returns.
pub(super) fn take_up(group: &DiskGroup, now: Time) -> Time {
    let window = match group.io.window() {
        DiskTime::MAX => 0,
        window => window.as_nanos_ceil(),
    };
    let lapses = now.plus_nanos(window.saturating_mul(OVERDUE_WINDOWS).max(OVERDUE_NANOS_MIN));
    let _ = HELD.try_with(|held| {
        let mut held = held.borrow_mut();
        if held.len() >= ENTRIES_TIDIED {
            held.retain(|lapses| *lapses > now);
        }
        held.push(lapses);
    });
    lapses
}

/// The calling thread holds one permit less. Those that lapse at the same time
/// are alike.
pub(super) fn put_down(lapses: Time) {
    let _ = HELD.try_with(|held| {
        let mut held = held.borrow_mut();
        if let Some(at) = held.iter().rposition(|other| *other == lapses) {
            held.swap_remove(at);
        }
    });
}
